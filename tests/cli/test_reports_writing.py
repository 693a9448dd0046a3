"""Writing reports: what cannot be written is said before the first episode, what can be is there whole."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from cli_toys import ROOT, Refusals, mended, play
from running import finish, start

from rlmesh_adapters.errors import HarnessError
from rlmesh_cli import evaluation_command
from rlmesh_cli.evaluation import RunInterruptedError
from rlmesh_cli.evaluation_command import Request
from rlmesh_cli.exits import Exit
from rlmesh_cli.reports import writing
from rlmesh_cli.reports.writing import Target, open_target, write_report

FLAGS = ("junit", "summary", "csv")


@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize(
    ("name", "cause", "mend"),
    [
        ("none/file", "there is no folder", "make it first: mkdir -p "),
        (".", "is a folder", "name a file in it, such as "),
        ("plain/file", "cannot be written: Not a directory", "name a file in a folder that is there"),
        ("x" * 300, "cannot be written: File name too long", "name a file in a folder that is there"),
        ("round", "cannot be written", "name a file in a folder that is there"),
    ],
)
def test_file_that_cannot_be_written_is_found_before_the_first_episode(flag, name, cause, mend, tmp_path, capsys):
    (tmp_path / "plain").write_text("")
    (tmp_path / "round").symlink_to("round")
    said = Refusals(tmp_path, capsys).message("zero", **{flag: tmp_path / name})
    assert cause in said
    assert f"at    --{flag}" in said
    assert mend in said


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_folder_and_file_without_permission_are_refused(tmp_path):
    folder = tmp_path / "locked"
    folder.mkdir()
    (folder / "there").write_text("")
    (folder / "there").chmod(0o444)
    with pytest.raises(HarnessError, match="is read-only") as caught:
        open_target(folder / "there", "--csv")
    mended(caught.value)
    folder.chmod(0o555)
    with pytest.raises(HarnessError, match="cannot be written to") as caught:
        open_target(folder / "new", "--csv")
    mended(caught.value)


def test_permission_is_asked_of_the_system(tmp_path, monkeypatch):
    monkeypatch.setattr(writing.os, "access", lambda path, mode: False)
    with pytest.raises(HarnessError, match=r"the folder .* cannot be written to"):
        open_target(tmp_path / "new", "--csv")
    (tmp_path / "there").write_text("")
    with pytest.raises(HarnessError, match="is read-only"):
        open_target(tmp_path / "there", "--csv")


@pytest.mark.parametrize("second", ["one", "./one", "link", "hard"])
def test_two_reports_in_one_file_are_refused(second, tmp_path, capsys):
    (tmp_path / "one").write_text("kept")
    (tmp_path / "link").symlink_to("one")
    (tmp_path / "hard").hardlink_to(tmp_path / "one")
    said = Refusals(tmp_path, capsys).message("zero", junit=tmp_path / "one", csv=tmp_path / second)
    assert "is named by --junit as well" in said
    assert "at    --csv" in said
    assert "mend  give each report a file of its own" in said
    assert (tmp_path / "one").read_text() == "kept"


def test_report_and_json_do_not_share_standard_output(tmp_path):
    out, err = run_process(tmp_path, "--json", "--csv", "/dev/stdout", code=2)
    assert out == b""
    assert b"standard output belongs to the JSON document" in err
    assert b"at    --csv" in err


def run_process(folder: Path, *flags: str, code: int = 0) -> tuple[bytes, bytes]:
    path = os.pathsep.join(map(str, (ROOT / "tests", ROOT, ROOT / "adapters", ROOT / "envs")))
    process = start("zero", "--env", "cli_toys:Steps", "-n", "2", *flags, cwd=folder, PYTHONPATH=path)
    found, out, err = finish(process)
    assert found == code, (out, err)
    return out, err


def test_report_on_standard_output_is_alone_there(tmp_path):
    out, _ = run_process(tmp_path, "--csv", "/dev/stdout")
    assert out.startswith(b"index,seed,")
    assert len(out.splitlines()) == 3


def test_report_on_standard_output_is_whole_where_that_is_a_file(tmp_path):
    path = os.pathsep.join(map(str, (ROOT / "tests", ROOT, ROOT / "adapters", ROOT / "envs")))
    out = "/dev/stdout"
    with (tmp_path / "out.csv").open("wb") as file:
        subprocess.run(
            [
                sys.executable,
                "-m",
                "rlmesh_cli",
                "eval",
                "zero",
                "--env",
                "cli_toys:Steps",
                "-n",
                "2",
                "--csv",
                out,
            ],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": path},
            stdout=file,
            check=True,
        )
    text = (tmp_path / "out.csv").read_text()
    assert text.startswith("index,seed,")
    assert len(text.splitlines()) == 3


def test_pipe_is_written_into(tmp_path, capsys):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    code, _ = play(tmp_path, "zero", episodes=2, csv=pipe)
    reader.join(30)
    assert code == 0
    assert got[0].startswith(b"index,seed,")
    assert pipe.is_fifo()


def test_file_is_there_as_it_was_until_it_is_there_whole(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_text("before")

    def fail(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing.os, "replace", fail)
    with pytest.raises(HarnessError, match="cannot be written: No space left on device") as caught:
        write_report(open_target(path, "--csv"), b"after")
    assert mended(caught.value).where == "--csv"
    assert path.read_text() == "before"
    assert [found.name for found in tmp_path.iterdir()] == ["file"]


def test_link_stays_and_what_it_leads_to_is_written(tmp_path):
    (tmp_path / "real").write_text("before")
    (tmp_path / "link").symlink_to("real")
    write_report(open_target(tmp_path / "link", "--csv"), b"after")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "after"


def test_report_that_fails_after_the_run_costs_neither_the_others_nor_the_tables(tmp_path, capsys, monkeypatch):
    real = writing._WAYS["whole"]

    def fail_for_junit(path, data):
        if path.name == "junit.xml":
            raise OSError(28, "No space left on device")
        real(path, data)

    monkeypatch.setitem(writing._WAYS, "whole", fail_for_junit)
    files = {"junit": tmp_path / "junit.xml", "csv": tmp_path / "rows.csv", "summary": tmp_path / "page.md"}
    code, folder = play(tmp_path, "zero", episodes=2, **files)
    said = capsys.readouterr()
    assert code == Exit.USAGE
    assert "2 of 2" in said.out
    assert "No space left on device" in said.err
    assert "at    --junit" in said.err
    assert (tmp_path / "rows.csv").exists()
    assert (tmp_path / "page.md").exists()
    assert (folder / "summary.json").exists()


def test_names_are_meant_from_where_the_command_was_started(tmp_path, capsys, monkeypatch):
    """A policy file may change the folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    policy = tmp_path / "moves.py"
    policy.write_text("import os\nclass Policy:\n    def predict(self, obs):\n        os.chdir('/'); return 0\n")
    code, _ = play(tmp_path, str(policy), episodes=1, csv=Path("rows.csv"))
    assert code == 0
    assert (tmp_path / "rows.csv").exists()


def test_run_that_was_stopped_at_once_is_reported_from_what_it_left(tmp_path, capsys, monkeypatch):
    _, folder = play(tmp_path, "zero", episodes=3, gates=("errors == 0",), quiet=True)

    def evaluate(*arguments, **keywords):
        raise RunInterruptedError(folder)

    monkeypatch.setattr(evaluation_command, "evaluate", evaluate)
    files = {"junit": tmp_path / "junit.xml", "csv": tmp_path / "rows.csv", "summary": tmp_path / "page.md"}
    assert play(tmp_path, "zero", episodes=3, **files)[0] == 130
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == 4
    assert 'tests="2" failures="0" errors="1" skipped="0"' in (tmp_path / "junit.xml").read_text()
    assert (tmp_path / "page.md").read_text().startswith("## rlmesh: interrupted (exit code 130")


@pytest.mark.parametrize(
    ("error", "code", "cause"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (ZeroDivisionError("ours"), 70, "a bug of rlmesh: ZeroDivisionError"),
        (RunInterruptedError(Path("/nowhere")), 130, "interrupted"),
    ],
)
def test_run_that_left_nothing_is_an_error_with_its_cause(error, code, cause, tmp_path, capsys, monkeypatch):
    def evaluate(*arguments, **keywords):
        raise error

    monkeypatch.setattr(evaluation_command, "evaluate", evaluate)
    files = {"junit": tmp_path / "junit.xml", "csv": tmp_path / "rows.csv", "summary": tmp_path / "page.md"}
    assert play(tmp_path, "zero", **files)[0] == code
    assert f'<error message="{cause}"' in (tmp_path / "junit.xml").read_text()
    assert cause in (tmp_path / "page.md").read_text()
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == 1


def test_target_says_how_it_is_written(tmp_path):
    assert open_target(tmp_path / "new", "--csv") == Target(flag="--csv", path=tmp_path / "new", way="whole")
    assert open_target(Path("/dev/full"), "--csv").way == "stream"
    with pytest.raises(HarnessError, match="/dev/full cannot be written: No space left"):
        write_report(open_target(Path("/dev/full"), "--csv"), b"x")


CODE = """
import sys
from pathlib import Path
from rlmesh_cli.evaluation_command import Request, run
sys.path.insert(0, "tests")
assert run(Request(policy="zero", env="cli_toys:Steps", episodes=1, as_json=True, out=Path(sys.argv[1]))) == 0
unwanted = ("rlmesh_cli.reports", "rlmesh_cli.pages", "jinja2", "plotly", "xml", "rich")
found = [name for name in sys.modules if name.startswith(unwanted)]
assert found == [], found
"""


def test_run_without_reports_imports_nothing_of_them(tmp_path):
    path = os.pathsep.join(map(str, (ROOT, ROOT / "adapters", ROOT / "envs")))
    subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path / "runs")],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.DEVNULL,
        check=True,
    )


@pytest.mark.parametrize("flag", ["junit", "csv", "summary"])
def test_file_that_a_run_is_made_from_is_not_written_over(flag, tmp_path, capsys):
    policy, route = tmp_path / "acts.py", tmp_path / "route.yaml"
    policy.write_text("def predict(obs):\n    return 0\n")
    route.write_text("version: 1\nenv: {id: CartPole-v1}\npolicy: {source: acts.py}\n")
    link = tmp_path / "link.py"
    link.symlink_to(policy)
    before = policy.read_text(), route.read_text()
    for file, what in ((policy, "the policy's file"), (link, "the policy's file"), (route, "the route's file")):
        request = Request(route=route, episodes=1, out=tmp_path / "runs", quiet=True, **{flag: file})
        assert evaluation_command.run(request) == 2
        said = capsys.readouterr().err
        assert f"is {what}, and a report would take its place" in said
        assert f"at    --{flag}" in said
    assert (policy.read_text(), route.read_text()) == before
    assert not (tmp_path / "runs").exists()
