"""What statistics come to is in a run's record: the same policy by other numbers is another evaluation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from running import Played, play
from typer.testing import CliRunner

from rlmesh_cli.app import app

POLICY = """
import numpy as np


class Policy:
    spec = {
        "input": {
            "type": "state",
            "components": [
                {"role": "x/angle", "normalize": {"kind": "mean_std", "file": "stats.json", "key": "angle"}},
                {"role": "x/speed"},
            ],
        },
        "output": {"components": [{"role": "x/push", "dim": 1, "range": [-1, 1]}]},
    }

    def predict_batch(self, obs):
        return np.clip(-obs.sum(axis=1, keepdims=True), -1, 1)
"""
ROUTE = """
version: 1
env: {id: Pendulum-v1, max_episode_steps: 20}
policy: {source: policy.py}
env_tags:
  observation:
    type: split
    fields:
      - {role: x/angle, dim: 2}
      - {role: x/speed, dim: 1}
  action:
    components:
      - {role: x/push, dim: 1, range: [-2, 2]}
episodes: 4
"""
MODEL_SPEC = """
model_spec:
  input:
    type: state
    components:
      - {role: x/angle, normalize: {kind: mean_std, mean: [0.5, 0], std: [2.5, 1]}}
      - {role: x/speed}
  output:
    components:
      - {role: x/push, dim: 1, range: [-1, 1]}
"""


def written(tmp_path: Path, deviation: float) -> Path:
    """Write policy, route and statistics; return the route's file."""
    (tmp_path / "policy.py").write_text(POLICY)
    (tmp_path / "route.yaml").write_text(ROUTE)
    (tmp_path / "stats.json").write_text(json.dumps({"angle": {"mean": [0.5, 0], "std": [deviation, 1]}}))
    return tmp_path / "route.yaml"


def evaluated(tmp_path: Path, deviation: float, **flags: Any) -> Played:
    played = play(tmp_path, None, route=written(tmp_path, deviation), **flags)
    assert played.code == 0
    return played


def said(*words: str) -> tuple[int, str]:
    result = CliRunner(env={"COLUMNS": "200"}).invoke(app, list(words))
    return result.exit_code, " ".join((result.stdout + result.stderr).split())


def test_the_numbers_are_taken_down(tmp_path: Path) -> None:
    """(x - 0.5) / 2.5 is x * 0.4 - 0.2, and the policy's -1..1 are the environment's -2..2."""
    record = evaluated(tmp_path, 2.5).record["conversion"]
    (state,) = record["observation"].values()
    assert state["pieces"][0]["affine"] == {"scale": [0.4, 1], "offset": [-0.2, 0]}
    assert record["action"]["segments"][0]["affine"] == {"scale": 2, "offset": 0}


def test_a_run_is_not_gone_on_with_by_other_statistics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = evaluated(tmp_path, 2.5).folder
    again = play(tmp_path, None, route=written(tmp_path, 0.25), resume=str(run), extend=2)
    assert again.code == 2
    assert "conversion" in capsys.readouterr().err
    same = play(tmp_path, None, route=written(tmp_path, 2.5), resume=str(run), extend=2)
    assert same.code == 0


def test_runs_by_other_statistics_are_refused_and_their_difference_is_not_the_policys_alone(
    tmp_path: Path,
) -> None:
    base, new = evaluated(tmp_path, 2.5).folder, evaluated(tmp_path, 0.25).folder
    code, text = said("compare", str(base), str(new), "--metric", "mean_return")
    assert code == 2
    assert "adapter" in text
    assert "affine.scale: [0.4, 1.0] in BASE, [4.0, 1.0] in NEW" in text
    assert "--allow adapter" in text


@pytest.mark.parametrize("deviation", [2.5, 0.25])
def test_a_replay_names_what_has_changed(tmp_path: Path, deviation: float) -> None:
    run = evaluated(tmp_path, 2.5).folder
    written(tmp_path, deviation)
    code, text = said("replay", str(run), "0")
    assert (code, "conversion" in text) == ((0, False) if deviation == 2.5 else (1, True)), text


def test_where_two_runs_part_by_other_statistics_the_conversion_is_named(tmp_path: Path) -> None:
    """What stands in the route is played again as it was; the policy's file is one and the same."""
    runs = []
    for deviation in (2.5, 0.25):
        route = written(tmp_path, 1)
        route.write_text(ROUTE + MODEL_SPEC.replace("2.5", str(deviation)))
        runs.append(str(play(tmp_path, None, route=route).folder))
    words = ("--metric", "mean_return", "--allow", "adapter", "--first-divergence")
    _, text = said("compare", *runs, *words)
    assert "converted otherwise: the conversion's doing, or the policy's" in text
