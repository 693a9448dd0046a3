"""Docs: what stands there as bash runs, and what stands there as YAML is read."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from typer.testing import CliRunner

from rlmesh_cli.app import app
from rlmesh_cli.exits import Exit

ROOT = Path(__file__).resolve().parent.parent
DOCS = sorted((ROOT / "docs").glob("*.md"))
CI = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
MARKED = dict(re.findall(r"^<!-- file: (\S+) -->\n```\w+\n(.*?)^```$", CI, flags=re.M | re.S))
SCRIPTS = Path(sys.executable).parent

BAD = "class Policy:\n    def predict(self, obs):\n        return 0\n"
BROKEN = "class Policy:\n    def predict(self, obs):\n        return 7\n"

needs_command = pytest.mark.skipif(
    not (SCRIPTS / "rlmesh").exists() or shutil.which("bash") is None,
    reason=f"needs bash and a console script `rlmesh` in {SCRIPTS}",
)


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.M | re.S)


@pytest.fixture
def place(tmp_path) -> Path:
    """Return a folder with the files of the page, and a policy that is good."""
    for name, text in MARKED.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    shutil.copy(ROOT / "examples" / "cartpole.py", tmp_path / "policy.py")
    return tmp_path


def shell(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command with the `rlmesh` of this interpreter, and these sources, on its path."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "GIT_"))}
    sources = os.pathsep.join(map(str, (ROOT, ROOT / "adapters", ROOT / "envs")))
    path = os.pathsep.join([str(SCRIPTS), kept.get("PATH", os.defpath)])
    return subprocess.run(
        words,
        cwd=folder,
        env={**kept, "PATH": path, "PYTHONPATH": sources},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_page_has_the_files_that_are_tried_here():
    assert set(MARKED) == {"route.yaml", "evaluate.sh", "pre-commit", ".pre-commit-config.yaml"}


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_yaml_can_be_read(path):
    for text in blocks(path.read_text(encoding="utf-8"), "yaml"):
        assert isinstance(yaml.safe_load(text), (dict, list)), text


@needs_command
@pytest.mark.parametrize(
    ("policy", "code", "said", "counts"),
    [
        (None, 0, "every bar is met", ("2", "0", "0")),
        (BAD, 1, "a bar is missed, see reports/summary.md", ("2", "1", "0")),
        ("import nowhere_at_all\n", 2, "no result, see above", ("1", "0", "1")),
    ],
)
def test_script_leaves_with_the_code_of_the_policy(policy, code, said, counts, place):
    if policy is not None:
        (place / "policy.py").write_text(policy, encoding="utf-8")
    (place / "reports").mkdir()
    (place / "reports" / "old.xml").write_text("of an earlier job")
    done = shell(place, "bash", "evaluate.sh")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (code, said), done
    suites = ElementTree.parse(place / "reports" / "junit.xml").getroot()
    assert (suites.get("tests"), suites.get("failures"), suites.get("errors")) == counts
    assert sorted(path.name for path in (place / "reports").iterdir()) == [
        "episodes.csv",
        "junit.xml",
        "summary.md",
    ]
    lines = (place / "reports" / "episodes.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == (1 if code == 2 else 51)


@needs_command
@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
@pytest.mark.parametrize(("policy", "code"), [(None, 0), (BAD, 0), (BROKEN, 2), ("def predict(", 2)])
def test_hook_stops_a_policy_that_cannot_be_played(policy, code, place):
    """A bad policy passes: four short episodes say nothing of how good it is."""
    if policy is not None:
        (place / "policy.py").write_text(policy, encoding="utf-8")
    assert shell(place, "git", "init", "-q").returncode == 0
    assert shell(place, "bash", "pre-commit").returncode == code


def test_both_hooks_run_one_command():
    (hook,) = yaml.safe_load(MARKED[".pre-commit-config.yaml"])["repos"][0]["hooks"]
    words = shlex.split(hook["entry"])
    assert words[:2] == ["rlmesh", "eval"]
    assert shlex.split(MARKED["pre-commit"].splitlines()[-1]) == ["exec", *words]


def test_flags_of_the_page_are_those_of_the_command():
    known = set(re.findall(r"--[a-z][a-z-]+", CliRunner().invoke(app, ["eval", "--help"]).output))
    used = [
        line for text in blocks(CI, "bash") + blocks(CI, "yaml") for line in text.replace("\\\n", " ").splitlines()
    ]
    flags = {flag for line in used if "rlmesh eval" in line for flag in re.findall(r"--[a-z][a-z-]+", line)}
    assert {"--route", "--gate", "--junit", "--summary", "--csv"} <= flags <= known


def test_exit_codes_of_the_page_are_those_of_the_command():
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", CI, flags=re.M)}
    assert codes == {int(code) for code in Exit} | {141}
