"""`--verify-lanes`: episodes played again on one lane, compared action by action and reward by reward."""

from __future__ import annotations

import json
from typing import Any

import gymnasium as gym
import pytest
from cli_toys import Boxed, Refusals, play, policy_file

from rlmesh_cli.episodes import plan_episodes
from rlmesh_cli.verifying import chosen_episodes

# Observations are [t, seed]; eight lanes of consecutive seeds, so means over the rows are known.
POLICY = """
import numpy as np

class Policy:
    def predict_batch(self, obs):
        seed, t = obs[:, 1], obs[:, 0]
        return np.stack([seed * 0, {second}], 1).astype(np.float32)
"""


class Worn(Boxed):
    """Pays by how often this very environment was reset."""

    resets = 0

    def reset(self, **kwargs):
        self.resets += 1
        return super().reset(**kwargs)

    def step(self, action):
        observation, _, *rest = super().step(action)
        return observation, float(self.resets), *rest


class Split(Boxed):
    action_space = gym.spaces.Dict({"arm": Boxed.action_space, "hand": gym.spaces.Discrete(9)})


def verified(tmp_path, second: str, env: str = "cli_toys:Boxed", **flags: Any) -> tuple[int, dict[str, Any]]:
    policy = policy_file(tmp_path, POLICY.format(second=second))
    return verified_policy(tmp_path, policy, env, **flags)


def verified_policy(tmp_path, policy: str, env: str, **flags: Any) -> tuple[int, dict[str, Any]]:
    asked = {"episodes": 4, "num_envs": 2, "verify_lanes": 4, "is_probed": False, "quiet": True, **flags}
    code, folder = play(tmp_path, policy, env, **asked)
    assert folder is not None
    return code, json.loads((folder / "summary.json").read_text(encoding="utf-8"))["verification"]


def test_rows_that_stand_alone_are_invariant(tmp_path):
    code, told = verified(tmp_path, "np.sin(seed + t)")
    assert (code, told) == (0, {"verdict": "invariant", "episodes": 4, "first": None})


def test_rounding_is_said(tmp_path):
    code, told = verified(tmp_path, "0.5 + 1e-6 * len(obs) + seed * 0")
    assert (code, told["verdict"], told["first"]) == (0, "invariant to 1e-5", None)


def test_first_difference_has_episode_step_leaf_and_values(tmp_path, capsys):
    # Two lanes play seeds 5 and 6 side by side, whose mean is 5.5; alone a seed is its own mean.
    code, told = verified(tmp_path, "np.where(t == 2, (seed - seed.mean()) / 2, 0)", seed=5)
    assert (code, told["verdict"]) == (1, "differs")
    assert told["first"] == {
        "index": 0,
        "seed": 5,
        "step": 2,
        "leaf": "action",
        "dimension": [1],
        "values": [-0.25, 0.0],
        "length": [3, 3],
        "return": [21.0, 21.0],  # 5 + 1, 5 + 2, 5 + 3
    }
    assert (
        "first in episode 0 (seed 5), step 2: action[1] is -0.25, alone 0; length 3 and 3"
        in capsys.readouterr().out
    )


def test_environment_that_wears_out_differs_in_the_reward(tmp_path):
    code, told = verified(tmp_path, "seed * 0", f"{__name__}:Worn")
    # Episode 1 is the first of lane 1, and the second of a lane alone.
    assert (code, told["verdict"]) == (1, "differs")
    first = told["first"]
    assert (first["index"], first["step"], first["leaf"], first["values"]) == (1, 0, "reward", [1.0, 2.0])


def test_leaf_of_a_nested_action_is_named(tmp_path):
    policy = policy_file(
        tmp_path,
        "import numpy as np\n"
        "class Policy:\n"
        "    def predict_batch(self, obs):\n"
        "        return {'arm': np.zeros((len(obs), 2)), 'hand': np.full(len(obs), len(obs))}\n",
    )
    code, told = verified_policy(tmp_path, policy, f"{__name__}:Split", num_envs=3)
    first = told["first"]
    assert (code, first["leaf"], first["dimension"], first["values"]) == (1, "action.hand", None, [3, 1])


@pytest.mark.parametrize("length", [1, 40, 700])
def test_long_episodes_are_kept_whole(tmp_path, length):
    """Traces are folded on their way; what is kept of them is every step."""
    last = length - 1
    code, told = verified(
        tmp_path, f"np.where(t == {last}, len(obs) / 4, 0)", env_args=(f"length={length}",), verify_lanes=2
    )
    assert (code, told["first"]["step"], told["first"]["values"]) == (1, last, [0.5, 0.25])


def test_batches_padded_to_one_shape_verify(tmp_path):
    """What depends on the number of rows does not when every call has so many."""
    code, told = verified(tmp_path, "len(obs) / 8 + seed * 0", batch_rows=4)
    assert (code, told["verdict"]) == (0, "invariant")


def test_recurrent_policy_with_an_instance_a_lane_verifies(tmp_path):
    policy = policy_file(
        tmp_path,
        "class Policy:\n"
        "    def reset(self):\n"
        "        self.sum = 0.0\n"
        "    def predict(self, obs):\n"
        "        self.sum = 0.5 * self.sum + 0.001 * obs[1]\n"
        "        return [self.sum, 0.0]\n",
    )
    code, told = verified_policy(tmp_path, policy, "cli_toys:Boxed", instances="lane")
    assert (code, told["verdict"]) == (0, "invariant")


@pytest.mark.parametrize(("count", "indices"), [(1, [0]), (2, [0, 9]), (4, [0, 3, 6, 9]), (50, list(range(10)))])
def test_chosen_episodes_are_spread_over_the_plan(count, indices):
    assert [episode.index for episode in chosen_episodes(plan_episodes(tuple(range(10))), count)] == indices


def test_no_episodes_to_verify_is_refused(tmp_path, capsys):
    said = Refusals(tmp_path, capsys).message("zero", verify_lanes=0)
    assert "0 episodes" in said
    assert "--verify-lanes" in said


def test_where_an_object_lies_in_memory_is_no_difference(tmp_path):
    policy = policy_file(
        tmp_path,
        "class Policy:\n"
        "    def predict(self, obs):\n"
        "        if obs[0] == 2: raise ValueError(f'no answer from {object()}')\n"
        "        return obs * 0\n",
    )
    code, told = verified_policy(tmp_path, policy, "cli_toys:Boxed")
    assert (code, told["verdict"], told["episodes"]) == (4, "invariant", 4)


def test_the_clock_may_end_an_episode_elsewhere(tmp_path):
    policy = policy_file(
        tmp_path,
        "import time\n"
        "class Policy:\n"
        "    asked = 0\n"
        "    def predict(self, obs):\n"
        "        Policy.asked += 1\n"
        "        time.sleep(0.03 if Policy.asked < 12 else 0)\n"
        "        return obs * 0\n",
    )
    code, told = verified_policy(
        tmp_path, policy, "cli_toys:Boxed", env_args=("length=60",), max_episode_seconds=0.1
    )
    assert (code, told["verdict"]) == (0, "invariant")


@pytest.mark.parametrize("episodes", [200, 400])
def test_episodes_that_do_not_count_are_not_verified_and_that_is_said(tmp_path, episodes):
    policy = policy_file(tmp_path, POLICY.format(second="np.sin(seed + t)"))
    flags = {"success": "return >= -99", "until": "width<0.3", "quiet": True, "is_probed": False}
    code, folder = play(tmp_path, policy, "cli_toys:Boxed", episodes=episodes, verify_lanes=8, **flags)
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    assert summary["stopped_at"] < episodes / 7
    assert (code, summary["verification"]["episodes"]) == (0, 1)
    (said,) = [one for one in summary["advisories"] if one["code"] == "fewer-verified"]
    assert said["message"].startswith("1 of 8 chosen episodes were verified")
