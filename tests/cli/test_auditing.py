"""`rlmesh probe --env-check`: an environment for every fault, each found by the one test that names it."""

from __future__ import annotations

import json
import random
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from cli_toys import Steps
from typer.testing import CliRunner

from rlmesh_cli.app import app
from rlmesh_cli.auditing import audit
from rlmesh_cli.outcomes import InfoReader, SuccessRule
from rlmesh_envs.make import make_lanes
from rlmesh_envs.request import EnvRequest
from rlmesh_envs.spaces import view_of


class Seeded(Steps):
    """Starts from its seed; twenty steps."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(length=20)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = float(self.np_random.random())
        return self._look(), {}

    def step(self, action):
        observation, *rest = super().step(action)
        del observation
        return self._look(), *rest

    def _look(self):
        return np.array([self.place, self.t], np.float64)


class Unseeded(Seeded):
    """Draws its start from the clock of the machine, as one that forgets its seed does."""

    def reset(self, *, seed=None, options=None):
        observation, info = super().reset(seed=seed)
        self.place = random.SystemRandom().random()
        del observation
        return self._look(), info


class Worn(Seeded):
    """A step of the third episode and later is another than that of the first."""

    resets = 0

    def reset(self, **kwargs):
        self.resets += 1
        return super().reset(**kwargs)

    def step(self, action):
        observation, reward, *rest = super().step(action)
        return observation, reward + (self.resets > 2 and self.t == 4), *rest


class Keeps(Seeded):
    """Only what infos report outlives an episode: successes of every other one, and a growing count."""

    resets = 0

    def reset(self, **kwargs):
        self.resets += 1
        observation, info = super().reset(**kwargs)
        return observation, {**info, "primed": self.resets % 2 == 0}

    def step(self, action):
        *answer, _ = super().step(action)
        return *answer, {"won": self.resets % 2 == 0, "primed": False, "deep": {"count": float(self.resets)}}


class Alike(Seeded):
    def reset(self, *, seed=None, options=None):
        super().reset(seed=0)
        return self._look(), {}

    def step(self, action):
        observation, _, *rest = super().step(action)
        return observation, 1.0, *rest


class LaterApart(Seeded):
    """FrozenLake's kind: one start, and then the seed's own luck."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0.0
        return self._look(), {}

    def step(self, action):
        self.place = float(self.np_random.random())
        return super().step(action)


class Drawing(Seeded):
    def step(self, action):
        np.random.random()
        return super().step(action)


class Seeding(Seeded):
    def reset(self, *, seed=None, options=None):
        random.seed(seed)
        return super().reset(seed=seed)


class Failing(Seeded):
    def step(self, action):
        raise RuntimeError("the gripper is stuck")


class Counted(Seeded):
    taken = 0

    def step(self, action):
        Counted.taken += 1
        return super().step(action)


DEFAULT = InfoReader(SuccessRule(), ())


def outcomes(env: type[gym.Env], reader: InfoReader = DEFAULT, **kwargs: Any) -> dict[str, Any]:
    request = EnvRequest(id=f"{__name__}:{env.__name__}", **kwargs)
    action = view_of(env.action_space)
    tests = audit(lambda: make_lanes(request), action, reader, clock=lambda: 0.0, most_seconds=10)
    return {test.name: test for test in tests}


CLEAN = {
    "same seed": "pass",
    "reset order": "pass",
    "seeds differ": "pass",
    "random state": "pass",
    "time limit": "noted",
}


@pytest.mark.parametrize(
    ("env", "found"),
    [
        (Seeded, {}),
        (LaterApart, {}),
        (Unseeded, {"same seed": "fail", "reset order": "fail"}),
        (Worn, {"reset order": "fail"}),
        (Alike, {"seeds differ": "noted"}),
        (Drawing, {"random state": "fail"}),
        (Seeding, {"random state": "fail"}),
    ],
)
def test_each_fault_is_found_by_its_own_test(env, found):
    assert {name: test.outcome for name, test in outcomes(env).items()} == {**CLEAN, **found}


@pytest.mark.parametrize(
    ("reader", "place"),
    [
        (InfoReader(SuccessRule(keys=("won",)), ()), "step 0"),
        (InfoReader(SuccessRule(keys=("primed",)), ()), "the reset"),
        (InfoReader(SuccessRule(return_at_least=3.0), ("deep.count",)), "step 0"),
        (DEFAULT, None),
        (InfoReader(SuccessRule(keys=("deep",)), ("won.count", "seed")), None),
    ],
    ids=["success", "success at the reset", "metric", "nothing that is read", "nothing that can be read"],
)
def test_what_a_run_reads_of_the_infos_is_compared(reader, place):
    """Seed 11 is played first and sixth in one environment, and successes are those of every other episode."""
    found = outcomes(Keeps, reader)
    assert {name: test.outcome for name, test in found.items()} == {
        **CLEAN,
        "reset order": "pass" if place is None else "fail",
    }
    if place is not None:
        assert found["reset order"].numbers == {"first_difference": place}
        assert found["reset order"].sentence == (
            f"A seed gives another episode after others, from {place} on, in the success or a metric that its "
            "infos report: rows depend on the number of lanes."
        )


def test_success_and_metrics_are_those_of_the_route(tmp_path):
    """Metrics of gates are read too; without them the environment passes."""

    def checked(document: dict[str, Any]) -> tuple[int, str]:
        route = tmp_path / "route.json"
        route.write_text(
            json.dumps({"env": {"id": f"{__name__}:Keeps"}, "policy": {"source": "zero"}, **document})
        )
        result = CliRunner().invoke(app, ["probe", "--route", str(route), "--env-check", "--json"])
        return result.exit_code, json.loads(result.stdout)["env_tests"][1]["outcome"]

    assert checked({}) == (0, "pass")
    assert checked({"success": {"key": "won"}}) == (1, "fail")
    assert checked({"metrics": ["deep.count"]}) == (1, "fail")
    assert checked({"gates": ["deep.count < 9"]}) == (1, "fail")


def test_first_difference_is_placed():
    assert outcomes(Worn)["reset order"].numbers == {"first_difference": "step 3"}  # counted from 0
    assert outcomes(Unseeded)["same seed"].numbers == {"first_difference": "the reset"}


def test_limit_of_the_route_is_a_limit():
    assert outcomes(Seeded, max_episode_steps=7)["time limit"].numbers == {"max_episode_steps": 7}


def test_environment_that_fails_is_one_finding():
    found = outcomes(Failing)
    assert [(test.name, test.outcome) for test in found.values()] == [("episode", "fail")]
    assert "the gripper is stuck" in found["episode"].sentence


def test_vector_environment_without_seeds_a_lane_cannot_be_audited():
    request = EnvRequest(id="CartPole-v1", vectorization="native", num_envs=1)
    action = view_of(gym.spaces.Discrete(2))
    (test,) = audit(lambda: make_lanes(request), action, DEFAULT, clock=lambda: 0.0, most_seconds=10)
    assert (test.name, test.outcome) == ("same seed", "noted")


def test_slow_environment_is_cut_short(monkeypatch):
    """At 0.1 s a step six episodes in 6 s are ten steps each; the first was played in full."""
    monkeypatch.setattr(Counted, "taken", 0)
    clock = iter([0.0, 2.1])  # around the first reset and its twenty steps
    request = EnvRequest(id=f"{__name__}:Counted")
    action = view_of(Counted.action_space)
    audit(lambda: make_lanes(request), action, DEFAULT, clock=lambda: next(clock), most_seconds=6.0)
    assert Counted.taken == 20 + 3 * 10 + 5 + 2 * 10  # other seeds, one broken off, the first seed again and anew


def test_command_reports_both_and_leaves_with_the_worse(tmp_path):
    def rlmesh(env: str, *words: str) -> Any:
        words = ("probe", "zero", "--env", env, "--env-check", *words)
        return CliRunner(env={"COLUMNS": "140"}).invoke(app, list(words))

    clean, faulty = rlmesh("CartPole-v1", "--json"), rlmesh(f"{__name__}:Drawing", "--json")
    assert (clean.exit_code, faulty.exit_code) == (0, 1)
    told = json.loads(faulty.stdout)
    assert told["verdict"] == "stateless"
    assert [test["outcome"] for test in told["env_tests"]] == ["pass", "pass", "pass", "fail", "noted"]
    assert "environment CartPole-v1" in rlmesh("CartPole-v1").output


def test_without_the_flag_the_environment_is_not_audited():
    result = CliRunner().invoke(app, ["probe", "zero", "--env", "CartPole-v1", "--json"])
    assert json.loads(result.stdout)["env_tests"] is None
