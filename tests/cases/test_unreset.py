"""One lane is not probed; a policy without `reset` that goes on changing is seen all the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from running import play

HEAD = "import numpy as np\nfrom collections import deque\n"
KEEPS = {
    "calls": """
class Policy:
    def __init__(self):
        self.calls = 0
    def predict(self, obs):
        self.calls += 1
        return self.calls % 4
""",
    "seen": """
class Policy:
    def __init__(self):
        self.seen = deque(maxlen=3)
    def predict(self, obs):
        self.seen.append(float(obs[1]))
        return len(self.seen)
""",
    "mean": """
class Policy:
    def __init__(self):
        self.mean = np.zeros(2)
    def predict(self, obs):
        self.mean += 0.1 * (obs - self.mean)
        return int(self.mean[0] > 1)
""",
    "stack": """
class Stack:
    __slots__ = ("__frames",)
    def __init__(self):
        self.__frames = deque(maxlen=3)
    def push(self, frame):
        self.__frames.append(frame)
        return len(self.__frames)
class Policy:
    __slots__ = ("stack",)
    def __init__(self):
        self.stack = Stack()
    def predict(self, obs):
        return self.stack.push(float(obs[1]))
""",
    "memory": """
class Policy:
    def __init__(self):
        self.memory = {"last": [0.0]}
    def predict(self, obs):
        self.memory["last"][0] += obs[0]
        return 0
""",
}
KEEPS_NOTHING = {
    "plain": "class Policy:\n    def predict(self, obs):\n        return 0\n",
    "lazy": """
class Policy:
    weights = None
    def predict(self, obs):
        if self.weights is None:
            self.weights = np.ones(2)
        return int(obs @ self.weights) % 4
""",
    "path": """
from pathlib import Path
class Policy:
    def __init__(self):
        self.log = Path("log.txt")
        self.calls = None
    def predict(self, obs):
        if obs[1] > 2:
            str(self.log), hash(self.log)
        return 0
""",
    "told": """
class Policy:
    def reset(self):
        self.calls = 0
    def predict(self, obs):
        self.calls += 1
        return self.calls % 4
""",
    "closed": """
class Policy:
    def __init__(self):
        self.model = [1, 2]
    def predict(self, obs):
        return 0
    def close(self):
        self.model = None
""",
    "strange": """
class Policy:
    def __init__(self):
        self.calls = 0
    def __getattribute__(self, name):
        if name == "__dict__":
            raise RuntimeError("private")
        return object.__getattribute__(self, name)
    def predict(self, obs):
        return 0
""",
}


def said(tmp_path: Path, text: str, **flags: object) -> dict[str, object] | None:
    source = tmp_path / "policy.py"
    source.write_text(HEAD + text)
    return play(tmp_path, str(source), "film_toys:Clock", **{"episodes": 4, **flags}).advisory("state-kept")


@pytest.mark.parametrize("kind", KEEPS)
def test_what_goes_on_changing_is_named(tmp_path: Path, kind: str) -> None:
    advisory = said(tmp_path, KEEPS[kind])
    assert advisory["severity"] == "info"
    assert f"has no `reset`, and `{kind}` of it went on changing" in advisory["message"]


@pytest.mark.parametrize("kind", KEEPS_NOTHING)
def test_what_is_told_or_stays_as_it_is_needs_no_word(tmp_path: Path, kind: str) -> None:
    assert said(tmp_path, KEEPS_NOTHING[kind]) is None


@pytest.mark.parametrize("flags", [{"episodes": 1}, {"instances": "episode"}], ids=str)
def test_a_policy_that_plays_once_needs_no_word(tmp_path: Path, flags: dict[str, object]) -> None:
    assert said(tmp_path, KEEPS["calls"], **flags) is None


LEARNS = """
class Policy:
    def __init__(self):
        self.mean, self.n = np.zeros(3), 20_000.0
    def predict(self, obs):
        self.n += 1
        self.mean += (obs - self.mean) / self.n
        return np.array([np.clip(-10 * np.arctan2(*(obs - self.mean)[1::-1]), -2, 2)], np.float32)
"""


@pytest.mark.parametrize("flags", [{}, {"num_envs": 4}, {"num_envs": 2, "workers": 2}], ids=str)
def test_what_learns_too_slowly_for_a_probe_is_named_all_the_same(
    tmp_path: Path, flags: dict[str, object]
) -> None:
    source = tmp_path / "policy.py"
    source.write_text(HEAD + LEARNS)
    played = play(tmp_path, str(source), "Pendulum-v1", episodes=8, max_episode_steps=20, **flags)
    assert played.summary["instances"] == "shared"
    advisory = played.advisory("state-kept")
    assert advisory is not None
    assert "`mean`, `n` of it went on changing" in advisory["message"]


def test_it_changes_what_comes_of_an_episode(tmp_path: Path) -> None:
    """The advice is right: with a new policy each, an episode does not know how many calls came before it."""
    source = tmp_path / "policy.py"
    source.write_text(HEAD + KEEPS["calls"])
    runs = [
        play(tmp_path, str(source), "film_toys:Clock", seeds="5,5", instances=instances)
        for instances in ("shared", "episode")
    ]
    assert [len(set(run.column("trace_hash"))) for run in runs] == [2, 1]
