"""The first difference between episodes of two runs: step, leaf, dimension, both values, and whose doing it is."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from cli_toys import mended, play, policy_file
from gymnasium import spaces
from running import strict_loads

from rlmesh_adapters.errors import HarnessError
from rlmesh_cli.divergence import Divergence, divergence_record, divergence_words, first_divergence
from rlmesh_cli.guests import apart
from rlmesh_cli.recordings import keep
from rlmesh_cli.records import strict_json
from rlmesh_cli.run_reader import StoredRun, read_run

HERE = __name__


class Long(gym.Env):
    """Thirty steps that pay 1; observations are [t, seed, jolt], where jolt is 0 but at step `at`."""

    observation_space: spaces.Space = spaces.Box(-1e9, 1e9, (3,), np.float64)
    action_space: spaces.Space = spaces.Box(-1, 1, (4,), np.float32)

    def __init__(self, at: int = 17, jolt: float = 0.0, pays: float = 1.0, length: int = 30) -> None:
        self.at, self.jolt, self.pays, self.length = at, jolt, pays, length

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seed, self.t = seed, 0
        return self.look(), {}

    def look(self) -> Any:
        return np.array([self.t, self.seed, self.jolt if self.t == self.at else 0], np.float64)

    def step(self, action):
        self.t += 1
        return self.look(), self.pays if self.t - 1 == self.at else 1.0, self.t >= self.length, False, {}


class Split(Long):
    """The same with actions of two parts."""

    action_space = spaces.Dict({"arm": Long.action_space, "hand": spaces.Discrete(5)})


class Seeing(Long):
    """The same with a picture, a text and a number that is none."""

    observation_space = spaces.Dict(
        {
            "camera": spaces.Box(0, 255, (40, 50, 3), np.uint8),
            "state": Long.observation_space,
            "task": spaces.Text(20),
        }
    )

    def __init__(self, task: str = "pick", spot: int = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.task, self.spot = task, spot

    def look(self) -> Any:
        camera = np.full((40, 50, 3), self.t, np.uint8)
        if self.t == self.at:
            camera[12, 3:5, 1] += np.uint8(self.spot)
        return {"camera": camera, "state": super().look() + np.array([0, 0, np.nan]), "task": self.task}


BOX = """
import numpy as np

class Policy:
    def predict(self, obs):
        action = np.full(4, 0.1, np.float32)
        if obs[0] == 17:
            action[2] = {value}
        return action
"""
DICT = """
import numpy as np

class Policy:
    def predict(self, obs):
        arm = np.full(4, 0.1, np.float32)
        if obs[0] == 17:
            arm[2] = {value}
        return {{"arm": arm, "hand": 3}}
"""
CHUNKED = """
import numpy as np

class Policy:
    def predict_chunk(self, obs):
        chunk = np.full((6, 4), 0.1, np.float32)
        for place in range(6):
            if obs[0] + place == 17:
                chunk[place, 2] = {value}
        return chunk
"""
STILL = "import numpy as np\nclass Policy:\n    def predict(self, obs):\n        return np.zeros(4, np.float32)\n"


def made(folder: Path, text: str, env: str = f"{HERE}:Long", **flags: Any) -> StoredRun:
    folder.mkdir(exist_ok=True)
    source = policy_file(folder, text)
    asked = {"episodes": 3, "seed": 11, "quiet": True, "is_probed": False, **flags}
    _, run = play(folder, source, env, **asked)
    assert run is not None
    return read_run(run)


def pair(tmp_path, text: str, env: str = f"{HERE}:Long", **flags: Any) -> Divergence:
    """Return where two policies part that send 0.31 and 0.35 at step 17, in the episode of seed 12."""
    base = made(tmp_path / "base", text.format(value=0.31), env, **flags)
    new = made(tmp_path / "new", text.format(value=0.35), env, **flags)
    return first_divergence(base, new, (1, 1))


def of_environments(tmp_path, text: str, env: str, *args: str) -> Divergence:
    """Return where one policy parts from itself when the environment gets other arguments."""
    base = made(tmp_path / "base", text, env)
    return first_divergence(base, made(tmp_path / "new", text, env, env_args=args), (1, 1))


@pytest.mark.parametrize(
    ("text", "env", "leaf", "flags"),
    [
        (BOX, "Long", "action", {}),
        (BOX, "Long", "action", {"num_envs": 3}),
        (DICT, "Split", "action.arm", {}),
        (CHUNKED, "Long", "action", {"horizon": 4}),
    ],
    ids=["box", "three lanes", "dict", "chunks"],
)
def test_planted_change_of_one_action_dimension_is_named(tmp_path, text, env, leaf, flags):
    found = pair(tmp_path, text, f"{HERE}:{env}", **flags)
    first = found.first
    assert first is not None
    assert (first.step, first.what, first.owner, first.leaf) == (17, "action", "policy", leaf)
    assert (first.dimension, first.values, first.count, first.numbers) == ((2,), (0.31, 0.35), 1, 4)
    assert first.size == pytest.approx(0.04)
    assert found.reproduced == (True, True)
    assert divergence_words(found) == (
        f"seed 12: first differs at step 17: {leaf}[2] is 0.31 in BASE and 0.35 in NEW (by 0.04), "
        "on equal observations: the policy's doing"
    )


def test_observation_that_differs_first_is_the_environments_doing(tmp_path):
    """The policy answers what it sees, so its action differs in the same step; the observation comes first."""
    text = "import numpy as np\nclass Policy:\n    def predict(self, obs):\n        return np.full(4, obs[2])\n"
    found = of_environments(tmp_path, text, f"{HERE}:Long", "jolt=0.5")
    assert divergence_words(found) == (
        "seed 12: first differs at step 17: observation[2] is 0 in BASE and 0.5 in NEW (by 0.5), "
        "after equal observations, actions and rewards: the environment's doing"
    )


def test_observation_is_compared_at_steps_that_replay_a_chunk(tmp_path):
    """Step 17 is the second of a chunk that was planned at step 16; nobody is asked there."""
    text = CHUNKED.format(value=0.1)
    base = made(tmp_path / "base", text, horizon=4)
    found = first_divergence(base, made(tmp_path / "new", text, env_args=("jolt=2",), horizon=4), (0, 0))
    assert found.first is not None
    assert (found.first.step, found.first.leaf, found.first.values) == (17, "observation", (0.0, 2.0))


def test_picture_is_compared_number_by_number(tmp_path):
    found = of_environments(tmp_path, STILL, f"{HERE}:Seeing", "spot=4")
    assert divergence_words(found) == (
        "seed 12: first differs at step 17: observation.camera[12, 3, 1] is 17 in BASE and 21 in NEW "
        "(by 4; 2 of 6,000 numbers differ), after equal observations, actions and rewards: the environment's doing"
    )


def test_text_is_compared_and_shown(tmp_path):
    found = of_environments(tmp_path, STILL, f"{HERE}:Seeing", "task=place")
    assert divergence_words(found) == (
        "seed 12: first differs at step 0: observation.task is 'pick' in BASE and 'place' in NEW, "
        "at the start: the environment's doing"
    )


def test_nan_equals_nan(tmp_path):
    found = of_environments(tmp_path, STILL, f"{HERE}:Seeing")
    assert (found.first, divergence_words(found)) == (None, "seed 12: no difference in 30 steps")


def test_reward_that_differs_is_named(tmp_path):
    found = of_environments(tmp_path, STILL, f"{HERE}:Long", "pays=3.5")
    assert divergence_words(found) == (
        "seed 12: first differs at step 17: reward is 1 in BASE and 3.5 in NEW (by 2.5), "
        "for equal observations and actions: the environment's doing"
    )
    assert found.returns == (30.0, 32.5)


def test_end_that_differs_is_named(tmp_path):
    found = of_environments(tmp_path, STILL, f"{HERE}:Long", "length=18")
    assert divergence_words(found) == (
        "seed 12: first differs at step 17: BASE goes on, NEW ends (terminated), "
        "after equal steps: the environment's doing"
    )
    assert found.lengths == (30, 18)


def test_policy_that_fails_is_told_apart_from_an_environment_that_ends(tmp_path):
    fails = STILL.replace("        return", "        if obs[0] == 17: raise ValueError('no plan')\n        return")
    base, new = made(tmp_path / "base", STILL), made(tmp_path / "new", fails)
    found = first_divergence(base, new, (1, 1))
    assert divergence_words(found) == (
        "seed 12: first differs at step 17: BASE goes on, NEW ends with an error in policy: ValueError: no plan "
        "(in predict, input float64[3]), after equal steps: the policy's doing"
    )


def test_what_may_be_rounding_is_said(tmp_path):
    base = made(tmp_path / "base", BOX.format(value=0.5))
    found = first_divergence(base, made(tmp_path / "new", BOX.format(value=0.5000001)), (1, 1))
    assert found.first is not None
    assert found.first.is_small
    assert "action[2] is 0.5 in BASE and 0.5000001 in NEW (by 1.19e-07, under 1e-5 of their size)" in (
        divergence_words(found)
    )


def test_spaces_of_other_shapes_are_named(tmp_path):
    base, new = made(tmp_path / "base", STILL), made(tmp_path / "new", STILL, f"{HERE}:Wide")
    assert "observation is float64[3] in BASE and float64[5] in NEW, at the start" in divergence_words(
        first_divergence(base, new, (0, 0))
    )


class Wide(Long):
    observation_space = spaces.Box(-1e9, 1e9, (5,), np.float64)

    def look(self) -> Any:
        return np.zeros(5)


def test_files_and_neighbours_of_one_name_are_not_mixed_up(tmp_path):
    """Both policies are `policy.py`, and each imports a `gains.py` of its own folder, one of them late."""
    early = "import numpy as np\nimport gains\nclass Policy:\n    def predict(self, obs):\n        {late}\n"
    early += "        return np.full(4, gains.GAIN, np.float32)\n"
    runs = []
    for name, gain, late in (("base", 0.25, "pass"), ("new", 0.75, "import gains")):
        folder = tmp_path / name
        folder.mkdir()
        policy_file(folder, f"GAIN = {gain}\n", "gains.py")
        text = early.format(late=late)
        if late != "pass":
            text = text.replace("import gains\nclass", "class")
        # As a process of its own would run it: nothing of the other policy is loaded.
        with apart():
            runs.append(made(folder, text))
    path = list(sys.path)
    for _ in range(2):
        found = first_divergence(runs[0], runs[1], (0, 0))
        assert found.first is not None
        assert (found.first.step, found.first.values) == (0, (0.25, 0.75))
        assert found.reproduced == (True, True)
    assert sys.path == path
    assert "gains" not in sys.modules


def test_environment_of_a_policy_file_is_not_that_of_another_file(tmp_path):
    """Each file registers `Own-v0`, as one does that is often imported: only if it is not there."""
    text = (
        "import gymnasium as gym, numpy as np\n"
        f"from {HERE} import Long\n"
        "class Own(Long):\n    PAYS = {pays}\n"
        "    def __init__(self):\n        super().__init__(pays=self.PAYS)\n"
        "if 'Own-v0' not in gym.registry:\n"
        "    gym.register('Own-v0', entry_point=Own, disable_env_checker=True)\n"
        "class Policy:\n    def predict(self, obs):\n        return np.zeros(4, np.float32)\n"
    )
    runs = []
    for name, pays in (("base", 2.0), ("new", 3.0)):
        with apart():
            runs.append(made(tmp_path / name, text.format(pays=pays), "Own-v0"))
    found = first_divergence(runs[0], runs[1], (0, 0))
    assert found.first is not None
    assert (found.first.what, found.first.values, found.reproduced) == ("reward", (2.0, 3.0), (True, True))
    assert "Own-v0" not in gym.registry


def test_one_file_that_was_edited_between_the_runs_cannot_be_both(tmp_path):
    base = made(tmp_path, BOX.format(value=0.31), out=tmp_path / "first")
    new = made(tmp_path, BOX.format(value=0.35), out=tmp_path / "second")
    with pytest.raises(HarnessError, match="one file cannot be both") as caught:
        first_divergence(base, new, (1, 1))
    error = mended(caught.value)
    known = [run.record["policy"]["file"]["sha256"][:12] for run in (base, new)]
    assert all(digest in error.cause for digest in known)


def test_one_file_of_weights_that_was_written_over_cannot_be_both(tmp_path):
    weights = tmp_path / "gain.txt"
    text = (
        "import numpy as np\nfrom pathlib import Path\nclass Policy:\n"
        "    def __init__(self, weights):\n        self.gain = float(Path(weights).read_text())\n"
        "    def predict(self, obs):\n        return np.full(4, self.gain, np.float32)\n"
    )
    runs = []
    for name, gain in (("base", "0.25"), ("new", "0.5")):
        weights.write_text(gain, encoding="utf-8")
        runs.append(made(tmp_path / name, text, policy_args=(f"weights={weights}",)))
    with pytest.raises(HarnessError, match=r"gain.txt, which was .* one file cannot be both") as caught:
        first_divergence(runs[0], runs[1], (1, 1))
    mended(caught.value)


def test_graphs_and_sequences_are_taken_apart():
    """What does not stack is kept by its parts, each under the name that leads to it."""
    space = spaces.Graph(spaces.Box(-1, 1, (2,)), None)
    space.seed(3)
    value = {"graph": space.sample(num_nodes=3), "many": (np.ones(2), "text", None)}
    kept = keep(value, "observation")
    assert list(kept) == [
        "observation.graph.nodes",
        "observation.graph.edges",
        "observation.graph.edge_links",
        "observation.many.0",
        "observation.many.1",
        "observation.many.2",
    ]
    value["graph"].nodes[:] = 9  # what is kept is a copy
    assert kept["observation.graph.nodes"].restored().max() <= 1


def test_replay_that_is_not_what_the_run_played_is_said(tmp_path):
    base, new = made(tmp_path / "base", STILL), made(tmp_path / "new", BOX.format(value=0.31))
    policy_file(tmp_path / "new", BOX.format(value=0.35))
    for name in [name for name in sys.modules if name.startswith("rlmesh_policy_policy")]:
        del sys.modules[name]  # as in a process of its own
    found = first_divergence(base, new, (1, 1))
    assert found.reproduced == (True, False)
    assert "this replay of NEW is not what its run played" in divergence_words(found)
    assert found.notes[0].startswith("NEW: policy: was ")


def test_replay_that_ends_in_another_fault_is_not_what_the_run_played(tmp_path):
    fails = STILL.replace("        return", "        if obs[0] == 17: raise ValueError('no plan')\n        return")
    base, new = made(tmp_path / "base", fails), made(tmp_path / "new", fails)
    policy_file(tmp_path / "new", fails.replace("no plan", "no arm"))
    for name in [name for name in sys.modules if name.startswith("rlmesh_policy_policy")]:
        del sys.modules[name]  # as in a process of its own
    assert first_divergence(base, new, (1, 1)).reproduced == (True, False)


def test_episodes_of_other_seeds_are_no_pair(tmp_path):
    base = made(tmp_path / "base", STILL)
    with pytest.raises(HarnessError, match=r"has seed 11 and episode 1 of .* has seed 12: these are no pair"):
        first_divergence(base, base, (0, 1))
    with pytest.raises(HarnessError, match="has seed None"):
        first_divergence(base, base, (0, 9))


class Bursting(Long):
    def look(self) -> Any:
        with np.errstate(divide="ignore", invalid="ignore"):
            return super().look() * np.array([1, 1, np.inf if self.jolt and self.t == self.at else 1])


def test_argument_that_the_record_could_not_hold_is_refused(tmp_path):
    run = made(tmp_path / "base", STILL, env_args=("jolt=.nan",))
    with pytest.raises(HarnessError, match=r"does not say what route.env.kwargs.jolt was") as caught:
        first_divergence(run, run, (0, 0))
    mended(caught.value)


def test_divergence_is_strict_json(tmp_path):
    found = of_environments(tmp_path, STILL, f"{HERE}:Bursting", "jolt=1")
    told = strict_loads(strict_json(divergence_record(found)).decode())
    assert told["first"]["values"] == [0.0, None]
    assert told["first"]["size"] is None
    assert told["nonfinite"] == ["first.values[1]"]
    assert told["sentence"].startswith("seed 12: first differs at step 17: observation[2] is 0 in BASE and inf")
