"""Seen: `rlmesh eval` on a terminal of its own, and what stands there when it is over."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from running import TESTS
from terminals import Screen

PANEL = re.compile("[█░]{10}|of 400 episodes|step \\d+$|^lanes|^workers")
WALKING = """
import os, sys, time

class Policy:
    calls = 0

    def predict(self, obs):
        self.calls += 1
        {act}
        time.sleep(0.001)
        return 0
"""


class Run:
    """An evaluation whose standard error is a terminal of 80x24."""

    def __init__(
        self, folder: Path, act: str, *flags: str, env: str = "cli_toys:Steps", **environment: str
    ) -> None:
        (folder / "policy.py").write_text(WALKING.format(act=act))
        self.screen = Screen(80, 24)
        self.has_shown_panel = False
        #: All that came to the terminal.
        self.text = ""
        ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        path = os.pathsep.join(part for part in (str(TESTS), os.environ.get("PYTHONPATH")) if part)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rlmesh_cli", "eval", "policy.py", "--env", env, *flags],
            cwd=folder,
            env={
                **os.environ,
                "PYTHONPATH": path,
                "TERM": "xterm",
                "LC_ALL": "C.UTF-8",
                "NO_COLOR": "1",
                **environment,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self._ours = ours

    def read(self, *, until_panel: bool = False) -> list[str]:
        """Look at the screen until the process has ended, or shows its panel; return what stands there."""
        decoder, deadline = b"", time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                data = os.read(self._ours, 65536)
            except OSError:  # nobody writes any more
                break
            decoder += data
            text = decoder.decode("utf-8", "ignore")
            decoder = decoder[len(text.encode()) :]
            self.text += text
            self.screen.feed(text.replace("\r\n", "\n"))
            self.has_shown_panel |= any(PANEL.search(line) for line in self.screen.text)
            if until_panel and self.has_shown_panel:
                return self.screen.text
        self.process.wait(60)
        os.close(self._ours)
        return [line for line in self.screen.text if line]


def test_nothing_of_the_panel_is_left(tmp_path):
    run = Run(tmp_path, "pass", "--episodes", "400", "--num-envs", "2")
    assert run.read() == []
    assert run.has_shown_panel
    assert run.process.returncode == 0


@pytest.mark.parametrize(
    "act",
    [
        "print('line', self.calls) if self.calls % 10 == 0 else None",
        "print(f'line {self.calls}\\nline {self.calls}', file=sys.stderr) if self.calls % 10 == 0 else None",
        "os.write(2, b'line %d\\n' % self.calls) if self.calls % 600 == 0 else None",
    ],
    ids=["print", "two lines", "past Python"],
)
def test_what_a_policy_prints_is_whole(act, tmp_path):
    run = Run(tmp_path, act, "--episodes", "400", "--num-envs", "1")
    lines = run.read()
    assert run.has_shown_panel
    assert lines != []
    assert [line for line in lines if not re.fullmatch(r"line \d+", line)] == []


def test_what_workers_print_is_whole(tmp_path):
    act = "print(f'line {self.calls}\\nline {self.calls}\\nline {self.calls}') if self.calls % 50 == 0 else None"
    run = Run(tmp_path, act, "--episodes", "400", "--workers", "2")
    lines = run.read()
    assert run.has_shown_panel
    assert len(lines) > 30
    assert [line for line in lines if PANEL.search(line)] == []


def test_what_environments_in_workers_print_is_whole(tmp_path):
    (tmp_path / "loud.py").write_text(
        "from cli_toys import Steps\n\nclass Loud(Steps):\n    def step(self, action):\n"
        "        if self.seed % 7 == 0:\n"
        "            print(f'line {self.seed}\\nline {self.t}\\nline 0', flush=True)\n"
        "        return super().step(action)\n"
    )
    flags = ("--episodes", "400", "--num-envs", "2", "--vectorization", "async")
    run = Run(tmp_path, "pass", *flags, env="loud:Loud")
    lines = run.read()
    assert run.has_shown_panel
    assert len(lines) > 30
    assert [line for line in lines if PANEL.search(line)] == []


def test_terminal_without_blocks_gets_ascii(tmp_path):
    run = Run(tmp_path, "pass", "--episodes", "400", "--num-envs", "2", LC_ALL="C")
    assert run.read() == []
    assert run.has_shown_panel
    assert "####" in run.text
    assert run.text.isascii()


def test_terminal_that_cannot_be_steered_is_not(tmp_path):
    run = Run(tmp_path, "print('line 1') if self.calls == 99 else None", "--episodes", "200", TERM="dumb")
    assert run.read() == ["line 1"]
    assert run.text == "line 1\r\n"


def test_ctrl_c_leaves_its_word_and_no_panel(tmp_path):
    run = Run(tmp_path, "pass", "--episodes", "400", "--num-envs", "2")
    run.read(until_panel=True)
    os.kill(run.process.pid, signal.SIGINT)
    assert run.read() == ["rlmesh: stopping after this step; press Ctrl-C again to stop at once"]
    assert run.process.returncode == 130


def test_policy_that_fails_leaves_no_panel(tmp_path):
    act = "1 / 0 if self.calls > 700 else None"
    run = Run(tmp_path, act, "--episodes", "400", "--num-envs", "2", "--max-errors", "0")
    assert run.read() == []
    assert run.has_shown_panel
    assert run.process.returncode == 4
