"""`rlmesh show`: a run as its evaluation printed it, from what is on disk."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path

import pytest
from cli_toys import ZERO, errored, play, policy_file, row
from stored import GOLDEN, change_json, change_line, golden_copy, rows, stored, written
from typer.testing import CliRunner

from rlmesh_cli.app import app


def show(*arguments: object, columns: int = 100) -> str:
    result = CliRunner().invoke(app, ["show", *map(str, arguments)], env={"COLUMNS": str(columns)})
    assert result.exit_code == 0, result.output
    return result.stdout


def refusal(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["show", *map(str, arguments)])
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert [result.stderr.count(part) for part in ("rlmesh: ", "  at    ", "  mend  ")] == [1, 1, 1], result.stderr
    return result.stderr


COLUMNS = 120


def test_tables_are_those_that_eval_printed(tmp_path, capsys, monkeypatch):
    policy = policy_file(tmp_path, ZERO)
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    _, folder = play(tmp_path, policy, episodes=20, num_envs=3, gates=("success_rate >= 0.9", "speed > 1"))
    printed = capsys.readouterr().out
    assert folder is not None
    shown = show(folder, columns=COLUMNS)
    assert shown.endswith(printed)
    assert shown.startswith("run\n env      cli_toys:Steps ")
    assert "not measured   MISSED" in shown


def test_run_that_missed_its_bars_is_shown_all_the_same(tmp_path):
    folder = golden_copy(tmp_path)
    change_json(folder, "run.json", lambda record: record["route"].update(gates=["mean_return > 499"]))
    assert "missed mean_return > 499: mean_return is 458.5" in show(folder)


def test_all_lists_every_episode(tmp_path):
    folder = written(tmp_path / "run", stored(rows([True] * 30)))
    assert "first 8 and worst 4 of the others; --all lists 30" in show(folder)
    assert "episodes (all 30)" in show(folder, "--all")


def test_run_that_was_killed_is_added_up_and_says_so(tmp_path):
    folder = golden_copy(tmp_path)
    (folder / "summary.json").unlink()
    change_json(folder, "run.json", lambda record: record.update(status="running", finished_at=None))
    file = folder / "episodes.jsonl"
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:3]) + b'{"index":3')
    shown = show(folder, columns=140)
    assert "no summary.json: it was killed; 3 of 4 episodes are added up here" in shown
    assert " status   killed " in shown
    assert json.loads(show(folder, "--json"))["status"] == "killed"
    assert "the last line of episodes.jsonl is half written and left out" in shown
    assert "episodes      3 of 4" in shown
    assert "success       2 of 3 (66.7 %)" in shown
    assert "return        mean 444.67 (95 % interval " in shown
    assert ", std 95.84, median 500, iqm 444.67, min 334, max 500" in " ".join(shown.split())
    assert "time " not in shown
    assert "asked 1,334 times for an episode  " in shown


def test_killed_run_as_json_has_the_sums_and_no_times(tmp_path):
    folder = golden_copy(tmp_path)
    (folder / "summary.json").unlink()
    record = json.loads(show(folder, "--json"))
    assert (record["schema"], record["mean_return"], record["success_rate"]) == ("rlmesh.summary.v1", 458.5, 0.75)
    assert (record["time"], record["is_torn"]) == (None, False)
    assert len(record["notes"]) == 1


def test_json_of_a_finished_run_says_what_its_summary_says(tmp_path):
    policy = policy_file(tmp_path, ZERO)
    _, folder = play(tmp_path, policy, episodes=20, num_envs=3, gates=("iqm_return > 1", "speed > 1"), quiet=True)
    assert folder is not None
    summary = json.loads((folder / "summary.json").read_text())
    record = json.loads(show(folder, "--json"))
    assert {name: record[name] for name in summary} == summary
    assert {name for name in record if name not in summary} == {"started_at", "is_torn", "discarded", "notes"}


def test_json_of_a_run_of_the_first_release_says_what_its_summary_says():
    record = json.loads(show(GOLDEN, "--json"))
    stored_summary = json.loads((GOLDEN / "summary.json").read_text())
    for name, value in _leaves(stored_summary):
        # Where it was played is another place here; counts of the loop stand beside its times since.
        if name[0] == "run" or (
            len(name) == 1 and name[0] in ("vector_steps", "calls", "call_rows", "steps_per_second")
        ):
            continue
        found = record
        for part in name:
            found = found[part]
        if name == ("gates",):  # a gate says by now what it was held against
            found = [{key: gate[key] for key in value[at]} for at, gate in enumerate(found)]
        assert found == (value if name != ("time", "harness") else pytest.approx(value)), name
    # The policy answers row by row: what was called one call then were as many as rows.
    assert (record["time"]["calls"], record["time"]["vector_steps"]) == (
        stored_summary["call_rows"],
        stored_summary["vector_steps"],
    )
    assert record["notes"] == []


def _leaves(value, path=()):
    if not isinstance(value, dict):
        yield path, value
        return
    for name, part in value.items():
        yield from _leaves(part, (*path, name))


def test_row_that_was_edited_shows_against_the_summary(tmp_path):
    folder = golden_copy(tmp_path)
    change_line(folder, 1, lambda line: line.update({"return": 434.0}))
    assert "summary.json says mean_return 458.5, but its rows add up to 483.5: one of them was edited" in show(
        folder, columns=140
    )
    change_line(folder, 1, lambda line: line.update({"success": True}))
    assert "summary.json says success_rate 0.75, but its rows add up to 1" in show(folder, columns=140)


def test_episodes_after_an_early_stop_are_said_not_to_count(tmp_path):
    folder = written(tmp_path / "run", stored(rows([True, False, True, True]), stopped_at=3, status="finished"))
    assert "stopped after 3 episodes; 1 that were played beyond are not counted" in show(folder, columns=140)


def test_run_that_somebody_is_at_goes_on(tmp_path):
    folder = golden_copy(tmp_path)
    (folder / "summary.json").unlink()
    change_json(folder, "run.json", lambda record: record.update(status="running", finished_at=None))
    with (folder / "episodes.jsonl").open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        shown = show(folder, columns=140)
    assert "no summary.json: it goes on; 4 of 4 episodes are added up here" in shown
    assert " status   running " in shown


def test_policy_is_shown_with_its_arguments(tmp_path):
    folder = written(tmp_path / "run", stored(rows([True]), route__policy__params={"gain": -1, "note": "x" * 200}))
    assert " policy   policy (gain=-1, note=xxx" in show(folder)


def test_text_of_users_is_shown_as_it_is(tmp_path):
    made = stored([row(0), errored(1, "RuntimeError: [red]gear[/red] \x1b[2J :smile:")], policy__label="[b]p[/b]")
    shown = show(written(tmp_path / "run", made), columns=140)
    assert "[b]p[/b]" in shown
    assert "[red]gear[/red]" in shown
    assert "\x1b" not in shown
    assert ":smile:" in shown


@pytest.mark.parametrize("columns", [80, 140])
def test_no_line_is_wider_than_the_terminal(columns):
    assert max(map(len, show(GOLDEN, columns=columns).splitlines()[:-1])) <= columns


def test_run_without_a_finished_episode_is_refused(tmp_path):
    folder = written(tmp_path / "run", stored([], seeds=[0, 1]))
    assert "run run holds no finished episode" in refusal(folder)


def test_gate_that_was_edited_is_named(tmp_path):
    folder = golden_copy(tmp_path)
    change_json(folder, "run.json", lambda record: record["route"].update(gates=["fast"]))
    assert "`fast` is not a gate" in refusal(folder)


def test_run_is_found_in_the_folder_that_is_named(tmp_path):
    golden_copy(tmp_path)
    assert "CartPole-v1" in show("abcd", "--out", tmp_path)
    assert "CartPole-v1" in show("latest", "--out", tmp_path)
    assert "there is no run `xyz`" in refusal("xyz", "--out", tmp_path)


def test_damage_is_a_message_and_no_traceback(tmp_path):
    folder = golden_copy(tmp_path)
    (folder / "run.json").write_text("{")
    assert "run.json is damaged" in refusal(folder)
    assert "is not there, nor" not in refusal(Path("nowhere"), "--out", tmp_path)


def test_run_of_several_sittings_counts_no_calls_and_times_the_last(tmp_path):
    """Calls and times are those of the last sitting, episodes those of all."""
    folder = golden_copy(tmp_path)
    assert " calls" in show(folder)
    sessions = [{"argv": ["eval"], "played": 1}, {"argv": ["eval", "--resume"], "played": 1}]
    change_json(folder, "run.json", lambda record: record.update(sessions=sessions))
    shown = show(folder)
    assert " calls" not in shown.partition("returns")[0]
    assert "time of the last sitting" in shown
