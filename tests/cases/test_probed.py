"""Lanes that share a policy: the run finds out first whether they may, and plays what it must apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from running import play

POLICIES = """
import numpy as np


def choose(hidden, obs):
    return int(hidden + obs[3] > 0)


class Recurrent:
    def __init__(self):
        self.hidden = 0.0

    def reset(self):
        self.hidden = 0.0

    def predict(self, obs):
        self.hidden = 0.9 * self.hidden + obs[2]
        return choose(self.hidden, obs)


class Passing:
    def predict(self, obs, state=None):
        hidden = 0.9 * (state or 0.0) + obs[2]
        return choose(hidden, obs), hidden


class Unresettable(Recurrent):
    reset = None


class OnTheClass:
    calls = 0

    def predict(self, obs):
        type(self).calls += 1
        return self.calls % 2


class Coupled:
    def predict_batch(self, obs):
        return (obs[:, 2] > obs[:, 2].mean()).astype(int)


class Integrating:
    # What it sums up tips the balance late: few calls, of whose answers there are two, do not show it.

    def __init__(self):
        self.sum = 0.0

    def reset(self):
        self.sum = 0.0

    def predict_batch(self, obs):
        self.sum = self.sum + 0.02 * float(obs[:, 0].sum())
        return (obs[:, 2] + obs[:, 3] + self.sum > 0).astype(int)


LEAN = [0.0]


class InTheModule:
    def reset(self):
        LEAN[0] = 0.0

    def predict(self, obs):
        LEAN[0] = 0.8 * LEAN[0] + float(obs[2] + obs[3])
        return int(LEAN[0] > 0)


class ClearingAtStepZero:
    def predict(self, obs, context):
        if context.step == 0:
            self.lean = 0.0
        self.lean = 0.8 * self.lean + float(obs[2] + obs[3])
        return int(self.lean > 0)


class PlanningByStep:
    def predict(self, obs, context):
        if context.step % 8 == 0:
            self.plan = [int(obs[2] + obs[3] > 0)] * 4 + [int(obs[3] < 0)] * 4
        return self.plan[context.step % 8]


class Harmless:
    def reset(self):
        pass

    def predict_batch(self, obs):
        return (obs[:, 2] + obs[:, 3] > 0).astype(int)
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "policies.py"
    path.write_text(POLICIES)
    return str(path)


def run(tmp_path: Path, file: str, policy: str, **flags: Any) -> Any:
    flags = {"episodes": 6, "seed": 3, "max_episode_steps": 60, **flags}
    return play(tmp_path, f"{file}:{policy}", "CartPole-v1", **flags)


def without_lane(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in row.items() if key not in ("lane", "seconds")} for row in rows]


@pytest.mark.parametrize(
    ("policy", "flags", "instances"),
    [
        ("Recurrent", {}, "lane"),
        ("Recurrent", {"instances": "lane"}, "lane"),
        ("Recurrent", {"instances": "episode"}, "episode"),
        ("Unresettable", {"instances": "episode"}, "episode"),
        ("Passing", {}, "shared"),
        ("ClearingAtStepZero", {}, "lane"),
        ("PlanningByStep", {}, "lane"),
        ("Harmless", {}, "shared"),
        ("Integrating", {}, "lane"),
    ],
)
def test_rows_are_those_of_one_lane(tmp_path, file, policy, flags, instances):
    """K20. Whatever a policy keeps, lanes of it are played so that they mean what one lane means."""
    # One lane that keeps what it has would not be an episode alone, so a new instance for each is the measure.
    alone = {"instances": "episode"} if policy == "Unresettable" else {}
    one = run(tmp_path, file, policy, **alone)
    many = run(tmp_path, file, policy, num_envs=4, **flags)
    assert many.code == 0
    assert without_lane(many.rows) == without_lane(one.rows)
    assert many.record["policy"]["instances"] == instances
    assert many.record["probe"]["calls"] <= 27


REFUSED = [
    ("Recurrent", {"instances": "shared"}, ["episode-clean", "reset() clears it", "--instances lane"]),
    ("Unresettable", {}, ["leaks", "--instances episode"]),
    ("OnTheClass", {}, ["leaks", "outlives the instance", "on the class"]),
    ("Coupled", {}, ["couples", "Row", "--num-envs 1"]),
    ("InTheModule", {}, ["couples", "asked in turn", "--num-envs 1, or keep nothing on the class"]),
]


@pytest.mark.parametrize(("policy", "flags", "words"), REFUSED, ids=[name for name, *_ in REFUSED])
def test_what_lanes_would_mix_up_is_refused_with_its_reason(tmp_path, file, capsys, policy, flags, words):
    """K20, K24. Plausible nonsense with exit code 0 is what the field has seen."""
    played = run(tmp_path, file, policy, num_envs=4, **flags)
    assert played.code == 2
    assert not played.out.exists()
    message = capsys.readouterr().err
    for word in (*words, "--force"):
        assert word in message


def test_a_forced_run_is_branded(tmp_path, file):
    played = run(tmp_path, file, "Coupled", num_envs=4, is_forced=True)
    assert played.code == 0
    assert played.record["probe"]["forced"] is True
    assert played.record["probe"]["verdict"] == "couples"
    assert played.advisory("probe-forced")["severity"] == "caution"
    assert run(tmp_path, file, "Coupled", num_envs=4, is_forced=True, strict=True).code == 1


def test_a_probe_that_was_skipped_is_recorded_as_such(tmp_path, file):
    played = run(tmp_path, file, "Coupled", num_envs=4, is_probed=False)
    assert played.code == 0
    assert played.record["probe"] is None


def test_one_lane_is_not_probed(tmp_path, file):
    assert run(tmp_path, file, "Coupled").record["probe"] is None


def test_a_harmless_reset_is_no_reason_for_a_caution(tmp_path, file):
    played = run(tmp_path, file, "Harmless", num_envs=4)
    assert played.advisory("shared-state") is None
    assert played.record["probe"]["verdict"] == "stateless"


def test_what_changes_unseen_is_named(tmp_path, file):
    probe = run(tmp_path, file, "Integrating", num_envs=4).record["probe"]
    test = next(test for test in probe["tests"] if test["name"] == "attributes")
    assert (test["outcome"], test["numbers"]) == ("noted", {"changed": ["sum"], "outliving": []})
    assert (probe["verdict"], probe["recommended"]) == ("stateless", "lane")


def test_a_run_is_the_same_with_and_without_a_probe(tmp_path, file):
    """The run's own environments and instances are fresh, and the random sources as they were."""
    with_probe = run(tmp_path, file, "Harmless", num_envs=3)
    without = run(tmp_path, file, "Harmless", num_envs=3, is_probed=False)
    assert without_lane(with_probe.rows) == without_lane(without.rows)


def test_every_instance_of_an_episode_is_closed(tmp_path):
    log = tmp_path / "log.txt"
    (tmp_path / "counted.py").write_text(
        "class Counted:\n"
        f"    log = {str(log)!r}\n"
        "    def __init__(self):\n        self.write('new')\n"
        "    def write(self, word):\n        with open(self.log, 'a') as log:\n            log.write(word + ' ')\n"
        "    def predict(self, obs):\n        return 0\n"
        "    def close(self):\n        self.write('close')\n"
    )
    source = f"{tmp_path / 'counted.py'}:Counted"
    play(tmp_path, source, "CartPole-v1", episodes=5, num_envs=2, instances="episode", is_probed=False)
    words = log.read_text().split()
    assert words.count("new") == words.count("close") == 5


def test_the_record_of_a_probe_says_what_each_test_found(tmp_path, file):
    record = json.loads(json.dumps(run(tmp_path, file, "Recurrent", num_envs=2).record["probe"]))
    assert record["verdict"] == "episode_clean"
    assert record["recommended"] == "lane"
    assert {test["name"]: test["outcome"] for test in record["tests"]}["reset"] == "pass"


TOLD_OF_EPISODES = """
import numpy as np


class Goal:
    def reset(self, context):
        self.goal = context.seed % 3 - 1

    def predict(self, obs):
        return np.tanh(self.goal * obs[:1]).astype(np.float32)


class GoalOfBatch(Goal):
    predict = None

    def predict_batch(self, obs):
        return np.tanh(self.goal * obs[:, :1]).astype(np.float32)


class Latent:
    def reset(self, context):
        self.latent = context.rng.normal(size=1)

    def predict_batch(self, obs):
        return np.tanh(obs[:, :1] + self.latent).astype(np.float32)


class Clock:
    def reset(self):
        self.time = 0

    def predict(self, obs):
        self.time += 1
        return np.tanh(obs[:1] if self.time < 30 else -obs[:1]).astype(np.float32)


class Slotted:
    __slots__ = ("goal",)

    def reset(self, context):
        self.goal = context.seed % 3 - 1

    def predict_batch(self, obs):
        return np.tanh(self.goal * obs[:, :1]).astype(np.float32)


class Network:
    def __init__(self):
        self.memory = np.zeros(1)


class Inside:
    # Its own attribute is one and the same object all the time.
    def __init__(self):
        self.network = Network()

    def reset(self, context):
        self.network.memory = np.full(1, context.seed % 3 - 1.0)

    def predict_batch(self, obs):
        return np.tanh(obs[:, :1] * self.network.memory).astype(np.float32)


class Counting:
    def __init__(self):
        self.episodes = 0

    def on_episode_end(self):
        self.episodes += 1

    def predict(self, obs):
        return np.tanh(obs[:1] * (self.episodes % 3 - 1)).astype(np.float32)


class Idle:
    def reset(self):
        pass

    def predict_batch(self, obs):
        return np.tanh(obs[:, :1]).astype(np.float32)
"""


def swung(tmp_path: Path, policy: str, **flags: Any) -> Any:
    path = tmp_path / "told.py"
    path.write_text(TOLD_OF_EPISODES)
    return play(tmp_path, f"{path}:{policy}", "Pendulum-v1", episodes=6, seed=3, max_episode_steps=50, **flags)


@pytest.mark.parametrize("policy", ["Goal", "GoalOfBatch", "Latent", "Clock", "Inside", "Slotted"])
def test_what_is_chosen_for_an_episode_is_not_shared(tmp_path, policy):
    """No answer within an episode shows it; lanes that shared it would act by the goal of whoever began last."""
    one, many = swung(tmp_path, policy), swung(tmp_path, policy, num_envs=4)
    assert without_lane(many.rows) == without_lane(one.rows)
    assert many.record["policy"]["instances"] == "lane"
    assert len({row["return"] for row in one.rows}) == 6


@pytest.mark.parametrize("is_probed", [True, False])
def test_what_goes_on_over_episodes_is_not_shared_and_is_named(tmp_path, is_probed):
    many = swung(tmp_path, "Counting", num_envs=3, is_probed=is_probed)
    assert many.record["policy"]["instances"] == "lane"
    assert not is_probed or "`episodes` of the policy goes on" in many.advisory("state-kept")["message"]


def test_a_reset_that_does_nothing_costs_no_instances(tmp_path):
    assert swung(tmp_path, "Idle", num_envs=3).record["policy"]["instances"] == "shared"


DRAWING = """
import numpy as np


class Policy:
    def reset(self):
        self.gain = np.random.normal(0, 0.5, 3)

    def predict(self, obs):
        return np.tanh(obs @ self.gain).astype(np.float32).reshape(1)
"""


def test_a_latent_that_is_drawn_for_an_episode_is_said_to_be(tmp_path):
    """K20. Which episode gets which goes by lanes and workers."""
    path = tmp_path / "drawing.py"
    path.write_text(DRAWING)
    played = play(tmp_path, str(path), "Pendulum-v1", episodes=4, num_envs=2, max_episode_steps=9)
    assert played.record["policy"]["instances"] == "lane"
    assert played.advisory("policy-stochastic")["severity"] == "info"


STUCK = """
import numpy as np


class Policy:
    # Turns round where it sees the same too often, which few inputs show.
    def reset(self):
        self.last, self.count = None, 0

    def predict(self, obs):
        near = self.last is not None and np.linalg.norm(obs - self.last) < 0.15
        self.count += near
        self.last = np.array(obs)
        turn = 1 if self.count < 3 else -1
        return np.clip(turn * (-2 * obs[1:2] - 0.7 * obs[2:3] + 0.3 * obs[:1]), -2, 2).astype(np.float32)
"""


def test_a_reset_that_puts_all_back_is_no_reason_for_a_new_instance_an_episode(tmp_path):
    """That is slower, and a caution fails strict runs."""
    path = tmp_path / "stuck.py"
    path.write_text(STUCK)
    options = {"episodes": 6, "max_episode_steps": 40}
    one = play(tmp_path, str(path), "Pendulum-v1", **options)
    many = play(tmp_path, str(path), "Pendulum-v1", num_envs=3, **options)
    assert without_lane(many.rows) == without_lane(one.rows)
    assert many.record["policy"]["instances"] == "lane"
    assert "puts every attribute back" in many.advisory("probe-unfinished")["message"]
    assert many.record["probe"]["calls"] <= 27


CHUNKS = """
import numpy as np


class Uneven:
    def predict_chunk(self, obs):
        plan = np.tanh(obs[0] * np.array([[1.0], [-2.0], [3.0], [-4.0]])).astype(np.float32)
        return plan[:2] if abs(obs[2]) > 1 else plan


class Kept:
    kept, calls = 0.0, 0

    def predict_chunk(self, obs):
        self.calls += 1
        self.kept = 0.8 * self.kept + 0.2 * float(obs[0])
        plan = np.tanh(self.kept * np.array([[1.0], [-2.0], [3.0], [-4.0]])).astype(np.float32)
        return plan if self.calls % 2 else plan[:2]
"""


def test_chunks_of_several_lengths_are_no_fault_and_hide_none(tmp_path, capsys):
    path = tmp_path / "chunks.py"
    path.write_text(CHUNKS)
    options = {"episodes": 4, "max_episode_steps": 20, "horizon": 4}
    one = play(tmp_path, f"{path}:Uneven", "Pendulum-v1", **options)
    many = play(tmp_path, f"{path}:Uneven", "Pendulum-v1", num_envs=4, **options)
    assert without_lane(many.rows) == without_lane(one.rows)
    assert many.record["probe"]["verdict"] == "stateless"
    assert play(tmp_path, f"{path}:Kept", "Pendulum-v1", num_envs=4, **options).code == 2
    assert "verdict leaks" in capsys.readouterr().err
