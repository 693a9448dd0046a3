"""A metric that an episode last reported as nan or infinite is kept as that, and no gate on it passes."""

from __future__ import annotations

import json
import math
import pickle
from pathlib import Path
from typing import Any

import pytest
from cli_toys import row
from running import Played, play, read_run, unarranged
from typer.testing import CliRunner

from rlmesh_adapters.advisories import Advisory
from rlmesh_cli.app import app
from rlmesh_cli.evaluation_command import Request
from rlmesh_cli.evaluation_command import run as run_command
from rlmesh_cli.row_reader import read_lines
from rlmesh_cli.shards.messages import Report
from rlmesh_cli.tallies import Tally

#: The last of four episodes ends with a number that is none to be held against a bar.
ENDS = {"inf": "[[1],[1],[1],[2,'inf']]", "-inf": "[[1],[1],[1],[2,'-inf']]", "nan": "[[1],[1],[1],[2,'nan']]"}


def run(tmp_path: Path, speeds: str, **flags: Any) -> Played:
    flags.setdefault("episodes", speeds.count("],[") + 1)
    return play(tmp_path, "zero", "odd_toys:Measures", env_args=(f"speeds={speeds}",), **flags)


def printed(*arguments: Any) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.output


@pytest.mark.parametrize("flags", [{}, {"num_envs": 2, "vectorization": "async"}, {"workers": 2}], ids=str)
@pytest.mark.parametrize("op", ["<=", ">=", "!="])
@pytest.mark.parametrize("end", ENDS)
def test_no_gate_passes_where_an_episode_ends_with_it(
    tmp_path: Path, end: str, op: str, flags: dict[str, Any]
) -> None:
    played = run(tmp_path, ENDS[end], gates=(f"speed {op} 3",), **flags)
    assert (played.code, played.summary["gates"][0]["passed"]) == (1, False)
    assert played.rows[3]["metrics"] == {"speed": None}
    assert played.rows[3]["nonfinite"] == ["metrics.speed"]
    assert played.rows[3].get("infinite") == (None if end == "nan" else {"metrics.speed": end})
    told = played.advisory("metric-unreadable")
    assert told is not None
    assert (told["subject"], told["count"]) == ("speed", 1)


def test_what_is_missed_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path, ENDS["inf"], gates=("speed <= 3",))
    assert "missed speed <= 3: speed is inf" in capsys.readouterr().out


def test_a_number_that_comes_after_it_counts(tmp_path: Path) -> None:
    played = run(tmp_path, "[[inf,1],[nan,2]]", gates=("speed == 1.5",))
    assert (played.code, played.summary["metrics"]["speed"]["n"]) == (0, 2)
    told = played.advisory("metric-unreadable")
    assert told is not None
    assert told["count"] == 2


@pytest.mark.parametrize("end", ENDS)
def test_what_tells_of_the_run_says_which(tmp_path: Path, end: str) -> None:
    played = run(tmp_path, ENDS[end], gates=("speed <= 3",), csv=tmp_path / "rows.csv")
    assert played.folder is not None
    assert _numbers(played.folder) == ["1.0", "1.0", "1.0", end]
    _, shown = printed("show", played.folder)
    assert f"speed mean {end}," in " ".join(shown.split())
    assert (tmp_path / "rows.csv").read_text().splitlines()[4].count(f",{end},") == 1
    assert json.loads(printed("show", played.folder, "--json")[1])["metrics"] == played.summary["metrics"]
    code, replayed = printed("replay", played.folder, 3)
    assert (code, "identical" in replayed) == (0, True)
    pytest.importorskip("plotly")
    assert printed("report", played.folder)[0] == 0


def _numbers(folder: Path) -> list[str]:
    rows = [one for _, one in read_lines(folder / "episodes.jsonl").rows]
    return [str(one.metrics["speed"]) for one in rows]


@pytest.mark.parametrize("flags", [{"workers": 2}, {"num_envs": 3, "verify_lanes": 4}], ids=str)
def test_episodes_that_end_with_nan_alike_repeat_one_another(tmp_path: Path, flags: dict[str, Any]) -> None:
    """One nan is no other nan by its value."""
    speeds = ",".join(["[1,nan]"] * 6)
    played = run(tmp_path, f"[{speeds}]", gates=("speed <= 3",), **flags)
    alone = run(tmp_path, f"[{speeds}]", gates=("speed <= 3",))
    assert unarranged(played.rows) == unarranged(alone.rows)
    assert played.summary["starts"] == alone.summary["starts"]
    assert played.summary["starts"]["effective"] == 1
    assert flags.get("verify_lanes") is None or played.summary["verification"]["verdict"] == "invariant"


def test_a_run_that_is_gone_on_with_still_knows_it(tmp_path: Path) -> None:
    """What was read back repeats what is played now."""
    speeds = ",".join(["[1,nan]"] * 12)
    played = run(tmp_path, f"[{speeds}]", episodes=6, gates=("speed <= 3",))
    assert played.folder is not None
    code = int(run_command(Request(resume=str(played.folder), out=played.out, extend=6, quiet=True)))
    longer = read_run(played.out, code)
    assert (code, len(longer.rows), longer.summary["starts"]["effective"]) == (1, 12, 1)


def test_a_worker_sends_the_nan_that_this_process_knows() -> None:
    report = Report((row(0, metrics={"v": math.nan, "w": 1.0, "x": None}),), Tally(), dict[str, Advisory]())
    (sent,) = pickle.loads(pickle.dumps(report)).rows
    assert sent.metrics["v"] is math.nan
    assert (sent.metrics["w"], sent.metrics["x"]) == (1.0, None)
