"""Environments in a step that does not return: nobody waits for them, and no process is left behind."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from running import TESTS, finish, start


def _is_alive(number: int) -> bool:
    try:
        state = Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def _wait(condition: Any, seconds: float = 30.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.05)
    return False


pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


@pytest.fixture
def stuck(tmp_path: Path) -> Any:
    """Return a function that starts a run and waits until both its workers are stuck in a step."""

    def begin(*arguments: str) -> tuple[Any, list[int]]:
        module = (
            "import os, time\nfrom pathlib import Path\nfrom toys import Toy\n\n\nclass Stuck(Toy):\n"
            "    def pay(self, action):\n        Path(f'stuck-{os.getpid()}').touch()\n        time.sleep(600)\n"
        )
        (tmp_path / "stuck_toy.py").write_text(module)
        flags = ["--env", "stuck_toy:Stuck", "--num-envs", "2", "-n", "4", "--vectorization", "async"]
        process = start("zero", *flags, *arguments, cwd=tmp_path, PYTHONPATH=f"{TESTS}{os.pathsep}{tmp_path}")
        assert _wait(lambda: len(list(tmp_path.glob("stuck-*"))) == 2)
        return process, [int(path.name[6:]) for path in tmp_path.glob("stuck-*")]

    return begin


@pytest.mark.parametrize("way", [(), ("--autoreset", "next_step")])
def test_two_interrupts_end_it(stuck: Any, way: tuple[str, ...]) -> None:
    process, workers = stuck(*way)
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
    code, _, errors = finish(process, seconds=30)
    assert code == 130, errors.decode()
    assert _wait(lambda: not any(map(_is_alive, workers)), 5)


@pytest.mark.parametrize("way", [(), ("--start-method", "spawn")])
def test_a_kill_of_the_parent_ends_the_workers(stuck: Any, way: tuple[str, ...]) -> None:
    process, workers = stuck(*way)
    process.kill()
    # Its output ends when the last of those that hold it is gone.
    assert finish(process, seconds=30)[0] == -signal.SIGKILL
    assert _wait(lambda: not any(map(_is_alive, workers)), 5)
