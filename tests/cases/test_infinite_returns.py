"""A return that no float can hold is an infinity, and everything that tells of the run says which."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import pytest
from running import Played, play
from typer.testing import CliRunner

from rlmesh_cli.app import app
from rlmesh_cli.run_reader import read_run
from rlmesh_cli.stored_evaluation import contradiction_of, evaluation_of

PAYS = "odd_toys:Pays"
#: Of eight seeds the fourth pays more than a float can hold; the others pay 2, 4, 6, 10, 12, 14, 16.
ONE_TOO_LARGE = "[[1,1],[2,2],[3,3],[1e308,1e308],[5,5],[6,6],[7,7],[8,8]]"
#: Two that only a sum has no float for, and an infinity of each sign.
BOTH = "[[-1e308],[-1e308],[1.7e308,1.7e308],[-1.7e308,-1.7e308]]"


def run(tmp_path: Path, rewards: str, **flags: Any) -> Played:
    episodes = len(json.loads(rewards))
    return play(tmp_path, "zero", PAYS, env_args=(f"rewards={rewards}",), episodes=episodes, **flags)


def told(*arguments: Any) -> str:
    """Return what a command prints, which ends well."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def return_line(text: str) -> str:
    """Return the line of the summary that tells of the returns."""
    return next(line.strip() for line in text.splitlines() if line.strip().startswith("return "))


@pytest.mark.parametrize("flags", [{}, {"num_envs": 2, "vectorization": "async"}], ids=["one", "processes"])
def test_screen_show_summary_and_table_say_the_same_of_a_return_that_is_infinite(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: dict[str, Any]
) -> None:
    """The middle half is 6, 10, 12 and 14, so the gate is passed; it was missed where the infinity was a nan."""
    table = tmp_path / "rows.csv"
    played = run(tmp_path, ONE_TOO_LARGE, gates=("iqm_return >= 5",), quiet=False, csv=table, **flags)
    line = "return    mean inf, std nan, median 11, iqm 10.50, min 2, max inf"
    assert (played.code, return_line(capsys.readouterr().out)) == (0, line)
    shown = told("show", played.folder)
    assert return_line(shown) == line
    assert "iqm_return >= 5   10.50   passed" in shown
    assert played.summary["infinite"] == {"mean_return": "inf", "returns.mean": "inf", "returns.max": "inf"}
    assert (played.rows[3]["return"], played.rows[3]["infinite"]) == (None, {"return": "inf"})
    assert json.loads(told("show", played.folder, "--json"))["returns"] == played.summary["returns"]
    assert [row["return"] for row in csv.DictReader(table.read_text().splitlines())][2:5] == ["6.0", "inf", "10.0"]


def test_page_says_the_same_and_sorts_by_it(tmp_path: Path) -> None:
    pytest.importorskip("plotly")
    played = run(tmp_path, ONE_TOO_LARGE, gates=("iqm_return >= 5",))
    told("report", played.folder)
    assert played.folder is not None
    page = (played.folder / "report.html").read_text(encoding="utf-8")
    assert "mean inf, std nan, median 11, iqm 10.50, min 2, max inf" in page
    assert 'data-key="Infinity">inf<' in page  # what a script reads as a number


def test_infinities_of_both_signs_end_no_run(tmp_path: Path) -> None:
    played = run(tmp_path, BOTH)
    assert played.code == 0
    assert [row.get("infinite") for row in played.rows] == [None, None, {"return": "inf"}, {"return": "-inf"}]
    assert return_line(told("show", played.folder)) == (
        "return    mean nan, std nan, median -1e+308, iqm -1e+308, min -inf, max inf"
    )


def test_run_is_no_contradiction_of_its_own_summary_but_that_of_the_other_infinity_is(tmp_path: Path) -> None:
    played = run(tmp_path, "[[1e308,1e308],[1]]")
    assert played.folder is not None
    stored = read_run(played.folder)
    assert contradiction_of(stored, evaluation_of(stored).summary) is None
    file = played.folder / "summary.json"
    file.write_text(file.read_text().replace('"mean_return": "inf"', '"mean_return": "-inf"'))
    edited = read_run(played.folder)
    assert contradiction_of(edited, evaluation_of(edited).summary) == (
        "summary.json says mean_return -inf, but its rows add up to inf: one of them was edited"
    )


def test_older_run_is_read_as_nan_throughout(tmp_path: Path) -> None:
    """It does not say which infinity it was, so that it has no place among the others."""
    played = run(tmp_path, ONE_TOO_LARGE)
    assert played.folder is not None
    for name in ("episodes.jsonl", "summary.json"):
        file = played.folder / name
        lines = [json.loads(line) for line in file.read_text().splitlines()] if name[0] == "e" else None
        records = lines or [json.loads(file.read_text())]
        file.write_text(
            "".join(json.dumps({k: v for k, v in one.items() if k != "infinite"}) + "\n" for one in records)
        )
    stored = read_run(played.folder)
    assert math.isnan(stored.rows[3].return_)
    assert contradiction_of(stored, evaluation_of(stored).summary) is None
    assert return_line(told("show", played.folder)) == (
        "return    mean nan, std nan, median nan, iqm nan, min nan, max nan"
    )
    assert "identical" in told("replay", played.folder, 3)


def test_replay_tells_one_infinity_from_the_other(tmp_path: Path) -> None:
    played = run(tmp_path, BOTH)
    assert played.folder is not None
    assert "identical" in told("replay", played.folder, 3)
    file = played.folder / "episodes.jsonl"
    file.write_text(file.read_text().replace('"return":"-inf"', '"return":"inf"'))
    result = CliRunner().invoke(app, ["replay", str(played.folder), "3", "--json"])
    (field,) = json.loads(result.output)["fields"]
    assert (result.exit_code, field["name"]) == (1, "return")


def test_run_with_a_control_is_read_again(tmp_path: Path) -> None:
    """The control's numbers in `summary.json` are null where they are not finite."""
    played = run(tmp_path, BOTH, controls="random")
    assert "random" in told("show", played.folder)


def test_pair_of_infinite_returns_is_left_out_of_a_comparison_that_says_so(tmp_path: Path) -> None:
    base, new = run(tmp_path, ONE_TOO_LARGE), run(tmp_path, ONE_TOO_LARGE)
    compared = json.loads(told("compare", base.folder, new.folder, "--json"))
    (metric,) = compared["metrics"]
    assert (metric["pairs"], metric["base"], metric["new"]) == (7, pytest.approx(64 / 7), pytest.approx(64 / 7))


def test_argument_that_is_infinite_is_read_back(tmp_path: Path) -> None:
    """Going on with the run, and playing an episode of it again, need the route as it was."""
    rewards = "[[.inf],[1.0]]"
    played = play(tmp_path, "zero", PAYS, env_args=(f"rewards={rewards}",), episodes=2)
    assert played.folder is not None
    assert read_run(played.folder).record["route"]["env"]["kwargs"] == {"rewards": [[math.inf], [1.0]]}
    assert "identical" in told("replay", played.folder, 1)
