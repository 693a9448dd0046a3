"""`rlmesh runs`: what a folder of runs holds, damaged ones among it."""

from __future__ import annotations

import json
import sys
from subprocess import run as run_process

import pytest
from stored import change_json, golden_copy, rows, stored, written
from typer.testing import CliRunner

from rlmesh_cli.app import app
from rlmesh_cli.store import RunStore

NAMES = ["20260101T000000Z-CartPole-v1-policy-abcd", "20260102T000000Z-CartPole-v1-policy-ef01"]


def listed(*arguments: object, columns: int = 140) -> str:
    result = CliRunner().invoke(app, ["runs", *map(str, arguments)], env={"COLUMNS": str(columns)})
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(name="parent")
def _parent(tmp_path):
    """Return a folder with the golden run, and one that was killed and reports no success."""
    golden_copy(tmp_path, NAMES[0])
    written(
        tmp_path / NAMES[1], stored(rows([None, None]), seeds=[0, 1, 2], status="running", policy__label="[b]")
    )
    return tmp_path


def test_newest_comes_first_with_its_result(parent):
    assert listed("--out", parent).splitlines()[1:5] == [
        " run                                        env           policy   status     episodes           result"
        "   started                 ",
        "-" * 130,
        f" {NAMES[1]}   CartPole-v1   [b]      killed          2/3         return 0   2026-11-30 08:50:56 UTC ",
        f" {NAMES[0]}   CartPole-v1   policy   finished        4/4   success 75.0 %   2026-11-30 08:50:56 UTC ",
    ]


def test_narrow_terminal_keeps_the_names_whole(parent):
    lines = listed("--out", parent, columns=80).splitlines()
    assert lines[3:5] == [
        f"{NAMES[1]} killed        2/3       return 0",
        f"{NAMES[0]} finished      4/4 success 75.0 %",
    ]


def test_damaged_run_is_listed_as_such_and_hides_no_other(parent):
    change_json(parent / NAMES[1], "run.json", lambda record: record.update(schema="rlmesh.run.v2"))
    shown = listed("--out", parent)
    assert f" {NAMES[1]}   -             -        damaged           -" in shown
    assert "run.json was written by a newer rlmesh: its schema is rlmesh.run.v2" in shown
    assert f" {NAMES[0]}   CartPole-v1" in shown


def test_json_says_the_same(parent):
    (parent / NAMES[0] / "run.json").unlink()
    record = json.loads(listed("--out", parent, "--json"))
    assert (record["schema"], record["folder"]) == ("rlmesh.runs.v1", str(parent))
    newest, damaged = record["runs"]
    assert newest == {
        "name": NAMES[1],
        "folder": str(parent / NAMES[1]),
        "env": "CartPole-v1",
        "policy": "[b]",
        "status": "killed",
        "started_at": "2026-11-30T08:50:56+00:00",
        "episodes": 2,
        "planned": 3,
        "success_rate": None,
        "mean_return": 0.0,
        "damage": None,
    }
    assert damaged["name"] == NAMES[0]
    assert damaged["damage"]["cause"].endswith("is not a run: it holds no run.json")


def test_folder_without_runs_says_so(tmp_path):
    assert listed("--out", tmp_path) == f"no runs in {tmp_path}\n"
    assert json.loads(listed("--out", tmp_path, "--json"))["runs"] == []


def test_folder_that_is_not_there_is_named(tmp_path):
    result = CliRunner().invoke(app, ["runs", "--out", str(tmp_path / "none")])
    assert result.exit_code == 2
    assert f"no runs can be listed in {tmp_path / 'none'}: No such file" in result.stderr
    assert "  mend  " in result.stderr


@pytest.mark.parametrize("verb", ["runs", "show", "compare"])
def test_help_starts_neither_gymnasium_nor_numpy(verb):
    code = (
        "import sys\nfrom rlmesh_cli.app import app\n"
        f"try: app(['{verb}', '--help'])\nexcept SystemExit: pass\n"
        "sys.exit(bool({'gymnasium', 'numpy', 'scipy', 'pandas', 'yaml'} & set(sys.modules)))"
    )
    done = run_process([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("verb", [("runs",), ("show", "latest"), ("compare", "abcd", "ef01")])
def test_reading_starts_neither_gymnasium_nor_scipy(verb, parent):
    code = (
        "import sys\nfrom rlmesh_cli.app import app\n"
        f"try: app([*{verb!r}, '--out', {str(parent)!r}])\nexcept SystemExit as left: code = left.code\n"
        "loaded = {'gymnasium', 'scipy', 'pandas'} & set(sys.modules)\n"
        "sys.exit(str(loaded) if loaded or code not in (0, 1, 2, 3) else 0)"
    )
    done = run_process([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_run_that_somebody_is_at_is_running(parent):
    store = RunStore.reopen(parent / NAMES[1])
    try:
        assert f"{NAMES[1]} running " in listed("--out", parent, columns=80)
    finally:
        store.close()
    assert f"{NAMES[1]} killed " in listed("--out", parent, columns=80)
