"""Run reader: what a folder holds, and what is said where it is damaged, edited or not there."""

from __future__ import annotations

import math
import os
import re
import shutil

import pytest
from cli_toys import errored, mended, row
from stored import GOLDEN, change_json, change_line, golden_copy, rows, stored, written

from rlmesh_adapters.errors import HarnessError
from rlmesh_cli.run_reader import find_in, find_run, list_runs, read_run
from rlmesh_cli.stored_evaluation import evaluation_of
from rlmesh_cli.tables import verification_text

ROWS = rows([True, False])


def refusal(call, *arguments) -> str:
    """Return the text of the error, which has cause, place and mend."""
    with pytest.raises(HarnessError) as caught:
        call(*arguments)
    return str(mended(caught.value))


def test_run_of_the_first_release_is_read():
    run = read_run(GOLDEN)
    assert [(one.index, one.seed, one.length, one.return_, one.success) for one in run.rows] == [
        (0, 0, 334, 334.0, False),
        (1, 1, 500, 500.0, True),
        (2, 2, 500, 500.0, True),
        (3, 3, 500, 500.0, True),
    ]
    assert (run.planned, run.is_seeded, run.is_torn, run.discarded) == (4, True, False, 0)
    assert run.record["status"] == "finished"
    assert run.summary is not None
    assert run.summary["success_rate"] == 0.75


def test_rows_come_in_order_of_the_plan(tmp_path):
    folder = written(tmp_path / "run", stored(rows([True, False, None])))
    lines = (folder / "episodes.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "episodes.jsonl").write_bytes(b"".join(reversed(lines)))
    assert [one.index for one in read_run(folder).rows] == [0, 1, 2]


def test_return_that_was_infinite_comes_back_as_it_was(tmp_path):
    run = read_run(written(tmp_path / "run", stored([row(0, return_=math.inf), row(1, return_=-math.inf)])))
    assert [one.return_ for one in run.rows] == [math.inf, -math.inf]


def test_return_of_an_older_run_that_does_not_say_which_infinity_it_was_is_nan(tmp_path):
    folder = written(tmp_path / "run", stored([row(0, return_=math.inf)]))
    change_line(folder, 1, lambda plain: plain.pop("infinite"))
    assert math.isnan(read_run(folder).rows[0].return_)


@pytest.mark.parametrize("flags", [{"nonfinite": 5}, {"infinite": {"return": "huge"}}])
def test_flags_of_a_row_that_were_edited_are_named_with_their_line(tmp_path, flags):
    folder = written(tmp_path / "run", stored([row(0, return_=math.inf)]))
    change_line(folder, 1, lambda plain: plain.update(flags))
    assert re.search(
        rf"(?s)line 1 is no row .*`\$\.{next(iter(flags))}.*episodes.jsonl:1", refusal(read_run, folder)
    )


@pytest.mark.parametrize("torn", [b'{"index":3,"se', b"{", b"\xff\xfe", b"\0\0\0", b'{"index": 3}'])
def test_last_line_without_its_end_is_left_out_and_noted(torn, tmp_path):
    folder = written(tmp_path / "run", stored(rows([True, False, True, True])))
    file = folder / "episodes.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:3]) + torn)
    run = read_run(folder)
    assert [one.index for one in run.rows] == [0, 1, 2]
    assert run.is_torn
    assert run.summary is None


def test_run_without_episodes_has_no_rows(tmp_path):
    run = read_run(written(tmp_path / "run", stored([], seeds=[7, 8])))
    assert (run.rows, run.is_torn, run.planned) == ([], False, 2)


def test_rows_after_an_early_stop_do_not_count(tmp_path):
    made = stored(rows([True, False, True, True, False]), stopped_at=3)
    run = read_run(written(tmp_path / "run", made))
    assert [one.index for one in run.rows] == [0, 1, 2]
    assert run.discarded == 2


def test_fields_that_are_not_known_yet_are_passed_by(tmp_path):
    folder = golden_copy(tmp_path)
    change_line(folder, 1, lambda line: line.update(mood="calm"))
    change_json(folder, "run.json", lambda record: record.update(mood="calm"))
    run = read_run(folder)
    assert len(run.rows) == 4
    assert run.record["mood"] == "calm"


def test_seeds_are_not_held_against_a_run_that_could_not_seed(tmp_path):
    run = stored([row(0, seed=None), row(1, seed=None)], seeds=[3, 4], seeded=False)
    assert [one.seed for one in read_run(written(tmp_path / "run", run)).rows] == [None, None]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b'{"index":0,"see\n', "line 3 is damaged: "),
        (b"\n", "line 3 is damaged: Input data was truncated"),
        (b"\xff\n", "line 3 is damaged: JSON is malformed"),
        (b"[]\n", "line 3 is no row of an episode: Expected `object`, got `array`"),
        (b"[" * 100_000 + b"\n", "line 3 is"),
    ],
)
def test_broken_line_that_is_not_the_torn_last_one_is_an_error_with_its_number(line, words, tmp_path):
    folder = golden_copy(tmp_path)
    file = folder / "episodes.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([*lines[:2], line, *lines[3:]]))
    said = refusal(read_run, folder)
    assert words in said
    assert f"{file}:3" in said


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"return": "9"}, "Expected `float`, got `str` - at `$.return`"),
        ({"success": 1}, "Expected `bool | null`, got `int` - at `$.success`"),
        ({"seconds": {"env": "x"}}, "at `$.seconds.env`"),
        ({"end": "won"}, "Invalid enum value 'won' - at `$.end`"),
        ({"index": 4, "episode_id": "ep-000005"}, "index 4 is outside the plan of 4 episodes, 0 to 3"),
        ({"index": -1}, "index -1 is outside the plan"),
        ({"episode_id": "ep-000009"}, "episode_id 'ep-000009' does not belong to index 1, which is 'ep-000002'"),
        ({"seed": 77}, "seed 77 of index 1 is not the planned one, 1"),
        ({"seed": None}, "seed None of index 1 is not the planned one, 1"),
        ({"index": 0, "episode_id": "ep-000001", "seed": 0}, "index 0 stands twice: in lines 1 and 2"),
        ({"end": "error"}, "index 1 ended with 'error', but holds no error"),
    ],
)
def test_row_that_was_edited_is_an_error(change, words, tmp_path):
    folder = golden_copy(tmp_path)
    change_line(folder, 2, lambda line: line.update(change))
    said = refusal(read_run, folder)
    assert words in said
    assert f"{folder / 'episodes.jsonl'}:2" in said


def test_row_that_lacks_a_field_is_an_error(tmp_path):
    folder = golden_copy(tmp_path)
    change_line(folder, 2, lambda line: line.pop("length"))
    assert "Object missing required field `length`" in refusal(read_run, folder)


def test_error_that_ended_otherwise_was_edited(tmp_path):
    folder = written(tmp_path / "run", stored([errored(0)]))
    change_line(folder, 1, lambda line: line.update(end="truncated"))
    assert "index 0 ended with 'truncated', but holds an error" in refusal(read_run, folder)


def test_what_is_no_run_is_named(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    assert f"{tmp_path / 'none'} is not there" in refusal(read_run, tmp_path / "none")
    assert f"{tmp_path / 'file'} is a file" in refusal(read_run, tmp_path / "file")
    said = refusal(read_run, tmp_path / "empty")
    assert f"{tmp_path / 'empty'} is not a run: it holds no run.json" in said


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("rlmesh.run.v2", "run.json was written by a newer rlmesh: its schema is rlmesh.run.v2"),
        ("rlmesh.run.v10", "update rlmesh"),
        ("rlmesh.summary.v1", "the schema of run.json is 'rlmesh.summary.v1', where rlmesh.run.v1 is meant"),
        (None, "run.json has no `schema`"),
        (1, "the schema of run.json is 1"),
    ],
)
def test_other_schema_is_named(schema, words, tmp_path):
    folder = golden_copy(tmp_path)
    change_json(folder, "run.json", lambda record: record.update(schema=schema))
    assert words in refusal(read_run, folder)


@pytest.mark.parametrize("name", ["run.json", "summary.json"])
@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"schema": ', "{name} is damaged: Input data was truncated"),
        (b"\xff", "{name} is damaged: JSON is malformed"),
        (b"", "{name} is damaged"),
        (b"[" * 100_000, "{name} is damaged"),
        (b"[1]", "{name} holds no JSON object"),
    ],
)
def test_damaged_json_is_named(name, data, words, tmp_path):
    folder = golden_copy(tmp_path)
    (folder / name).write_bytes(data)
    said = refusal(read_run, folder)
    assert words.format(name=name) in said
    assert str(folder / name) in said


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda record: record.pop("seeds"), "Object missing required field `seeds`"),
        (lambda record: record.update(seeds=[0, "1"]), "Expected `int`, got `str` - at `$.seeds[1]`"),
        (lambda record: record.update(git="main"), "Expected `object | null`, got `str` - at `$.git`"),
        (lambda record: record.update(host=[1]), "Expected `object | null`, got `array` - at `$.host`"),
        (
            lambda record: record.update(sessions=[{"played": -1}]),
            "write null there: an rlmesh of before miscounted",
        ),
        (lambda record: record.update(sessions=[1]), "Expected `object`, got `int` - at `$.sessions[0]`"),
        (lambda record: record.update(actuators=["arm"]), "Expected `object`, got `str` - at `$.actuators[0]`"),
        (
            lambda record: record["probe"].update(tests=5),
            "Expected `array | null`, got `int` - at `$.probe.tests`",
        ),
        (
            lambda record: record["route"]["policy"].update(params=[1]),
            "Expected `object | null`, got `array` - at `$.route.policy.params`",
        ),
        (lambda record: record["route"].update(horizon="8"), "at `$.route.horizon`"),
        (lambda record: record["route"]["env"].pop("id"), "`id` - at `$.route.env`"),
    ],
)
def test_field_of_the_record_with_another_type_is_named(change, words, tmp_path):
    folder = golden_copy(tmp_path)
    change_json(folder, "run.json", change)
    said = refusal(read_run, folder)
    assert "run.json is not as a run writes it" in said
    assert words in said


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"instances": "many"}, "Invalid enum value 'many' - at `$.instances`"),
        ({"time": {"total": "long"}}, "at `$.time.total`"),
        ({"gates": [{"gate": "errors == 0"}]}, "at `$.gates[0]`"),
        ({"baseline": {"claim": {}}}, "at `$.baseline.claim`"),
        ({"controls": [1]}, "at `$.controls[0]`"),
        ({"verification": {"verdict": 1}}, "at `$.verification.verdict`"),
        ({"verification": {"verdict": "differs", "episodes": 3, "first": {}}}, "at `$.verification.first`"),
    ],
)
def test_field_of_the_summary_with_another_type_is_named(change, words, tmp_path):
    folder = golden_copy(tmp_path)
    change_json(folder, "summary.json", lambda summary: summary.update(change))
    said = refusal(read_run, folder)
    assert "summary.json is not as a run writes it: " in said
    assert words in said


def test_missing_rows_are_named(tmp_path):
    folder = golden_copy(tmp_path)
    (folder / "episodes.jsonl").unlink()
    assert "episodes.jsonl cannot be read: No such file" in refusal(read_run, folder)
    (folder / "episodes.jsonl").mkdir()
    assert "episodes.jsonl cannot be read: Is a directory" in refusal(read_run, folder)


NAMES = [
    "20260101T000000Z-CartPole-v1-policy-abcd",
    "20260102T000000Z-CartPole-v1-policy-ef01",
    "20260301T000000Z-PushT-v1-other-2345",
]


@pytest.fixture(name="parent")
def _parent(tmp_path):
    """Return a folder of three runs, made in another order than that of their names."""
    for name in (NAMES[2], NAMES[0], NAMES[1]):
        golden_copy(tmp_path / "runs", name)
    (tmp_path / "runs" / "notes").mkdir()
    (tmp_path / "runs" / "README.md").touch()
    return tmp_path / "runs"


def test_runs_are_listed_newest_first_and_nothing_else_is(parent):
    assert [path.name for path in list_runs(parent)] == NAMES[::-1]


def test_damaged_runs_are_listed_too(parent):
    (parent / NAMES[0] / "run.json").unlink()
    (parent / NAMES[1] / "run.json").write_text("{")
    assert [path.name for path in list_runs(parent)] == NAMES[::-1]


def test_run_whose_folder_was_renamed_is_listed_by_when_it_changed(parent):
    shutil.copytree(GOLDEN, parent / "baseline")
    os.utime(parent / "baseline", (1_770_000_000, 1_770_000_000))  # in February 2026
    assert [path.name for path in list_runs(parent)] == [NAMES[2], "baseline", NAMES[1], NAMES[0]]


def test_folder_of_runs_that_is_not_there_is_named(tmp_path):
    assert "No such file" in refusal(list_runs, tmp_path / "none")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        (NAMES[1], NAMES[1]),
        ("abcd", NAMES[0]),
        ("policy-ef01", NAMES[1]),
        ("202603", NAMES[2]),
        ("latest", NAMES[2]),
    ],
)
def test_run_is_found_by_name_or_by_how_it_alone_begins_or_ends(name, found, parent):
    assert find_run(name, parent) == parent / found


def test_run_is_found_by_its_path(parent, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_run(str(parent / NAMES[0]), tmp_path / "elsewhere") == parent / NAMES[0]
    assert find_run(f"runs/{NAMES[0]}/", tmp_path / "elsewhere").name == NAMES[0]


def test_path_that_is_no_run_is_read_and_named_as_such(parent):
    assert "is not a run" in refusal(read_run, find_run(str(parent / "notes"), parent))


def test_folder_that_holds_one_run_means_that_run(tmp_path, monkeypatch):
    run = golden_copy(tmp_path / "base")
    monkeypatch.chdir(tmp_path)
    for name in ("base", "base/", "./base", str(tmp_path / "base")):
        assert find_run(name, tmp_path / "runs").resolve() == run
        assert find_in(name, (tmp_path / "runs",)).resolve() == run
    # One that a route file names is beside that file.
    monkeypatch.chdir(tmp_path / "base")
    assert find_in("base", (tmp_path, tmp_path / "runs")) == run


def test_folder_that_holds_several_runs_names_those(parent, tmp_path):
    golden_copy(tmp_path / "others", "20270101T000000Z-other")
    with pytest.raises(HarnessError) as caught:
        find_run(str(parent), tmp_path / "others")
    error = mended(caught.value)
    assert (error.cause, error.where) == (f"{parent} holds 3 runs, and one is meant", str(parent))
    listed = ", ".join(str(parent / name) for name in NAMES[::-1])
    assert error.mend == f"name one: {listed}; {parent / 'latest'} is the newest"
    for hour in range(4):
        golden_copy(parent, f"20250101T0{hour}0000Z-old")
    assert f"20250101T020000Z-old and 2 more; {parent / 'latest'}" in refusal(find_run, str(parent), tmp_path)


@pytest.mark.parametrize(
    ("name", "found"), [("latest", NAMES[2]), ("202603", NAMES[2]), ("policy-ef01", NAMES[1])]
)
def test_run_is_found_by_a_part_of_its_name_in_the_folder_that_is_typed(
    name, found, parent, tmp_path, monkeypatch
):
    """And not in that of `--out`."""
    golden_copy(tmp_path / "others", "20270101T000000Z-other")
    monkeypatch.chdir(tmp_path)
    assert find_run(f"runs/{name}", tmp_path / "others").resolve() == parent / found
    assert find_in(f"runs/{name}", (tmp_path / "others",)).resolve() == parent / found
    assert find_in(f"runs/{name}", (tmp_path, tmp_path / "others")) == parent / found


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("runs/202601", f"`202601` means 2 runs: {NAMES[1]}, {NAMES[0]}"),
        ("runs/none", f"there is no run `none`; the newest are {NAMES[2]}, {NAMES[1]}, {NAMES[0]}"),
        (
            "runs/none",
            "write the name as `rlmesh runs --out runs` lists it, or `latest` in its place for the newest",
        ),
        ("runs/notes/latest", "there is no run `latest`, nor any other in runs/notes"),
    ],
)
def test_part_of_a_name_that_means_none_is_told_what_is_in_the_folder_that_is_typed(
    name, words, parent, tmp_path, monkeypatch
):
    golden_copy(tmp_path / "others", "20270101T000000Z-other")
    monkeypatch.chdir(tmp_path)
    assert words in refusal(find_run, name, tmp_path / "others")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("202601", f"`202601` means 2 runs: {NAMES[1]}, {NAMES[0]}"),
        ("PushT", f"there is no run `PushT`; near to it are {NAMES[2]}"),
        ("20260301T000000Z-PushT-v1-other-2346", f"near to it are {NAMES[2]}"),
        ("zzz", f"the newest are {NAMES[2]}, {NAMES[1]}, {NAMES[0]}"),
        ("", "there is no run ``"),
        ("x" * 5000, "there is no run `xxx"),
    ],
)
def test_name_that_means_no_run_is_told_what_is_near(name, words, parent):
    said = refusal(find_run, name, parent)
    assert words in said
    assert str(parent) in said


def test_where_there_are_no_runs_none_is_near(tmp_path):
    assert f"there is no run `latest`, nor any other in {tmp_path}" in refusal(find_run, "latest", tmp_path)
    assert "nor any other" in refusal(find_run, "x", tmp_path / "none")


def test_folder_of_the_same_name_that_is_no_run_is_passed_by(tmp_path):
    """Such as one called `latest`, or the folder of an experiment."""
    run = written(tmp_path / "runs" / "20260101T000000Z-a", stored(ROWS))
    for name in ("latest", "20260101"):
        (tmp_path / name).mkdir()
        (tmp_path / "runs" / name).mkdir()
        assert find_in(name, (tmp_path, tmp_path / "runs")) == run
    assert find_in(str(run), (tmp_path,)) == run
    assert "there is no run" in refusal(find_in, "x" * 400, (tmp_path / "runs",))


def test_return_of_a_parting_that_was_not_finite_is_read(tmp_path):
    folder = golden_copy(tmp_path)
    first = {"index": 1, "seed": 1, "step": 2, "leaf": "reward", "dimension": None, "values": [1.0, None]}
    verification = {
        "verdict": "differs",
        "episodes": 2,
        "first": {**first, "length": [3, 3], "return": [3.5, None]},
    }
    change_json(folder, "summary.json", lambda summary: summary.update(verification=verification))
    text = verification_text(evaluation_of(read_run(folder)).verification)
    assert text.endswith("length 3 and 3, return 3.50 and not finite")
