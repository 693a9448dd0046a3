"""`rlmesh report` and `eval --report`: where the page is put, what is refused, and how it leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_toys import ROOT, Refusals, errored, play
from pages_toys import run_folder
from stored import GOLDEN, change_json, change_line, golden_copy, rows
from typer.testing import CliRunner

from rlmesh_cli import evaluation_command
from rlmesh_cli.app import app
from rlmesh_cli.evaluation import RunInterruptedError
from rlmesh_cli.pages import extra


class Desk:
    """A folder of runs, and the command on them."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys

    def put(self, name: str, made, **changes) -> Path:
        return run_folder(self.folder / name, made, **changes)

    def report(self, *arguments: str, code: int = 0) -> str:
        """Return what was said; of a refusal the only message, with cause, place and mend."""
        found = CliRunner().invoke(app, ["report", *arguments, "--out", str(self.folder)])
        said = self._capsys.readouterr().err or found.stderr
        assert found.exit_code == code, (found.output, said)
        if code:
            assert "Traceback" not in said
            assert [said.count(part) for part in ("rlmesh: ", "\n  at    ", "\n  mend  ")] == [1, 1, 1], said
            return said
        return found.stdout


@pytest.fixture
def desk(tmp_path, capsys) -> Desk:
    return Desk(tmp_path, capsys)


def test_page_is_put_into_the_folder_of_the_last_run_and_it_is_said_where(desk):
    desk.put("base", rows([True, False]))
    new = desk.put("new", rows([True, True]))
    assert desk.report("new") == f"report {new / 'report.html'}\n"
    one = (new / "report.html").read_text(encoding="utf-8")
    assert "new against base" not in one
    assert desk.report("base", "new") == f"report {new / 'report.html'}\n"
    assert "<title>new against base</title>" in (new / "report.html").read_text(encoding="utf-8")
    assert not (desk.folder / "base" / "report.html").exists()


def test_run_is_found_as_show_finds_it(desk):
    folder = golden_copy(desk.folder)
    for name in ("latest", "abcd", str(folder), folder.name):
        assert desk.report(name) == f"report {folder / 'report.html'}\n"
    assert "there is no run `nothing`" in desk.report("nothing", code=2)


def test_page_is_put_where_the_flag_says(desk):
    folder = desk.put("run", rows([True, False]))
    file = desk.folder / "page.html"
    assert desk.report("run", "--file", str(file)) == f"report {file}\n"
    assert file.read_bytes().lstrip().startswith(b"<!doctype html>")
    assert sorted(path.name for path in folder.iterdir()) == ["episodes.jsonl", "run.json"]


def test_page_on_standard_output_is_alone_there(tmp_path):
    run_folder(tmp_path / "run", rows([True]))
    path = os.pathsep.join(map(str, (ROOT, ROOT / "adapters", ROOT / "envs")))
    words = [sys.executable, "-m", "rlmesh_cli", "report", str(tmp_path / "run"), "--file", "/dev/stdout"]
    done = subprocess.run(words, env={**os.environ, "PYTHONPATH": path}, capture_output=True, check=True)
    assert done.stdout.lstrip().startswith(b"<!doctype html>")
    assert done.stdout.rstrip().endswith(b"</html>")


def test_page_on_standard_output_links_from_where_it_goes(tmp_path):
    """Into a file, links start from there; into a pipe, from where we were called."""
    folder = run_folder(tmp_path / "run", rows([True]))
    (folder / "steps").mkdir()
    (folder / "steps" / "ep-000001.parquet").write_bytes(b"PAR1")
    path = os.pathsep.join(map(str, (ROOT, ROOT / "adapters", ROOT / "envs")))
    words = [sys.executable, "-m", "rlmesh_cli", "report", str(folder), "--file", "/dev/stdout"]
    keywords = {"env": {**os.environ, "PYTHONPATH": path}, "check": True, "cwd": tmp_path}
    piped = subprocess.run(words, stdout=subprocess.PIPE, **keywords).stdout
    assert b'"run/steps/ep-000001.parquet"' in piped
    (tmp_path / "pages").mkdir()
    with (tmp_path / "pages" / "page.html").open("wb") as file:
        subprocess.run(words, stdout=file, **keywords)
    assert b'"../run/steps/ep-000001.parquet"' in (tmp_path / "pages" / "page.html").read_bytes()


def test_file_that_cannot_be_written_is_refused(desk):
    desk.put("run", rows([True]))
    said = desk.report("run", "--file", str(desk.folder / "none" / "page.html"), code=2)
    assert "there is no folder" in said
    assert "at    --file" in said


@pytest.mark.parametrize("name", ["run.json", "episodes.jsonl", "videos/ep-000001.mp4"])
def test_page_never_takes_the_place_of_what_a_run_holds(name, desk):
    folder = desk.put("run", rows([True]))
    file = folder / name
    file.parent.mkdir(exist_ok=True)
    held = file.read_bytes() if file.exists() else b"video"
    file.write_bytes(held)
    desk.put("other", rows([True]))
    said = desk.report("run", "other", "--file", str(file), code=2)
    assert f"{file} belongs to run `run`" in said
    assert "name another file, such as page.html" in said
    assert file.read_bytes() == held


def test_run_whose_folder_takes_no_page_is_told_of_the_flag(desk):
    folder = desk.put("run", rows([True]))
    (folder / "report.html").mkdir()
    said = desk.report("run", code=2)
    assert "report.html is a folder" in said
    assert "put the page elsewhere: --file report.html" in said


@pytest.mark.parametrize("library", ["jinja2", "plotly"])
def test_missing_extra_is_one_message_that_names_it(library, desk, monkeypatch):
    desk.put("run", rows([True]))
    real = extra.find_spec
    monkeypatch.setattr(extra, "find_spec", lambda name: None if name == library else real(name))
    said = desk.report("run", code=2)
    assert f"{library} is not installed" in said
    assert "pip install 'rlmesh-cli[report]'" in said


def test_run_without_a_finished_episode_is_refused(desk):
    desk.put("empty", [], seeds=[0, 1])
    assert "holds no finished episode" in desk.report("empty", code=2)
    assert not (desk.folder / "empty" / "report.html").exists()


def test_two_runs_are_judged_as_compare_judges_them(desk):
    desk.put("base", rows([True] * 40), env__id="CartPole-v1")
    desk.put("new", rows([True] * 20 + [False] * 20), route__horizon=4)
    said = desk.report("base", "new", code=2)
    assert "horizon" in said
    desk.report("base", "new", "--allow", "horizon", "--margin", "10%", "--alpha", "0.1")
    page = (desk.folder / "new" / "report.html").read_text(encoding="utf-8")
    assert "NEW is worse than BASE at alpha 0.1" in page
    assert "the runs differ in horizon too" in page
    assert "80 % interval" in page


def test_two_runs_of_which_one_was_edited_are_not_compared(desk):
    folder = Path(golden_copy(desk.folder, "20260101T000000Z-one"))
    golden_copy(desk.folder, "20260101T000001Z-two")
    change_json(folder, "summary.json", lambda plain: plain.update(success_rate=1.0))
    said = desk.report("one", "two", code=2)
    assert "one of them was edited" in said
    desk.report("one")  # shown with a note
    assert "one of them was edited" in (folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("names", [("one",), ("one", "two", "three")])
def test_only_two_runs_can_part(names, desk):
    for name in names:
        desk.put(name, rows([True]))
    said = desk.report(*names, "--first-divergence", code=2)
    assert "cannot part from one another" in said
    assert "name two runs" in said


def test_page_says_how_to_find_the_first_divergence_or_what_it_is(desk):
    base = golden_copy(desk.folder, "20260101T000000Z-one")
    new = golden_copy(desk.folder, "20260101T000001Z-two")
    desk.report("one", "two")
    page = (new / "report.html").read_text(encoding="utf-8")
    assert f"rlmesh compare {base} {new} --first-divergence" in page
    desk.report("one", "two", "--first-divergence")
    page = (new / "report.html").read_text(encoding="utf-8")
    assert "first divergence: none; every pair took the same actions and was paid the same rewards" in page


def test_page_is_written_though_no_episode_can_be_played_again(desk):
    golden_copy(desk.folder, "20260101T000000Z-one")
    new = golden_copy(desk.folder, "20260101T000001Z-two")
    change_line(new, 1, lambda line: line.update(trace_hash="f" * 16))
    said = desk.report("one", "two", "--first-divergence", code=2)
    assert said.startswith("rlmesh: no divergence could be looked for: no such policy file: ")
    page = (new / "report.html").read_text(encoding="utf-8")
    assert "no divergence could be looked for: no such policy file: " in page
    assert "Not looked for, as an episode" not in page


def test_run_of_the_first_release_is_reported(desk):
    """It has rows without what came later; what it said is in its own summary."""
    folder = golden_copy(desk.folder)
    desk.report(str(folder))
    told = json.loads((GOLDEN / "summary.json").read_text(encoding="utf-8"))
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert f"{told['success_rate'] * 100:.1f} % of {told['episodes']} episodes succeeded" in page


# eval --report


def test_eval_writes_the_page_when_the_run_is_over(tmp_path, capsys):
    code, folder = play(tmp_path, "zero", episodes=3, report=True)
    said = capsys.readouterr()
    assert code == 0
    assert folder is not None
    assert f"rlmesh: report {folder / 'report.html'}\n" in said.err
    assert "report.html" not in said.out
    assert (folder / "report.html").stat().st_size > 1_000_000


def test_eval_writes_it_too_where_a_bar_was_missed_and_where_the_file_says(tmp_path, capsys):
    file = tmp_path / "page.html"
    code, folder = play(tmp_path, "zero", episodes=3, gates=("mean_return > 1000",), report_file=file)
    assert code == 1
    assert folder is not None
    assert not (folder / "report.html").exists()
    page = file.read_text(encoding="utf-8")
    assert "bar missed" in page
    assert "mean_return &gt; 1000" in page


def test_cautions_are_a_missed_bar_where_the_run_was_strict(desk):
    caution = {"code": "made-up", "severity": "caution", "message": "a camera is black", "count": 1}
    for name, argv in (("strict", ["eval", "--strict"]), ("lenient", ["eval"])):
        folder = desk.put(name, rows([True]), advisories=[caution], sessions=[{"argv": argv}])
        desk.report(name)
        page = (folder / "report.html").read_text(encoding="utf-8")
        assert ("1 caution, bar 0" in page) == (name == "strict")
        assert "a camera is black" in page


def test_eval_writes_it_too_where_the_run_was_broken_off(tmp_path, capsys, monkeypatch):
    _, folder = play(tmp_path, "zero", episodes=3, quiet=True)

    def evaluate(*arguments, **keywords):
        raise RunInterruptedError(folder)

    monkeypatch.setattr(evaluation_command, "evaluate", evaluate)
    assert play(tmp_path, "zero", episodes=3, report=True)[0] == 130
    assert folder is not None
    assert (folder / "report.html").exists()


def test_eval_that_left_nothing_leaves_no_page(tmp_path, capsys, monkeypatch):
    def evaluate(*arguments, **keywords):
        raise KeyboardInterrupt

    monkeypatch.setattr(evaluation_command, "evaluate", evaluate)
    file = tmp_path / "page.html"
    assert play(tmp_path, "zero", episodes=3, report=True, report_file=file)[0] == 130
    assert not file.exists()


def test_interrupted_run_has_a_page_of_what_was_played(tmp_path):
    """A signal to the process itself."""
    path = os.pathsep.join(map(str, (ROOT / "tests", ROOT, ROOT / "adapters", ROOT / "envs")))
    policy = tmp_path / "slow.py"
    policy.write_text(
        "import time\nclass Policy:\n    def predict(self, obs):\n        time.sleep(0.01); return 0\n"
    )
    words = [sys.executable, "-m", "rlmesh_cli", "eval", str(policy), "--env", "cli_toys:Steps", "-n", "5000"]
    process = subprocess.Popen(
        [*words, "--report", "--out", str(tmp_path / "runs"), "-q", "--no-probe"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        found = list((tmp_path / "runs").glob("*/episodes.jsonl"))
        if found and found[0].read_bytes().count(b"\n") >= 3:
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    (page,) = (tmp_path / "runs").glob("*/report.html")
    assert f"rlmesh: report {page}" in said
    assert 'class="verdict caution">interrupted<' in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("flags", [{"report": True}, {"report_file": "page.html"}])
def test_missing_extra_is_said_before_the_first_episode(flags, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(extra, "find_spec", lambda name: None)
    given = {name: tmp_path / value if isinstance(value, str) else value for name, value in flags.items()}
    said = Refusals(tmp_path, capsys).message("zero", **given)
    assert "jinja2 and plotly are not installed" in said
    assert f"at    --{next(iter(flags)).replace('_', '-')}" in said
    assert "pip install 'rlmesh-cli[report]'" in said


def test_page_of_eval_that_cannot_be_written_is_found_before_the_first_episode(tmp_path, capsys):
    said = Refusals(tmp_path, capsys).message("zero", report_file=tmp_path / "none" / "page.html")
    assert "there is no folder" in said
    assert "at    --report-file" in said
    said = Refusals(tmp_path, capsys).message("zero", report_file=tmp_path / "one", csv=tmp_path / "one")
    assert "is named by --csv as well" in said


def test_run_whose_episodes_all_errored_has_a_page(desk):
    folder = desk.put("broken", [errored(0), errored(1)])
    desk.report("broken")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "2 episodes errored" in page
