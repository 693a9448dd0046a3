"""CSV: a line an episode that says what `episodes.jsonl` says."""

from __future__ import annotations

import csv
import io
import json
import math

import pytest
from cli_toys import errored, play, policy_file, row

from rlmesh_cli.reports.csv_rows import csv_text

HEADER = (
    "index,seed,episode_id,length,return,end,success,success_final,success_any,success_at_reset,start_hash,"
    "trace_hash,policy_calls,clipped_actions,error_phase,error_step,error_message"
)


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


def test_header_stands_even_where_nothing_was_played():
    assert csv_text([]) == HEADER + "\n"


def test_metrics_have_a_column_each_and_what_is_not_known_is_empty():
    rows = [row(0, seed=None, metrics={"a,b": 0.1, "n": None}, success=True), row(1, metrics={"late": 2.0})]
    first, second = read(csv_text(rows, ["n", "never"]))
    assert list(first)[14:18] == ["metric.n", "metric.never", "metric.a,b", "metric.late"]
    assert (first["seed"], first["metric.a,b"], first["metric.n"], first["success"]) == ("", "0.1", "", "true")
    assert (second["seed"], second["metric.a,b"], second["metric.late"], second["success"]) == (
        "101",
        "",
        "2.0",
        "",
    )


@pytest.mark.parametrize("value", [0.1 + 0.2, 1e-300, -0.0, 1e22, math.pi, math.inf, -math.inf, math.nan])
def test_number_that_is_read_is_the_number_that_was_written(value):
    (line,) = read(csv_text([row(0, return_=value)]))
    assert repr(float(line["return"])) == repr(value)


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)"])
def test_error_that_a_spreadsheet_would_take_for_a_formula_gets_an_apostrophe(text):
    (line,) = read(csv_text([errored(0, text)]))
    assert line["error_message"] == "'" + text


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("[red]gear[/red], \"x\" 'y'", "[red]gear[/red], \"x\" 'y'"),
        ("two\nlines", "two\nlines"),
        ("a=1", "a=1"),
        ("\x00\x1b\ud800", "\\x00\\x1b\\ud800"),
        ("\t=1", "'\\t=1"),
    ],
)
def test_text_of_users_stays_in_its_cell(text, seen):
    (line,) = read(csv_text([errored(0, text)]))
    assert line["error_message"] == seen
    assert (line["error_phase"], line["error_step"], line["end"]) == ("step", "1", "error")


def typed(cell: str, like: object) -> object:
    """Return a cell as the kind of value that JSON has in its place."""
    if cell == "":
        return None
    if isinstance(like, bool):
        return {"true": True, "false": False}[cell]
    return type(like)(cell)


@pytest.mark.parametrize("env", ["cli_toys:Steps", "cli_toys:Broken", "cli_toys:Unready", "cli_toys:Boxed"])
def test_rows_are_those_of_the_run_folder(env, tmp_path, capsys):
    path = tmp_path / "episodes.csv"
    policy = policy_file(
        tmp_path, "import numpy as np\nclass Policy:\n    def predict(self, obs):\n        return np.int64(1)\n"
    )
    source = "random" if env.endswith("Boxed") else policy
    _, folder = play(
        tmp_path, source, env=env, episodes=5, num_envs=2, metrics=("seed", "none"), csv=path, is_probed=False
    )
    rows = [json.loads(line) for line in (folder / "episodes.jsonl").read_text().splitlines()]
    rows.sort(key=lambda record: record["index"])
    with path.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file, strict=True))
    assert len(lines) == len(rows) == 5
    for line, record in zip(lines, rows, strict=True):
        error = record["error"] or {"phase": None, "step": None, "message": None}
        flat = {
            **{name: record[name] for name in HEADER.split(",") if not name.startswith("error_")},
            **{f"metric.{name}": value for name, value in record["metrics"].items()},
            **{f"error_{name}": error[name] for name in ("phase", "step", "message")},
        }
        assert {name: typed(cell, flat[name]) for name, cell in line.items()} == flat
        assert line.keys() == flat.keys()


def test_file_does_not_depend_on_the_number_of_lanes(tmp_path, capsys):
    texts = set()
    for lanes in (1, 3):
        path = tmp_path / f"{lanes}.csv"
        play(tmp_path, "zero", episodes=7, num_envs=lanes, csv=path, out=tmp_path / f"runs-{lanes}")
        texts.add(path.read_bytes())
    assert len(texts) == 1
