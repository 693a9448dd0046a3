"""Frame windows and averaged chunks over whole runs: each episode sees its own steps, replayed ones included."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import toys  # noqa: F401 - registers them
from running import play

SETTINGS = [
    {},
    {"num_envs": 3},
    {"num_envs": 3, "vectorization": "async"},
    {"num_envs": 2, "autoreset": "next_step"},
    {"num_envs": 2, "autoreset": "same_step"},
]

ROUTE = """\
version: 1
env: {{id: 'toys:TwoPaces-v0'}}
policy: {{source: 'policy.py:{policy}'}}
episodes: 9
seed: 0
env_tags:
  observation: {{type: split, fields: [{{role: x/t, dim: 1}}, {{role: x/seed, dim: 1}}]}}
  action: {{components: [{{role: x/act, dim: 1}}]}}
{more}
"""

# A window that is not what the environment showed raises, and so fails its episode.
POLICY = """
import numpy as np

OUTPUT = {"components": [{"role": "x/act", "dim": 1, "select": "index"}]}


class Windows:
    spec = {
        "input": {"type": "state", "components": ["x/t", "x/seed"], "stack": 3, "dtype": "float64"},
        "output": OUTPUT,
    }

    def check(self, obs):
        assert obs.shape[1:] == (3, 2), obs.shape
        for window in obs:
            times, seeds = window[:, 0], window[:, 1]
            last = times[-1]
            assert times.tolist() == [max(last - 2, 0), max(last - 1, 0), last], times
            assert len(set(seeds.tolist())) == 1, seeds

    def predict_batch(self, obs):
        self.check(obs)
        return np.zeros((len(obs), 1))

    def predict_chunk_batch(self, obs, horizon):
        self.check(obs)
        return np.zeros((len(obs), horizon, 1))
"""


def run(tmp_path: Path, policy: str, more: str = "", source: str = POLICY, **flags: Any) -> Any:
    (tmp_path / "policy.py").write_text(source)
    route = tmp_path / "route.yaml"
    route.write_text(ROUTE.format(policy=policy, more=more))
    return play(tmp_path, None, route=route, **flags)


@pytest.mark.parametrize("flags", SETTINGS, ids=str)
@pytest.mark.parametrize("horizon", [1, 2, 5])
def test_a_window_holds_the_last_steps_of_its_own_episode(
    tmp_path: Path, flags: dict[str, Any], horizon: int
) -> None:
    """Steps that are replayed stand in it too, and nothing of the episode before."""
    played = run(tmp_path, "Windows", horizon=horizon, **flags)
    assert played.column("error") == [None] * 9
    if played.record["seeded"]:
        assert played.column("length") == [2, 20] * 4 + [2]


AVERAGED = '''
import numpy as np


class Plans:
    """Plans for every step ahead the time at which it plans, so that an average says which plans are in it."""

    spec = {
        "input": {"type": "state", "components": ["x/at"]},
        "output": {"components": [{"role": "x/go", "dim": 1}]},
    }

    def predict_chunk_batch(self, obs, horizon):
        return np.repeat(obs[:, None], horizon, axis=1)
'''

PAYING = '''
import gymnasium as gym
import numpy as np


class Paying(gym.Env):
    """Shows the step, pays the action, ends after four steps."""

    observation_space = gym.spaces.Box(0, 9, (1,), np.float32)
    action_space = gym.spaces.Box(0, 9, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.t += 1
        return np.full(1, self.t, np.float32), float(action[0]), self.t == 4, False, {}


gym.register("Paying-v0", entry_point=Paying, max_episode_steps=9)
'''


@pytest.mark.parametrize("lanes", [1, 3])
def test_what_is_executed_is_the_average_of_the_plans_for_a_step(tmp_path: Path, lanes: int) -> None:
    """Horizon 2, decay 0: steps 0, (0+1)/2, (1+2)/2, (2+3)/2 pay 4.5; an episode begins with one plan alone."""
    (tmp_path / "paying.py").write_text(PAYING)
    (tmp_path / "policy.py").write_text("import paying\n" + AVERAGED)
    route = tmp_path / "route.yaml"
    route.write_text(
        "version: 1\nenv: {id: Paying-v0}\npolicy: {source: 'policy.py:Plans'}\nhorizon: 2\nepisodes: 6\n"
        "ensemble: {decay: 0}\n"
        "env_tags:\n  observation: {type: state, role: x/at}\n"
        "  action: {components: [{role: x/go, dim: 1}]}\n"
    )
    played = play(tmp_path, None, route=route, num_envs=lanes)
    assert played.column("return") == [4.5] * 6
    # Every step is asked.
    assert played.column("policy_calls") == [4] * 6
