"""Workers end when they are told to, whatever policies and environments have started, and leave nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from running import finish, start

ENVIRONMENTS = """
import multiprocessing
import os
import subprocess
import sys
import threading
import time

import gymnasium
import numpy as np


class Bare(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1e9, 1e9, (2,), np.float64)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.seed, self.time = seed, 0
        return np.array([seed, 0.0]), {}

    def step(self, action):
        self.time += 1
        return np.array([self.seed, self.time], float), 1.0, self.time >= 3, False, {}


class WithProgram(Bare):
    "A simulator of its own, which is told to end and waited for."

    def __init__(self):
        self.program = subprocess.Popen(["sleep", "600.125"])

    def close(self):
        self.program.terminate()
        self.program.wait()


class WithHelper(Bare):
    "A helper process, forked at the first reset."

    helper = None

    def reset(self, *, seed=None, options=None):
        if self.helper is None:
            self.helper = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,), daemon=True)
            self.helper.start()
        return super().reset(seed=seed)

    def close(self):
        self.helper.terminate()
        self.helper.join()


class Dying(Bare):
    "Ends its process once, when a helper of it holds all that it has inherited."

    def step(self, action):
        if self.seed == 5 and not os.path.exists("died"):
            open("died", "w").close()
            if os.fork() == 0:
                time.sleep(4)
                os._exit(0)
            os.kill(os.getpid(), 9)
        return super().step(action)


class Refusing(Bare):
    def reset(self, *, seed=None, options=None):
        raise OSError("no such scene")


class Hanging(Bare):
    def step(self, action):
        if self.seed == 5:
            time.sleep(600)
        return super().step(action)
"""
POLICIES = """
import threading
import time


class Plain:
    def predict(self, obs):
        return 1


class WithThread(Plain):
    def predict(self, obs):
        if not hasattr(self, "thread"):
            self.thread = threading.Thread(target=time.sleep, args=(600,))
            self.thread.start()
        return 1


class SlowToClose(Plain):
    def close(self):
        time.sleep(2)
"""
ARRANGED = [
    (),
    ("--vectorization", "async", "--num-envs", "2", "--env-workers", "2"),
    ("--workers", "2"),
    ("--workers", "2", "--vectorization", "async", "--num-envs", "2", "--env-workers", "1"),
]


def begun(tmp_path: Path, policy: str, env: str, *flags: str, episodes: int = 8) -> subprocess.Popen[bytes]:
    (tmp_path / "ends_envs.py").write_text(ENVIRONMENTS)
    (tmp_path / "ends_policy.py").write_text(POLICIES)
    words = [f"ends_policy.py:{policy}", "--env", f"ends_envs:{env}", "-n", str(episodes), "--no-probe", *flags]
    return start(*words, "--out", "runs", cwd=tmp_path)


def named(part: Any) -> str:
    return part if isinstance(part, str) else " ".join(part) or "one process"


def rows(tmp_path: Path) -> int:
    (file,) = tmp_path.glob("runs/*/episodes.jsonl")
    return len(file.read_text().splitlines())


def group_is_gone(group: int, *, within: float) -> bool:
    until = time.monotonic() + within
    while time.monotonic() < until:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    os.killpg(group, signal.SIGKILL)
    return False


# Processes of environments may have none of their own that multiprocessing starts.
@pytest.mark.parametrize(
    ("env", "flags"),
    [("WithProgram", flags) for flags in ARRANGED]
    + [("WithHelper", flags) for flags in (ARRANGED[0], ARRANGED[2])],
    ids=named,
)
def test_what_an_environment_has_started_is_ended_by_it(tmp_path: Path, env: str, flags: tuple[str, ...]) -> None:
    process = begun(tmp_path, "Plain", env, *flags)
    code, _, err = finish(process, seconds=30)
    assert code == 0, err
    assert rows(tmp_path) == 8
    assert group_is_gone(process.pid, within=5)


@pytest.mark.parametrize("flags", ARRANGED[1:3], ids=named)
def test_a_worker_that_dies_is_missed_though_a_child_of_it_lives_on(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    process = begun(tmp_path, "Plain", "Dying", *flags)
    code, _, err = finish(process, seconds=30)
    assert code == 0, err
    assert rows(tmp_path) == 8


def test_a_thread_that_goes_on_does_not_keep_a_worker(tmp_path: Path) -> None:
    process = begun(tmp_path, "WithThread", "Bare", "--workers", "2")
    code, _, err = finish(process, seconds=30)
    assert code == 0, err
    assert group_is_gone(process.pid, within=5)


@pytest.mark.parametrize("flags", ARRANGED[1:], ids=named)
def test_whoever_does_not_wait_at_all_is_left_with_a_run_and_no_process(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    process = begun(tmp_path, "Plain", "Hanging", *flags)
    until = time.monotonic() + 20
    while not list(tmp_path.glob("runs/*/episodes.jsonl")) or rows(tmp_path) < 4:
        assert time.monotonic() < until
        time.sleep(0.05)
    for _ in range(3):
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.5)
    code, _, err = finish(process, seconds=20)
    assert code == 130
    assert b"go on with: rlmesh eval --resume" in err
    assert group_is_gone(process.pid, within=5)


def test_closing_a_policy_is_no_playing(tmp_path: Path) -> None:
    process = begun(tmp_path, "SlowToClose", "Bare", "--workers", "2", "--json")
    code, out, err = finish(process, seconds=30)
    assert code == 0, err
    assert json.loads(out)["time"]["total"] < 1.5


@pytest.mark.parametrize("flags", [ARRANGED[0], ARRANGED[2]], ids=named)
def test_errors_are_counted_before_any_policy_was_asked(tmp_path: Path, flags: tuple[str, ...]) -> None:
    process = begun(tmp_path, "Plain", "Refusing", "--max-errors", "2", *flags, episodes=3000)
    code, _, err = finish(process, seconds=30)
    assert code == 4, err
    assert 3 <= rows(tmp_path) < 3000


def test_workers_that_cannot_be_started_are_a_message(tmp_path: Path) -> None:
    (tmp_path / "few.py").write_text(
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))\n"
        "from rlmesh_cli.app import main\n"
        "main()\n"
    )
    words = ["eval", "random", "--env", "CartPole-v1", "-n", "20", "--workers", "9"]
    ended = subprocess.run(
        [sys.executable, "few.py", *words], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 2, ended.stderr
    assert "a worker process cannot be started" in ended.stderr
    assert "use fewer --workers" in ended.stderr
