"""What a policy carries from one step to the next, and must not carry into the next episode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import toys
from running import play
from toy_policies import seeing, training

SETTINGS = [{}, {"num_envs": 2}, {"num_envs": 4}, {"num_envs": 3, "vectorization": "async"}]
LOCKSTEP = [{"num_envs": 2, "autoreset": mode} for mode in ("next_step", "same_step", "disabled")]


def named(flags: dict[str, Any]) -> str:
    return "-".join(map(str, flags.values())) or "one lane"


@pytest.mark.parametrize("flags", SETTINGS, ids=named)
@pytest.mark.parametrize("horizon", [1, 2, 3, 4])
def test_left_over_actions_of_a_chunk_do_not_open_the_next_episode(
    tmp_path: Path, horizon: int, flags: dict[str, Any]
) -> None:
    """K17. Left over, they give returns of 5, 4, 5, 4."""
    flags = {"episodes": 8, "seed": 0, "horizon": horizon, **flags}
    played = play(tmp_path, "echo:Chunks", "toys:Echo-v0", **flags)
    assert played.column("return") == [5.0, 7.0] * 4
    assert played.column("length") == [5, 7] * 4


@pytest.mark.parametrize(("horizon", "calls"), [(1, [5, 7]), (2, [3, 4]), (3, [2, 3]), (4, [2, 2])])
@pytest.mark.parametrize("lanes", [1, 2])
def test_a_policy_is_asked_once_a_horizon(tmp_path: Path, lanes: int, horizon: int, calls: list[int]) -> None:
    """K18. One lane's end does not make the other lane ask again."""
    flags = {"episodes": 2, "seed": 0, "horizon": horizon, "num_envs": lanes}
    played = play(tmp_path, "echo:Chunks", "toys:Echo-v0", **flags)
    assert played.column("policy_calls") == calls
    assert played.summary["policy_calls"] == played.summary["time"]["call_rows"] == sum(calls)
    assert played.column("return") == [5.0, 7.0]
    assert played.record["policy"]["horizon"] == played.record["route"]["horizon"] == horizon
    assert played.record["policy"]["chunk_length"] == 4


def test_a_horizon_beyond_the_chunk_is_refused_before_the_first_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """K18."""
    toys.LOG.clear()
    played = play(tmp_path, "stamp", "toys:Stamped-v0", horizon=9, num_envs=2, episodes=4, is_probed=False)
    assert played.code == 2
    assert not played.out.exists()
    assert toys.LOG == []
    message = capsys.readouterr().err
    assert "horizon is 9, but the policy's chunk holds 8 actions" in message
    assert "--horizon 8" in message


@pytest.mark.parametrize("flags", SETTINGS + LOCKSTEP, ids=named)
@pytest.mark.parametrize("policy", ["echo:Counting", "echo:Stateful"])
def test_recurrent_memory_belongs_to_one_episode(tmp_path: Path, policy: str, flags: dict[str, Any]) -> None:
    """K20. Never reset, the returns are 5, 0, 0, 0; shared by lanes, they are wrong from the start."""
    flags = {"episodes": 8, "seed": 0, **flags}
    played = play(tmp_path, policy, "toys:Echo-v0", **flags)
    assert played.column("return") == played.column("length")
    if played.record["seeded"]:
        assert played.column("return") == [5.0, 7.0] * 4


@pytest.mark.parametrize("horizon", [1, 3])
@pytest.mark.parametrize("flags", SETTINGS, ids=named)
def test_a_policy_is_told_the_episode_and_the_step_it_is_asked_for(
    tmp_path: Path, flags: dict[str, Any], horizon: int
) -> None:
    flags = {"episodes": 8, "seed": 0, "horizon": horizon, **flags}
    played = play(tmp_path, "echo:Informed", "toys:Echo-v0", **flags)
    assert played.column("error") == [None] * 8
    assert played.column("return") == [5.0, 7.0] * 4


def route(tmp_path: Path, *wrappers: str, autoreset: str = "null") -> Path:
    path = tmp_path / "route.yaml"
    path.write_text(
        "env:\n  id: toys:Coins-v0\n  autoreset: " + autoreset + "\n  wrappers: [" + ", ".join(wrappers) + "]\n"
    )
    return path


STACK = "{name: FrameStackObservation, kwargs: {stack_size: 3}}"


@pytest.mark.parametrize("autoreset", ["null", "next_step", "same_step", "disabled"])
def test_stacked_frames_are_those_of_one_episode(tmp_path: Path, autoreset: str) -> None:
    """K21. A stack that outlives its episode opens the second one with [2, 3, 0]."""
    seeing.SEEN.clear()
    path = route(tmp_path, STACK, autoreset=autoreset)
    played = play(tmp_path, "toy_policies.seeing:Policy", route=path, episodes=2)
    assert played.column("return") == [111.0, 111.0]
    stacks = [np.asarray(stack)[:, 0].tolist() for stack in seeing.SEEN]
    assert stacks == [[0, 0, 0], [0, 0, 1], [0, 1, 2]] * 2


def test_the_last_stack_of_an_episode_is_its_own_too(tmp_path: Path) -> None:
    """K21."""
    toys.LOG.clear()
    play(tmp_path, "idle", route=route(tmp_path, STACK, "toys:Witness"), episodes=2)
    assert [[frame[0] for frame in stack] for stack in toys.LOG] == [
        [0, 0, 0],
        [0, 0, 1],
        [0, 1, 2],
        [1, 2, 3],
    ] * 2


@pytest.mark.parametrize("fails_at", [None, 0, 3])
def test_training_mode_is_left_for_the_run_and_put_back_whatever_happens(
    tmp_path: Path, fails_at: int | None
) -> None:
    """K22. Parts that were frozen in eval mode stay frozen."""
    training.MADE.clear()
    arguments = () if fails_at is None else (f"fails_at={fails_at}",)
    played = play(tmp_path, "toy_policies.training:Policy", "toys:Echo-v0", episodes=4, policy_args=arguments)
    assert played.code == {None: 0, 0: 2, 3: 4}[fails_at]
    if fails_at is None:
        assert played.column("return") == [5.0, 7.0, 5.0, 7.0]
    (policy,) = training.MADE
    child, frozen = policy.net.parts
    assert (policy.net.training, child.training, frozen.training) == (True, True, False)
