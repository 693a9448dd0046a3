"""Frames that nobody reads are not rendered, and no row shows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import chunk_toys
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from running import Played, play, strict_loads, unarranged
from typer.testing import CliRunner

from rlmesh_cli.app import app

FILM = "chunk_toys:Film-v0"
LENGTHS = [1, 8, 9, 20, 3, 13]


def film(tmp: Path, source: str = "viewing:Seeing", env: str = FILM, **flags: Any) -> Played:
    steps = flags.pop("lengths", LENGTHS)
    given = flags.pop("env_args", ())
    flags = {"episodes": len(steps), "num_envs": 2, "horizon": 4, "is_probed": False, **flags}
    return play(tmp, source, env, env_args=(f"lengths={steps}", *given), **flags)


def skipped(played: Played) -> int:
    return int(played.summary["time"]["frames_skipped"])


def route(tmp: Path, text: str) -> Path:
    path = tmp / "route.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # every example makes a folder of its own
)
@given(
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=12),
    num_envs=st.integers(1, 5),
    horizon=st.integers(1, 8),
    schedule=st.sampled_from(["aligned", "eager"]),
    limit=st.none() | st.integers(1, 12),
)
def test_rows_are_the_same_with_and_without_the_frames_that_nobody_reads(
    tmp_path: Path, lengths: list[int], num_envs: int, horizon: int, schedule: str, limit: int | None
) -> None:
    flags = {
        "lengths": lengths,
        "num_envs": num_envs,
        "horizon": horizon,
        "schedule": schedule,
        "max_episode_steps": limit,
    }
    wanted, always = film(tmp_path, **flags), film(tmp_path, pixels="always", **flags)
    assert wanted.column("error") == [None] * len(lengths)
    assert unarranged(wanted.rows) == unarranged(always.rows)
    # The action after the last one of a chunk is not planned yet.
    assert skipped(wanted) == sum(row["length"] - row["length"] // horizon for row in wanted.rows) * (horizon > 1)
    assert skipped(always) == 0


@settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(lengths=st.lists(st.integers(1, 30), min_size=1, max_size=12), num_envs=st.integers(1, 5))
def test_lanes_that_ask_at_different_times_read_whole_frames(
    tmp_path: Path, lengths: list[int], num_envs: int
) -> None:
    """Each lane asks for one call in each chunk of its own, whatever its length; all other frames are left out."""
    flags = {"lengths": lengths, "num_envs": num_envs, "horizon": 8}
    wanted = film(tmp_path, "viewing:Glancing", **flags)
    always = film(tmp_path, "viewing:Glancing", pixels="always", **flags)
    assert wanted.column("error") == [None] * len(lengths)
    assert unarranged(wanted.rows) == unarranged(always.rows)
    # Of each chunk the last frame is rendered, unless the episode ended before; the first comes with the reset.
    whole = [row["policy_calls"] - (row["dropped_actions"] > 0) for row in wanted.rows]
    assert skipped(wanted) == sum(lengths) - sum(whole)


def test_only_first_frames_and_those_that_are_asked_with_are_rendered(tmp_path: Path) -> None:
    chunk_toys.RENDERED.clear()
    played = film(tmp_path, lengths=[5, 12], seeds="0,1")
    assert sorted(chunk_toys.RENDERED) == [(0, 0), (0, 4), (1, 0), (1, 4), (1, 8), (1, 12)]
    advisory = played.advisory("frames-skipped")
    assert advisory is not None
    assert (advisory["severity"], advisory["count"], skipped(played)) == ("info", 13, 13)


@pytest.mark.parametrize("start_method", ["fork", "spawn"])
def test_environments_in_workers_leave_out_the_same_frames(tmp_path: Path, start_method: str) -> None:
    here = film(tmp_path, num_envs=3)
    there = film(tmp_path, num_envs=3, vectorization="async", start_method=start_method)
    assert unarranged(here.rows) == unarranged(there.rows)
    assert skipped(here) == skipped(there) == 54 - 12


@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_environment_that_is_built_anew_begins_with_a_whole_frame(tmp_path: Path, vectorization: str) -> None:
    """Odd seeds break before their third step, which is skipped, and are played again."""
    flags = {"env_args": ("breaks_at=3",), "lengths": [9] * 6, "vectorization": vectorization}
    wanted, always = film(tmp_path, **flags), film(tmp_path, pixels="always", **flags)
    assert wanted.column("attempts") == [1, 2] * 3
    assert unarranged(wanted.rows) == unarranged(always.rows)
    assert skipped(wanted) > 0


TAGGED = """
env:
  id: chunk_toys:Push-v0
env_tags:
  observation: {pixels: {type: image, role: image/primary}, state: {type: state, role: x/state}}
  action: {components: [{role: x/push, dim: 1}]}
"""
CONVERTED = """
import numpy as np


class Plain:
    stack = 1

    @property
    def spec(self):
        return {
            "input": {"type": "image", "role": "image/primary", "height": 4, "width": 5, "stack": self.stack},
            "output": {"components": [{"role": "x/push", "dim": 1}]},
        }

    def predict_chunk_batch(self, obs):
        assert (obs < 254).all(), "read a frame that was left out"
        last = obs.reshape(len(obs), -1)[:, -1].astype(np.float64)
        return (last[:, None] + np.arange(8))[..., None]


class Windows(Plain):
    stack = 3
"""


def converted(tmp: Path, name: str, more: str = "", **flags: Any) -> Played:
    (tmp / "policy.py").write_text(CONVERTED)
    text = route(tmp, TAGGED + more)
    played = film(tmp, f"{tmp / 'policy.py'}:{name}", None, route=text, **flags)  # type: ignore[arg-type]
    assert played.column("error") == [None] * len(LENGTHS)
    return played


@pytest.mark.parametrize(
    ("name", "more", "count"),
    [("Plain", "", 54 - 12), ("Windows", "", 0), ("Plain", "ensemble: {decay: 0.1}\n", 0)],
    ids=["converted", "windows", "averaged"],
)
def test_conversion_reads_what_it_read_without(tmp_path: Path, name: str, more: str, count: int) -> None:
    """Windows of frames and averaged plans look at every step."""
    wanted, always = converted(tmp_path, name, more), converted(tmp_path, name, more, pixels="always")
    assert unarranged(wanted.rows) == unarranged(always.rows)
    assert (skipped(wanted), skipped(always)) == (count, 0)


@pytest.mark.parametrize(
    "flags",
    [
        {"horizon": 1},
        {"source": "viewing:Single", "horizon": 1},
        {"pixels": "always"},
        {"verify_lanes": 2},
        {"autoreset": "disabled"},
    ],
    ids=["one action a call", "no chunks", "always", "verified lanes", "foreign lanes"],
)
def test_every_frame_is_rendered(tmp_path: Path, flags: dict[str, Any]) -> None:
    played = film(tmp_path, **flags)
    assert played.column("error") == [None] * len(LENGTHS)
    assert skipped(played) == 0
    assert played.advisory("frames-skipped") is None


def test_a_replay_sees_every_frame(tmp_path: Path) -> None:
    played = film(tmp_path)
    assert skipped(played) == 54 - 12
    chunk_toys.RENDERED.clear()
    result = CliRunner().invoke(app, ["replay", str(played.folder), "3"])
    assert result.exit_code == 0, result.output
    assert sorted(set(chunk_toys.RENDERED)) == [(3, t) for t in range(21)]


def test_a_stored_run_says_again_what_it_cost(tmp_path: Path) -> None:
    played = film(tmp_path)
    result = CliRunner().invoke(app, ["show", str(played.folder), "--json"])
    assert strict_loads(result.stdout)["time"] == played.summary["time"]
    shown = CliRunner().invoke(app, ["show", str(played.folder)]).stdout
    assert "42 frames not rendered" in " ".join(shown.split())


def wrapped(tmp: Path, name: str, **flags: Any) -> Played:
    return film(tmp, route=route(tmp, f"env: {{wrappers: ['{name}']}}\n"), **flags)


@pytest.mark.parametrize("name", ["chunk_toys:Brightening", "RecordEpisodeStatistics", "chunk_toys:Raising"])
def test_wrappers_that_keep_no_observation_pass_the_offer_on(tmp_path: Path, name: str) -> None:
    played = wrapped(tmp_path, name)
    assert skipped(played) == 54 - 12
    assert unarranged(played.rows) == unarranged(wrapped(tmp_path, name, pixels="always").rows)


@pytest.mark.parametrize("name", ["Remembering", "Forwarding", "Shadowing"])
def test_wrappers_that_may_keep_observations_hide_the_offer(tmp_path: Path, name: str) -> None:
    played = wrapped(tmp_path, f"chunk_toys:{name}")
    assert skipped(played) == 0
    advisory = played.advisory("frames-rendered")
    assert advisory is not None
    assert f"the wrapper {name} may keep observations" in advisory["message"]
    assert unarranged(played.rows) == unarranged(wrapped(tmp_path, f"chunk_toys:{name}", pixels="always").rows)
    assert wrapped(tmp_path, f"chunk_toys:{name}", horizon=1).advisory("frames-rendered") is None


def test_a_wrapper_that_offers_it_itself_is_believed(tmp_path: Path) -> None:
    assert skipped(wrapped(tmp_path, "chunk_toys:Trusting")) == 54 - 12


def test_pixels_on_request_add_what_render_shows(tmp_path: Path) -> None:
    chunk_toys.RENDERED.clear()
    flags = {
        "env": "chunk_toys:Drawn-v0",
        "env_args": ("render_mode=rgb_array",),
        "route": route(tmp_path, "env: {wrappers: ['rlmesh_envs.pixels:PixelsOnRequest']}\n"),
    }
    wanted = film(tmp_path, **flags)
    rendered = len(chunk_toys.RENDERED)
    always = film(tmp_path, pixels="always", **flags)
    assert wanted.column("error") == [None] * len(LENGTHS)
    assert unarranged(wanted.rows) == unarranged(always.rows)
    assert skipped(wanted) == 54 - 12
    assert len(chunk_toys.RENDERED) - 2 * rendered == skipped(wanted)


def test_what_was_left_out_is_garbage() -> None:
    """Were it not, the tests above would show nothing."""
    env = chunk_toys.Film([9])
    first, _ = env.reset(seed=3)
    env.skip_pixels(True)
    seen = env.step(0)[0]["pixels"]
    assert (first["pixels"] == 93).all()
    assert (seen >= chunk_toys.GARBAGE - 1).all()
    env.skip_pixels(False)
    assert np.array_equal(env.step(0)[0]["pixels"], np.full((4, 5, 3), 107, np.uint8))
