"""`rlmesh doctor`: it says what works, and no broken part keeps it from saying so."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy
import pytest

from rlmesh_cli import doctor_command
from rlmesh_cli.doctor import children as children_module
from rlmesh_cli.doctor import software
from rlmesh_cli.doctor.checks import Check, shielded
from rlmesh_cli.doctor.children import Children
from rlmesh_cli.doctor.examination import is_sound
from rlmesh_cli.doctor.machine import check_machine
from rlmesh_cli.doctor.software import check_extras, check_software, is_older

ROOT = Path(__file__).resolve().parents[2]


def doctor(*arguments: str, before: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, in front of which a folder may stand on the path."""
    path = os.pathsep.join(part for part in (before, *map(str, (ROOT, ROOT / "adapters", ROOT / "envs"))) if part)
    return subprocess.run(
        [sys.executable, "-m", "rlmesh_cli", "doctor", *arguments],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": path, **environment},
        timeout=120,
        check=False,
    )


def by_name(text: str) -> dict[str, dict[str, Any]]:
    return {check["name"]: check for check in json.loads(text)["checks"]}


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    done = doctor("--json")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_versions_are_those_that_are_imported(told):
    found = {check["name"]: check for check in told["checks"]}
    assert told["schema"] == "rlmesh.doctor.v1"
    assert told["is_sound"] is True
    assert found["gymnasium"]["found"] == gymnasium.__version__
    assert found["numpy"]["found"] == numpy.__version__
    assert found["python"]["found"].startswith(".".join(map(str, sys.version_info[:3])))
    assert found["CartPole-v1"]["state"] == "ok"


def test_every_part_is_looked_at_and_what_is_missing_says_how_to_get_it(told):
    groups = {check["group"] for check in told["checks"]}
    assert groups == {"software", "extras", "environments", "rendering", "machine", "terminal"}
    assert {check["state"] for check in told["checks"]} <= {"ok", "missing", "broken", "note"}
    without = [c["name"] for c in told["checks"] if c["state"] in ("missing", "broken") and not c["mend"]]
    assert set(without) <= {"offscreen"}  # MuJoCo is listed as missing above it


def test_cores_are_those_of_the_process(told):
    cores = next(check for check in told["checks"] if check["name"] == "cores")
    assert cores["found"].startswith(str(len(os.sched_getaffinity(0))))


@pytest.mark.parametrize("width", ["80", "140"])
def test_it_is_a_table_that_keeps_to_the_width(width):
    done = doctor(COLUMNS=width)
    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == "software"
    assert max(map(len, done.stdout.splitlines()[:-1])) <= int(width)
    assert done.stdout.splitlines()[-1].startswith("everything that a run needs works")
    assert done.stdout.isascii()


def test_a_broken_dependency_is_named_and_leaves_with_2(tmp_path):
    for name in ("numpy", "gymnasium"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('[bold]half installed[/bold]')\n")
    done = doctor(before=str(tmp_path))
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "cannot be imported: RuntimeError: [bold]half installed[/bold]" in " ".join(done.stdout.split())
    last = done.stdout.splitlines()[-1]
    assert last == "broken, and needed by every run: gymnasium, numpy, CartPole-v1"


def test_a_program_that_aborts_is_told_of(tmp_path):
    """A wrong GL library ends the whole process."""
    (tmp_path / "mujoco.py").write_text("import os\nos.abort()\n")
    done = doctor("--json", before=str(tmp_path))
    offscreen = by_name(done.stdout)["offscreen"]
    assert done.returncode == 0
    assert offscreen["state"] == "broken"
    assert "the process was ended by signal 6" in offscreen["found"]


def test_where_another_backend_draws_it_is_named(tmp_path):
    (tmp_path / "mujoco.py").write_text(
        "import os\n"
        "if os.environ.get('MUJOCO_GL') != 'osmesa': raise RuntimeError('no display')\n"
        "class Any:\n"
        "    def __getattr__(self, name): return lambda *args, **kwargs: Any()\n"
        "    def __enter__(self): return self\n"
        "    def __exit__(self, *args): pass\n"
        "    max = lambda self: 9\n"
        "    shape = (48, 64, 3)\n"
        "    render = lambda self: self\n"
        "MjModel, MjData = Any(), lambda model: Any()\n"
        "mj_forward = lambda *args: None\n"
        "Renderer = lambda *args: Any()\n"
    )
    offscreen = by_name(doctor("--json", before=str(tmp_path), MUJOCO_GL="glfw").stdout)["offscreen"]
    assert offscreen["state"] == "broken"
    assert "(RuntimeError: no display), but with osmesa" in offscreen["found"]
    assert offscreen["mend"] == "export MUJOCO_GL=osmesa"
    offscreen = by_name(doctor("--json", before=str(tmp_path), MUJOCO_GL="osmesa").stdout)["offscreen"]
    assert (offscreen["state"], offscreen["found"]) == ("ok", "MuJoCo draws a picture of 64 x 48")


def test_a_part_that_cannot_be_looked_at_hides_nothing_before_it():
    def look():
        yield Check(group="g", name="first", state="ok", found="there")
        raise OSError("the rest is gone")

    found = shielded("g", look)
    assert [check.state for check in found] == ["ok", "broken"]
    assert found[1].found == "cannot be looked at: OSError: the rest is gone"
    assert is_sound(found)
    assert not is_sound([Check(group="g", name="n", state="broken", found="", is_core=True)])


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """Return a function that lays down the metadata of an installed distribution."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(name: str, version: str, *needs: str, extras: tuple[str, ...] = (), scripts: str = "") -> None:
        folder = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
        lines += [f"Provides-Extra: {extra}" for extra in extras] + [f"Requires-Dist: {need}" for need in needs]
        (folder / "METADATA").write_text("\n".join(lines) + "\n")
        (folder / "entry_points.txt").write_text(scripts)
        importlib.invalidate_caches()

    return install


@pytest.fixture
def children():
    made = Children()
    made.start("core", "core")
    made.start("encoder", "encoder")
    yield made
    made.close()


def test_extras_are_those_of_the_installed_distribution(packages, children, monkeypatch):
    monkeypatch.setattr(software, "DISTRIBUTION", "fake-cli")
    packages("fake-one", "2.0", "fake-inner; extra == 'deep'", extras=("deep",))
    packages("fake-old", "1.9.9")
    packages(
        "fake-cli",
        "1.0",
        "fake-one[deep]>=1.5; extra == 'steps'",
        "fake-old>=1.10; extra == 'images'",
        "fake-one (>=1.5) ; extra == 'ray'",
        "fake-gone>=3; extra == 'own'",
        "fake-gone>=3; extra == 'dev'",
    )
    found = {check.name: check for check in check_extras(children)}
    assert set(found) == {"steps", "images", "ray", "own"}
    assert (found["ray"].state, found["ray"].found) == ("ok", "playing on a Ray cluster: fake-one 2.0")
    assert found["images"].found.endswith("compressed: needs fake-old>=1.10")
    assert found["images"].mend == "pip install 'fake-cli[images]'"
    assert found["steps"].found.endswith("Parquet: needs fake-inner")
    assert (found["own"].state, found["own"].found) == ("missing", "needs fake-gone")


def test_a_dependency_that_is_too_old_is_broken(packages, children, monkeypatch):
    monkeypatch.setattr(software, "DISTRIBUTION", "fake-cli")
    packages("fake-cli", "1.0", "numpy>=99.1")
    found = {check.name: check for check in check_software(children)}
    assert (found["numpy"].state, found["numpy"].is_core) == ("broken", True)
    assert found["numpy"].found == f"{numpy.__version__}, but 99.1 is needed"
    assert found["numpy"].mend == "pip install --upgrade 'numpy>=99.1'"


def test_a_command_of_the_same_name_is_told_of(packages, children, monkeypatch, tmp_path):
    packages("rlmesh", "3.0", scripts="[console_scripts]\nrlmesh = other.cli:main\n")
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    (scripts / "rlmesh").write_text("#!/bin/sh\nexec other\n")
    (scripts / "rlmesh").chmod(0o755)
    monkeypatch.setenv("PATH", str(scripts))
    command = {check.name: check for check in check_software(children)}["command"]
    assert command.state == "note"
    assert command.found == f"`rlmesh` is another program of rlmesh: {scripts / 'rlmesh'}"
    assert "rlmesh-cli" in command.mend
    (scripts / "rlmesh").write_text("#!python\nfrom rlmesh_cli.app import main\n")
    command = {check.name: check for check in check_software(children)}["command"]
    assert (command.state, command.mend) == ("ok", "")
    assert command.found == f"{scripts / 'rlmesh'}; rlmesh has a command of that name too"


@pytest.mark.parametrize(
    ("version", "least", "older"),
    [
        ("1.9", "1.10", True),
        ("1.10", "1.10", False),
        ("2", "1.10", False),
        ("1.26.4", "1.26", False),
        ("1", "", False),
    ],
)
def test_versions_are_compared_by_their_numbers(version, least, older):
    assert is_older(version, least) is older


def test_a_folder_that_cannot_be_written_to_is_broken(tmp_path):
    (tmp_path / "runs").write_text("a file")
    runs = {check.name: check for check in check_machine(tmp_path / "runs")}["runs"]
    assert (runs.state, runs.is_core, runs.found) == ("broken", True, f"{tmp_path / 'runs'} is a file")
    assert doctor_command.run(tmp_path / "runs", as_json=True) == 2
    runs = {check.name: check for check in check_machine(tmp_path / "new" / "runs")}["runs"]
    assert runs.state == "ok"
    assert f"{tmp_path / 'new' / 'runs'} can be made" in runs.found
    assert not (tmp_path / "new").exists()


def found_by(program: str, monkeypatch: pytest.MonkeyPatch) -> tuple[bool, str]:
    """Return how a child that runs a program ended."""
    monkeypatch.setitem(children_module.PROGRAMS, "tried", program)
    monkeypatch.setattr(children_module, "SECONDS", 3.0)
    children = Children()
    children.start("tried", "tried")
    outcome = children.outcome("tried")
    return outcome.is_done, outcome.text


@pytest.mark.parametrize(
    "noise",
    [
        "print('half a line', end='', flush=True)",
        "import atexit; atexit.register(print, 'goodbye')",
        "import sys; sys.stdout = None",
        "import subprocess; subprocess.Popen(['sleep', '30'])",
    ],
    ids=["half a line", "last words", "no output", "left behind"],
)
def test_what_packages_print_or_leave_behind_is_not_taken_for_the_finding(noise, monkeypatch):
    began = time.monotonic()
    assert found_by(f"{noise}\nsay('a finding')", monkeypatch) == (True, "a finding")
    assert time.monotonic() - began < 20


def test_a_program_that_leaves_too_early_or_hangs_has_found_nothing(monkeypatch):
    left = (False, "the process left before it was through")
    assert found_by("import os; os._exit(0)\nsay('a finding')", monkeypatch) == left
    assert found_by("raise SystemExit\nsay('a finding')", monkeypatch) == left
    began = time.monotonic()
    hangs = "import subprocess, time; subprocess.Popen(['sleep', '30']); time.sleep(30)"
    assert found_by(hangs, monkeypatch) == (False, "no answer within 3 s")
    assert time.monotonic() - began < 20


def test_a_gymnasium_that_leaves_by_itself_does_not_work(tmp_path):
    (tmp_path / "gymnasium.py").write_text("import os\nos._exit(0)\n")
    done = doctor("--json", before=str(tmp_path))
    found = by_name(done.stdout)
    assert done.returncode == 2
    assert (found["CartPole-v1"]["state"], found["gymnasium"]["state"]) == ("broken", "broken")
    assert found["gymnasium"]["found"].endswith("cannot be imported: the process left before it was through")
    assert found["typer"]["state"] == "ok"


def test_a_version_that_says_nothing_hides_no_other(tmp_path):
    (tmp_path / "yaml.py").write_text("__version__ = ''\n")
    found = by_name(doctor("--json", before=str(tmp_path)).stdout)
    assert (found["pyyaml"]["state"], found["command"]["group"]) == ("ok", "software")


def test_the_doctor_speaks_where_rich_is_broken(tmp_path):
    (tmp_path / "rich.py").write_text("")
    done = doctor(before=str(tmp_path))
    assert (done.returncode, done.stderr) == (2, "")
    assert "broken  rich: " in done.stdout
    assert "-> pip install --force-reinstall rich" in done.stdout


def test_a_name_of_a_folder_that_cannot_be_is_broken_and_needed():
    runs = {check.name: check for check in check_machine(Path("r" * 300))}["runs"]
    assert (runs.state, runs.is_core) == ("broken", True)
    assert "File name too long" in runs.found


def test_an_interrupted_doctor_leaves_nothing_running(monkeypatch):
    def interrupted(child, *args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setitem(children_module.PROGRAMS, "hangs", "import time; time.sleep(60)")
    monkeypatch.setattr(subprocess.Popen, "communicate", interrupted)
    children = Children()
    children.start("hangs", "hangs")
    child = children._started["hangs"]
    with pytest.raises(KeyboardInterrupt):
        children.outcome("hangs")
    children.close()
    assert isinstance(child, subprocess.Popen)
    assert child.returncode == -9


def test_a_link_that_leads_nowhere_is_no_folder_that_can_be_made(tmp_path):
    (tmp_path / "runs").symlink_to(tmp_path / "gone")
    runs = {check.name: check for check in check_machine(tmp_path / "runs")}["runs"]
    assert (runs.state, runs.found) == ("broken", f"{tmp_path / 'runs'} is a link that leads nowhere")
