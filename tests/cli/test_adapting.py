"""Routes with documents: where they come from, how a mistake in one is told, what the record keeps of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from typer.testing import CliRunner

from rlmesh_cli.app import app

TAGS = """\
env_tags:
  observation:
    type: split
    fields:
      - {role: x/cart, dim: 2}
      - {role: x/pole, dim: 2}
  action:
    components:
      - {role: x/push, dim: 1}
"""
SPEC = """\
model_spec:
  input: {type: state, components: [x/pole]}
  output: {components: [{role: x/push, dim: 1, select: index}]}
"""
POLICY = """\
import numpy as np


class Lean:
    def predict_batch(self, obs):
        assert obs.shape[1:] == (2,), obs.shape
        return (obs.sum(1) > 0)[:, None]


class Speaks(Lean):
    spec = {
        "input": {"type": "state", "components": ["x/pole"]},
        "output": {"components": [{"role": "x/push", "dim": 1, "select": "index"}]},
    }
"""


class Tagged(gym.Env[Any, Any]):
    """Speaks for itself: its metadata holds its tags. Pays the action it is driven with."""

    metadata = {  # noqa: RUF012 - as in gymnasium
        "render_modes": [],
        "rlmesh.adapters.v1.env_tags": {
            "observation": {"at": {"type": "state", "role": "x/at"}},
            "action": {"components": [{"role": "x/go", "dim": 1}]},
        },
    }
    observation_space = gym.spaces.Dict({"at": gym.spaces.Box(-9, 9, (1,), np.float32)})
    action_space = gym.spaces.Box(-2, 2, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._steps = 0
        return {"at": np.zeros(1, np.float32)}, {}

    def step(self, action: Any) -> Any:
        self._steps += 1
        return {"at": np.full(1, self._steps, np.float32)}, float(action[0]), False, self._steps == 3, {}


gym.register("AdaptingTagged-v0", entry_point=Tagged, max_episode_steps=10)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "policy.py").write_text(POLICY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def route(folder: Path, body: str, env: str = "CartPole-v1", policy: str = "policy.py:Lean") -> str:
    text = f"version: 1\nenv: {{id: {env}}}\npolicy: {{source: '{policy}'}}\nepisodes: 3\n{body}"
    (folder / "route.yaml").write_text(text)
    return str(folder / "route.yaml")


def rlmesh(*words: str) -> Any:
    return CliRunner(env={"COLUMNS": "140"}).invoke(app, list(words))


def record(folder: Path) -> dict[str, Any]:
    (run,) = (folder / "runs").iterdir()
    return json.loads((run / "run.json").read_text())


def test_documents_of_the_route_stand_before_everything(files):
    result = rlmesh("eval", "--route", route(files, TAGS + SPEC), "--num-envs", "2")
    assert result.exit_code == 0, result.output
    kept = record(files)
    assert kept["adapter"] == [
        "observation:",
        '  "<root>" <- concat(<root>[2:4])',
        "action:",
        '  "x/push" <- model[0:1] (index of 2)',
    ]
    assert kept["route"]["env_tags"]["action"] == {"components": [{"role": "x/push", "dim": 1}]}


def test_the_policys_own_spec_does(files):
    assert rlmesh("eval", "--route", route(files, TAGS, policy="policy.py:Speaks")).exit_code == 0
    assert record(files)["adapter"][1] == '  "<root>" <- concat(<root>[2:4])'


def test_tags_of_the_environments_metadata_do(files):
    (files / "go.py").write_text(
        "spec = {'input': {'s': {'type': 'state', 'components': ['x/at']}},\n"
        "        'output': {'components': [{'role': 'x/go', 'dim': 1, 'range': [0, 1]}]}}\n"
        "def predict(obs):\n    return [obs['s'][0] / 2]\n"
    )
    result = rlmesh("eval", "go.py", "--env", "AdaptingTagged-v0", "--episodes", "2", "--json")
    assert result.exit_code == 0, result.output
    # 0, 0.5 and 1 of the model's range are -2, 0 and 2 of the environment's.
    assert json.loads(result.stdout)["mean_return"] == 0.0
    (use,) = record(files)["actuators"]
    assert use == {"role": "x/go", "values": 6, "clipped": 0, "saturated": 4}


def test_what_is_out_of_range_is_clipped_and_counted(files):
    (files / "go.py").write_text(
        "spec = {'input': {'type': 'state', 'components': ['x/at']},\n"
        "        'output': {'components': [{'role': 'x/go', 'dim': 1}]}}\n"
        "def predict(obs):\n    return [obs[0] * 3]\n"
    )
    result = rlmesh("eval", "go.py", "--env", "AdaptingTagged-v0", "--episodes", "2", "--json")
    summary = json.loads(result.stdout)
    # 0, 3 and 6 become 0, 2 and 2.
    assert summary["mean_return"] == 4.0
    assert summary["clipped_actions"] == 4
    (use,) = record(files)["actuators"]
    assert use == {"role": "x/go", "values": 6, "clipped": 4, "saturated": 4}


def test_a_policy_without_spec_sees_a_tagged_environment_as_it_is(files):
    (files / "raw.py").write_text("def predict(obs):\n    return obs['at']\n")
    result = rlmesh("eval", "raw.py", "--env", "AdaptingTagged-v0", "--episodes", "1")
    assert result.exit_code == 0
    assert "it sees raw observations" in " ".join(result.output.split())


def test_built_in_policies_need_no_spec(files):
    assert rlmesh("eval", "random", "--route", route(files, TAGS + SPEC)).exit_code == 0
    assert record(files)["adapter"] is None


# what is put into the file, the words and the place that the message must have
MISTAKES = [
    (TAGS.replace("dim: 2}", "dim: two}", 1) + SPEC, ["non-negative integer", "route.yaml:9", "fields[0].dim"]),
    (TAGS.replace("x/push, dim: 1", "x/push, dims: 1") + SPEC, ["needs `dim`", "route.yaml:13"]),
    (TAGS.replace("type: split", "type: splat") + SPEC, ["needs state role"]),
    (TAGS + SPEC.replace("x/pole", "x/poel"), ['"x/poel"', '"x/pole"', "did you mean"]),
    (TAGS + SPEC.replace("select: index", "select: idnex"), ["must be one of argmax, index, threshold", "index"]),
    (TAGS + SPEC.replace("dim: 1, select", "dim: 3, select"), ["model outputs 3 dims", "needs 1"]),
    (TAGS.replace("dim: 2}", "dim: 3}", 1) + SPEC, ["sums to 5 dims but the space width is 4"]),
    (TAGS, ["neither it nor the policy has a model spec"]),
    (SPEC, ["the environment is not tagged"]),
    (TAGS + SPEC + "ensemble: {decay: -1}\n", ["ensemble.decay must be", ">= 0"]),
    (TAGS + SPEC + "ensemble: {decay: 0.1}\n", ["nothing to average", "horizon is 1"]),
    (TAGS + SPEC.replace("components: [x/pole]", "components: [x/pole], size: 3"), ['unrecognized field "size"']),
]


@pytest.mark.parametrize(("body", "words"), MISTAKES, ids=[str(number) for number in range(len(MISTAKES))])
def test_a_mistake_is_one_message_and_leaves_nothing(files, body, words):
    result = rlmesh("eval", "--route", route(files, body))
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    for word in words:
        assert word in result.output
    assert "mend" in result.output or "at " in result.output
    assert not (files / "runs").exists()


def test_statistics_come_from_a_file_beside_the_route(files):
    (files / "stats.json").write_text(json.dumps({"pole": {"mean": [0, 0], "std": [0.5, 0.25]}}))
    part = "{role: x/pole, normalize: {kind: mean_std, file: stats.json, key: pole}}"
    body = TAGS + SPEC.replace("[x/pole]", f"[{part}]")
    shown = json.loads(rlmesh("explain", "--route", route(files, body), "--json").stdout)
    assert shown["inputs"][0]["steps"] == [
        "x/pole from observation[2:4], by statistics (mean_std): * [2, 4] + [0, 0]"
    ] or shown["inputs"][0]["steps"] == [
        "x/pole from observation[2:4], by statistics (mean_std): * [2, 4] + [-0, -0]"
    ]


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("{kind: quantile, file: stats.json, key: pole}", ["needs `q01`", "it has: mean, std"]),
        ("{kind: mean_std, file: stats.json, key: pol}", ["has no `pol`", "it has: pole"]),
        ("{kind: mean_std, file: stast.json}", ["no such statistics file: stast.json", "stats.json"]),
        ("{kind: mean_std, mean: [0, 0]}", ["needs `std`, which is missing"]),
    ],
)
def test_a_statistic_that_is_missing_is_named(files, part, words):
    (files / "stats.json").write_text(json.dumps({"pole": {"mean": [0, 0], "std": [1, 1]}}))
    body = TAGS + SPEC.replace("[x/pole]", f"[{{role: x/pole, normalize: {part}}}]")
    result = rlmesh("eval", "--route", route(files, body))
    assert result.exit_code == 2
    for word in words:
        assert word in result.output


def test_functions_of_a_document_run_only_when_they_are_trusted(files):
    (files / "mine.py").write_text("def halve(obs):\n    return obs[2:] / 2\n")
    body = TAGS + SPEC.replace("{type: state, components: [x/pole]}", "{type: custom, transform: 'mine:halve'}")
    refused = rlmesh("explain", "--route", route(files, body))
    assert refused.exit_code == 2
    assert "--trust-entrypoints" in refused.output
    shown = rlmesh("explain", "--route", route(files, body), "--trust-entrypoints")
    assert shown.exit_code == 0, shown.output
    assert "mine:halve(observation), lane by lane" in shown.output
    assert rlmesh("eval", "--route", route(files, body), "--trust-entrypoints").exit_code == 0
    verified = rlmesh("eval", "--route", route(files, body), "--trust-entrypoints", "--verify-lanes", "2")
    assert verified.exit_code == 0, verified.output


def test_workers_hand_on_what_the_environment_says_of_itself(files):
    (files / "go.py").write_text(
        "spec = {'input': {'type': 'state', 'components': ['x/at']},\n"
        "        'output': {'components': [{'role': 'x/go', 'dim': 1}]}}\n"
        "def predict(obs):\n    return obs\n"
    )
    workers = ("--num-envs", "2", "--vectorization", "async", "--start-method", "fork")
    result = rlmesh("eval", "go.py", "--env", "AdaptingTagged-v0", "--episodes", "2", *workers, "--json")
    assert result.exit_code == 0, result.output
    # 0, 1 and 2 are paid as they are.
    assert json.loads(result.stdout)["mean_return"] == 3.0


def test_strict_makes_cautions_count(files):
    # Whoever puts out what nobody takes should know.
    body = TAGS + SPEC.replace("components: [{role: x/push", "components: [{role: x/horn, dim: 1}, {role: x/push")
    policy = POLICY.replace("[:, None]", "[:, None].repeat(2, 1)")
    (files / "policy.py").write_text(policy)
    assert rlmesh("explain", "--route", route(files, body)).exit_code == 0
    assert rlmesh("explain", "--route", route(files, body), "--strict").exit_code == 1
    assert rlmesh("eval", "--route", route(files, body), "--strict").exit_code == 1
