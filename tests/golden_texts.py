"""Texts that are kept in `tests/golden`: what terminals show of things that do not change.

`python tests/golden_texts.py` writes them anew; look at what changed before it is committed.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Callable
from pathlib import Path

from cli_toys import IS_SUCCESS, errored, evaluation, row
from rich.console import Console
from stored import stored

from rlmesh_cli.episode_tables import print_episode
from rlmesh_cli.episode_traces import Component, EpisodeTrace
from rlmesh_cli.glances import Estimate, Glance
from rlmesh_cli.live_panel import Pace, panel_lines
from rlmesh_cli.plays import Company
from rlmesh_cli.run_pictures import print_pictures

FOLDER = Path(__file__).resolve().parent / "golden" / "terminal"

GLANCE = Glance(
    title="policy on PushT-v0",
    returns=Estimate(value=61.25, low=58.5, high=64.0, is_rough=True),
    least=2.0,
    most=148.0,
    success=Estimate(value=0.645, low=0.6175, high=0.6719),
    successes=776,
    judged=1203,
    errored=3,
    unknown=1,
    gates=[("success_rate >= 0.6", True), ("mean_return > 70", False), ("speed > 1", None)],
    company=Company(lanes=[(lane, 1204 + lane, None if lane % 9 == 4 else 7 * lane) for lane in range(512)]),
)
PACE = Pace(planned=4000, done=1204, fresh=1204, steps=148_092, seconds=93.4)


class Utf8(io.StringIO):
    encoding = "utf-8"


class Ascii(io.StringIO):
    encoding = "ascii"


def panel(columns: int, rows: int, glance: Glance = GLANCE, *, has_blocks: bool = True) -> str:
    """Return the panel as a window of that size shows it."""
    lines = panel_lines(PACE, glance, width=columns - 1, height=rows - 2, has_blocks=has_blocks)
    return "".join("".join(text for text, _ in line).rstrip() + "\n" for line in lines)


def panel_of_workers() -> str:
    company = Company(workers=[(0, 16, False), (1, 1, False), (2, 0, False), (3, 16, True)])
    return panel(80, 24, Glance(title="policy on PushT-v0", unknown=12, until="decided", company=company))


def pictures(columns: int, episodes: int, stream: io.StringIO) -> str:
    rows = [
        row(index, success=index % 7 < 5, return_=float(100 + 20 * (index % 7) + index % 5))
        for index in range(episodes)
    ]
    rows[3] = errored(3)
    rows[5] = row(5, success=None, return_=340.0)
    print_pictures(Console(file=stream, width=columns), evaluation(rows, rule=IS_SUCCESS))
    return stream.getvalue()


def episode(columns: int, stream: io.StringIO) -> str:
    """Return an episode of 120 steps with a single reward, an action that saturates and one that does not."""
    steps = range(120)
    rewards = [1.0 if step == 90 else 0.0 for step in steps]
    swing = [max(-1.0, min(1.0, 1.4 * math.sin(step / 12))) for step in steps]
    actions = [
        Component(name="action.arm[0]", low=-1.0, high=1.0, values=swing),
        Component(name="action.arm[1]", low=-1.0, high=1.0, values=[step / 200 for step in steps]),
        Component(name="action.grip", values=[float(step > 60) for step in steps]),
    ]
    shown = row(7, length=120, return_=1.0, success=True, success_source="is_success", clipped_actions=44)
    trace = EpisodeTrace(source="steps", rewards=rewards, actions=actions)
    print_episode(stored([shown], name="run"), shown, trace, [], Console(file=stream, width=columns))
    return stream.getvalue()


TEXTS: dict[str, Callable[[], str]] = {
    "panel-80x24": lambda: panel(80, 24),
    "panel-140x40": lambda: panel(140, 40),
    "panel-80x24-ascii": lambda: panel(80, 24, has_blocks=False),
    "panel-workers-80x24": panel_of_workers,
    "pictures-80": lambda: pictures(80, 40, Utf8()),
    "pictures-140": lambda: pictures(140, 1000, Utf8()),
    "pictures-80-ascii": lambda: pictures(80, 1000, Ascii()),
    "episode-80": lambda: episode(80, Utf8()),
    "episode-80-ascii": lambda: episode(80, Ascii()),
    "episode-140": lambda: episode(140, Utf8()),
}


def main() -> None:
    """Write every text into its file."""
    os.environ |= {"LC_ALL": "C.UTF-8"}
    FOLDER.mkdir(exist_ok=True)
    for name, make in TEXTS.items():
        (FOLDER / f"{name}.txt").write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main()
