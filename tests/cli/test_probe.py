"""`rlmesh probe`: a verdict for each test, one for all, and what to do next."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rlmesh_cli.app import app

ROOT = Path(__file__).resolve().parents[2]
ZOO = str(ROOT / "tests" / "zoo" / "cartpole.py")


def rlmesh(*words: str, columns: int = 140) -> Any:
    return CliRunner(env={"COLUMNS": str(columns)}).invoke(app, list(words))


VERDICTS = [
    ("Clean", "stateless", 0),
    ("Noisy", "stochastic", 0),
    ("Recurrent", "episode_clean", 0),
    ("Leaking", "leaks", 1),
    ("OnTheClass", "leaks", 1),
    ("Coupled", "couples", 1),
    ("Wrong", "broken", 1),
    ("Normalising", "leaks", 1),
]


@pytest.mark.parametrize(("policy", "verdict", "code"), VERDICTS, ids=[name for name, *_ in VERDICTS])
def test_verdict_and_exit_code(policy, verdict, code):
    """K23, K24: a normaliser that learns is stateful, rows that depend on their neighbours are coupled."""
    result = rlmesh("probe", f"{ZOO}:{policy}", "--env", "CartPole-v1", "--json")
    assert result.exit_code == code, result.output
    told = json.loads(result.stdout)
    assert told["verdict"] == verdict
    assert told["schema"] == "rlmesh.probe.v1"
    assert {"name", "outcome", "sentence", "numbers"} <= set(told["tests"][0])
    assert told["recommended"]


@pytest.mark.parametrize("columns", [80, 140])
@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("Clean", ["verdict stateless", "next: run it as it is"]),
        ("Recurrent", ["verdict episode-clean", "each lane gets an instance of its own"]),
        ("Coupled", ["verdict couples", "--num-envs 1", "is answered otherwise"]),
    ],
)
def test_screen_says_what_to_do_next(policy, words, columns):
    result = rlmesh("probe", f"{ZOO}:{policy}", "--env", "CartPole-v1", columns=columns)
    flat = " ".join(result.output.split())
    for word in words:
        assert word in flat
    table = result.output.split("verdict")[0]
    assert max(map(len, table.splitlines())) <= columns


def test_policy_that_was_left_in_training_mode_is_noted_and_put_back():
    """K22."""
    told = json.loads(rlmesh("probe", f"{ZOO}:InTraining", "--env", "CartPole-v1", "--json").stdout)
    mode = next(test for test in told["tests"] if test["name"] == "mode")
    assert mode["outcome"] == "noted"
    assert told["verdict"] == "stateless"


def test_chunk_corner_is_probed_where_a_run_would_use_it():
    words = ("probe", f"{ZOO}:CountingChunks", "--env", "CartPole-v1", "--json")
    assert json.loads(rlmesh(*words).stdout)["verdict"] == "stateless"
    told = json.loads(rlmesh(*words, "--horizon", "4").stdout)
    assert (told["corner"], told["verdict"]) == ("predict_chunk", "leaks")


def test_route_that_converts_is_probed_through_its_adapter():
    result = rlmesh("probe", "--route", str(ROOT / "examples" / "cartpole_tagged.yaml"), "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["verdict"] == "stateless"


def test_policy_that_cannot_be_built_is_one_message():
    result = rlmesh("probe", f"{ZOO}:Unbuildable", "--env", "CartPole-v1")
    assert result.exit_code == 2
    assert "no weights here" in result.output
    assert "Traceback" not in result.output


def test_policy_that_prints_leaves_the_document_alone():
    assert (
        json.loads(rlmesh("probe", f"{ZOO}:Loud", "--env", "CartPole-v1", "--json").stdout)["verdict"]
        == "stateless"
    )


@pytest.mark.parametrize("budget", ["0", "-1", "nan"])
def test_budget_must_be_seconds(budget):
    result = rlmesh("probe", f"{ZOO}:Clean", "--env", "CartPole-v1", "--budget", budget)
    assert result.exit_code == 2
    assert "--budget" in result.output


def test_what_was_not_checked_within_the_budget_is_listed():
    result = rlmesh("probe", f"{ZOO}:Slow", "--env", "CartPole-v1", "--budget", "0.3", "--json")
    outcomes = {test["name"]: test["outcome"] for test in json.loads(result.stdout)["tests"]}
    assert "not checked" in outcomes.values()


@pytest.mark.parametrize("words", [("probe",), ("probe", "--env-check")])
def test_call_that_does_not_return_is_ended_and_placed(words):
    line = 1 + Path(ZOO).read_text(encoding="utf-8").split("  # this line")[0].count("\n")
    words = (*words, f"{ZOO}:Deadlocked", "--env", "CartPole-v1", "--budget", "0.5", "--json")
    result = rlmesh(*words)
    told = json.loads(result.stdout)
    assert (result.exit_code, told["verdict"]) == (1, "unchecked")
    (time,) = (test for test in told["tests"] if test["name"] == "time")
    assert f"cartpole.py:{line} in predict" in time["sentence"]
    assert "Call 4 had not returned" in time["sentence"]
    assert told["seconds"] < 5


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_reset_that_does_not_return_is_ended_and_placed(number, tmp_path):
    """Whichever it is: an episode of the probe begins without a call too."""
    file = tmp_path / "policy.py"
    file.write_text(
        "import time\n"
        "class Policy:\n    resets = 0\n    def reset(self):\n        Policy.resets += 1\n"
        f"        if Policy.resets == {number}:\n            time.sleep(60)\n"
        "    def predict(self, obs):\n        return 0\n"
    )
    result = rlmesh("probe", str(file), "--env", "CartPole-v1", "--budget", "0.5", "--json")
    told = json.loads(result.stdout)
    assert (result.exit_code, told["verdict"]) == (1, "unchecked")
    (time,) = (test for test in told["tests"] if test["name"] == "time")
    assert "policy.py:7 in reset" in time["sentence"]
    assert told["seconds"] < 5


def few_calls(name: str, folder: Path, *words: str) -> Any:
    """Run a policy of a copy of the zoo, whose module and classes no test has used before."""
    zoo = folder / "zoo_copy.py"
    zoo.write_bytes(Path(ZOO).read_bytes())
    return rlmesh("eval", f"{zoo}:{name}", "--env", "CartPole-v1", "--episodes", "16", "--json", *words)


@pytest.mark.parametrize("name", ["Leaking", "OnTheClass", "Coupled"])
def test_few_calls_before_a_run_refuse_what_would_mix_lanes(name, tmp_path):
    result = few_calls(name, tmp_path, "--num-envs", "8", "--out", str(tmp_path / "runs"))
    assert result.exit_code == 2, result.output
    assert "8 lanes would not mean what one lane means" in result.output
    assert not (tmp_path / "runs").exists()


def test_where_few_calls_cannot_tell_each_episode_gets_an_instance(tmp_path):
    """A caution says so, and the rows are those of new instances on one lane."""
    rows = []
    for lanes, words in (("8", ()), ("1", ("--instances", "episode"))):
        out = tmp_path / f"runs-{lanes}"
        result = few_calls("Normalising", tmp_path, "--num-envs", lanes, "--out", str(out), *words)
        assert result.exit_code == 0, result.output
        if lanes == "8":
            told = json.loads(result.stdout)
            assert "probe-unsure" in [advisory["code"] for advisory in told["advisories"]]
            assert told["probe"]["verdict"] == "unchecked"
        lines = next(out.glob("*/episodes.jsonl")).read_text(encoding="utf-8").splitlines()
        rows.append(sorted((row["index"], row["trace_hash"]) for row in map(json.loads, lines)))
    assert rows[0] == rows[1]


ONCE = """
class Policy:
    built = 0

    def __init__(self):
        Policy.built += 1
        if Policy.built > 1:
            raise RuntimeError("the device is taken")

    def predict(self, obs):
        return int(obs[2] > 0)
"""

DRIFTING = """
import numpy as np

class Policy:
    spec = {
        "input": {"type": "state", "components": ["x/pole_angle", "x/pole_velocity"]},
        "output": {"components": [{"role": "x/push", "dim": 2, "select": "argmax"}]},
    }

    def __init__(self):
        self.calls = 0

    def predict_batch(self, obs):
        self.calls += 1
        lean = obs.sum(1)
        return np.stack([-lean, lean + 1e-3 * self.calls], axis=1)
"""


@pytest.mark.parametrize("command", ["probe", "eval"])
def test_policy_that_can_be_built_once_is_told_what_to_do(command, tmp_path):
    file = tmp_path / f"once_{command}.py"
    file.write_text(ONCE, encoding="utf-8")
    lanes = ("--num-envs", "4") if command == "eval" else ()
    result = rlmesh(command, str(file), "--env", "CartPole-v1", *lanes)
    assert result.exit_code == 2
    flat = " ".join(result.output.split())
    assert "a second instance of the policy cannot be built" in flat
    assert "the device is taken" in flat
    assert "--no-probe with --instances shared" in flat


def test_scores_are_compared_where_a_choice_shows_nothing(tmp_path):
    """A thousandth more a call changes hardly any choice, but every score."""
    file = tmp_path / "drifting.py"
    file.write_text(DRIFTING, encoding="utf-8")
    route = str(ROOT / "examples" / "cartpole_tagged.yaml")
    told = json.loads(rlmesh("probe", str(file), "--route", route, "--json").stdout)
    assert told["verdict"] == "leaks"
    result = rlmesh("eval", str(file), "--route", route, "--num-envs", "4", "--out", str(tmp_path / "runs"))
    assert result.exit_code == 2, result.output
