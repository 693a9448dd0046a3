"""What is kept between steps: windows of frames, and plans that are averaged."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np
import pytest
from adapter_routes import NUMBER, NUMBER_TAG, adapter_of, camera, image, resolved, state
from gymnasium import spaces

from rlmesh_adapters.apply.errors import ApplyError
from rlmesh_adapters.contract import Ensemble, RouteContract
from rlmesh_adapters.converting import check_ensemble
from rlmesh_adapters.ensembles import Ensembler
from rlmesh_adapters.errors import RouteError
from rlmesh_adapters.frames import FrameWindow
from rlmesh_envs.spaces import view_of


def column(*values: float) -> Any:
    return np.array(values, np.float64)[:, None]


def moved(window: FrameWindow, ids: list[str], *values: float) -> Any:
    """Return the windows of a step that is kept, one list a row."""
    frames = column(*values)
    windows = window.look(ids, frames)
    window.keep(ids, frames)
    return windows[..., 0].tolist()


def test_the_first_frame_stands_for_those_before_it() -> None:
    """Section 16: frames a, b, c, d of depth 3 give aaa, aab, abc, bcd."""
    window = FrameWindow(3)
    found = [moved(window, ["ep"], frame)[0] for frame in (1, 2, 3, 4)]
    assert found == [[1, 1, 1], [1, 1, 2], [1, 2, 3], [2, 3, 4]]


def test_looking_keeps_nothing() -> None:
    """W20: a call that failed and is made again sees the same window."""
    window = FrameWindow(3)
    moved(window, ["ep"], 1)
    for _ in range(3):
        assert window.look(["ep"], column(2))[..., 0].tolist() == [[1, 1, 2]]
    assert moved(window, ["ep"], 2) == [[1, 1, 2]]


def test_each_episode_has_its_own_window_whatever_its_row() -> None:
    window = FrameWindow(2)
    moved(window, ["a", "b"], 1, 10)
    assert moved(window, ["b", "a"], 20, 2) == [[10, 20], [1, 2]]
    assert moved(window, ["c", "b"], 100, 30) == [[100, 100], [20, 30]]
    assert moved(window, ["a"], 3) == [[2, 3]]


def test_an_episode_that_ended_leaves_nothing_to_the_next() -> None:
    """Section 16: the next one starts padded afresh, and its neighbour is not touched."""
    window = FrameWindow(3)
    for values in ((1, 10), (2, 20)):
        moved(window, ["a", "b"], *values)
    window.evict("a")
    window.evict("never seen")
    assert len(window) == 1
    assert moved(window, ["c", "b"], 5, 30) == [[5, 5, 5], [10, 20, 30]]
    assert moved(window, ["a"], 7) == [[7, 7, 7]]


def test_many_episodes_come_and_go_in_little_memory() -> None:
    window = FrameWindow(3)
    for start in range(0, 200, 20):
        ids = [f"ep-{start + row}" for row in range(20)]
        moved(window, ids, *range(20))
        assert moved(window, ids, *range(100, 120)) == [[row, row, 100 + row] for row in range(20)]
        for name in ids:
            window.evict(name)
    assert len(window) == 0
    assert window.nbytes <= 64 * 2 * 8


def test_a_stack_stands_outside_the_axes_in_front_of_an_image() -> None:
    """Section 8.1: stack 4 and one axis in front give (4, 1, H, W, C)."""
    adapter = adapter_of(camera(2, 3), image(), {"cam": image(stack=4, lead_dims=1)})
    frames = np.full((2, 2, 3, 3), 5, np.uint8)
    stacked = adapter.observations.apply(frames, ["a", "b"])["cam"]
    assert (stacked.shape, stacked.dtype) == ((2, 4, 1, 2, 3, 3), np.uint8)
    assert resolved(camera(2, 3), image(), {"cam": image(stack=4)}).stacks == {"cam": 4}


def of_numbers(*values: float) -> Any:
    return np.array(values, np.float32)[:, None]


def test_states_are_stacked_step_by_step_asked_or_not() -> None:
    """W12: a step that is replayed without asking moves the window on as well."""
    stage = adapter_of(NUMBER, NUMBER_TAG, state("x/number", stack=3, pad_to=2)).observations
    assert stage.has_windows
    assert stage.apply(of_numbers(1), ["ep"]).tolist() == [[[1, 0], [1, 0], [1, 0]]]
    stage.commit()
    stage.observe(of_numbers(2), ["ep"])
    assert stage.apply(of_numbers(3), ["ep"]).tolist() == [[[1, 0], [2, 0], [3, 0]]]
    assert stage.apply(of_numbers(3), ["ep"]).tolist() == [[[1, 0], [2, 0], [3, 0]]]
    stage.commit()
    stage.evict("ep")
    assert stage.apply(of_numbers(4), ["ep"]).tolist() == [[[4, 0]] * 3]


def test_a_row_that_failed_has_not_moved_its_windows_on() -> None:
    space = spaces.Dict({"n": NUMBER, "r": spaces.Box(-1, 1, (4,))})
    wanted = {"a": state("x/number", stack=2), "b": state({"role": "x/r", "encoding": "axis_angle"})}
    tags = {"n": NUMBER_TAG, "r": {"type": "state", "role": "x/r", "encoding": "quat_xyzw"}}
    stage = adapter_of(space, tags, wanted).observations
    none, unit = np.zeros((1, 4), np.float32), np.array([[0, 0, 0, 1]], np.float32)
    with pytest.raises(ApplyError, match="length zero"):
        stage.apply({"n": of_numbers(1), "r": none}, ["broken"])
    stage.apply({"n": of_numbers(2), "r": unit}, ["sound"])
    stage.commit()
    found = stage.apply({"n": of_numbers(5, 6), "r": unit.repeat(2, 0)}, ["broken", "sound"])
    assert found["a"].tolist() == [[[5], [5]], [[2], [6]]]


@pytest.mark.parametrize("is_late", [False, True])
def test_what_is_handed_out_is_not_what_is_kept(is_late: bool) -> None:
    """A policy may write into what it sees, while it is asked and later."""
    stage = adapter_of(NUMBER, NUMBER_TAG, state("x/number", stack=2)).observations
    first = stage.apply(of_numbers(1), ["ep"])
    if not is_late:
        first[:] = -1
    stage.commit()
    first[:] = -1
    assert stage.apply(of_numbers(2), ["ep"]).tolist() == [[[1], [2]]]


def test_a_route_without_stacks_needs_no_step_that_is_not_asked() -> None:
    stage = adapter_of().observations
    assert not stage.has_windows


def averaged(ensembler: Ensembler, name: str, *plan: float) -> float:
    """Return the present step's action after one more plan, from the present step on."""
    return float(ensembler.average([name], np.array(plan)[None, :, None], None)[0, 0])


@pytest.mark.parametrize(("decay", "right"), [(log(2), 1.7142857), (0, 7 / 3)])
def test_the_older_a_plan_the_more_it_weighs(decay: float, right: float) -> None:
    """K19: of 1, 2 and 4, the oldest first; weights 1, 1/2 and 1/4, or all alike. Reversed it would be 3."""
    ensembler = Ensembler(decay, 3)
    assert averaged(ensembler, "ep", 7, 8, 1) == 7
    averaged(ensembler, "ep", 9, 2, 9)
    assert averaged(ensembler, "ep", 4, 9, 9) == pytest.approx(right, abs=1e-7)


def test_two_plans_of_an_even_weight() -> None:
    ensembler = Ensembler(0, 2)
    averaged(ensembler, "ep", 1, 3)
    assert averaged(ensembler, "ep", 5, 6) == 4
    assert averaged(ensembler, "ep", 8, 0) == 7


def test_a_plan_that_has_run_out_weighs_nothing() -> None:
    ensembler = Ensembler(0, 2)
    averaged(ensembler, "ep", 100, 100)
    averaged(ensembler, "ep", 1, 1)
    assert averaged(ensembler, "ep", 3, 3) == 2


def test_episodes_are_averaged_apart() -> None:
    ensembler = Ensembler(0, 2)
    chunks = np.array([[[1.0], [2.0]], [[10.0], [20.0]]])
    assert ensembler.average(["a", "b"], chunks, None).tolist() == [[1], [10]]
    assert ensembler.average(["b", "a"], chunks + 2, None).tolist() == [[(20 + 3) / 2], [(2 + 12) / 2]]


def test_a_later_plan_may_be_longer_than_the_first() -> None:
    """After the first call a chunk may be shorter than the horizon, and the next one whole again."""
    ensembler = Ensembler(0, 3)
    averaged(ensembler, "ep", 1)
    assert averaged(ensembler, "ep", 5, 7, 9) == 5
    assert averaged(ensembler, "ep", 3) == 5
    assert averaged(ensembler, "ep", 1, 1) == 5


def test_an_ended_episode_is_forgotten() -> None:
    ensembler = Ensembler(0, 2)
    averaged(ensembler, "ep", 1, 100)
    ensembler.evict("ep")
    ensembler.evict("never seen")
    assert averaged(ensembler, "ep", 5, 5) == 5


def test_only_the_actions_that_a_row_planned_are_averaged() -> None:
    """The rest of a shorter chunk is padding."""
    ensembler = Ensembler(0, 2)
    chunks = np.array([[[1.0], [99.0]], [[2.0], [4.0]]])
    ensembler.average(["a", "b"], chunks, [1, 2])
    found = ensembler.average(["a", "b"], np.array([[[10.0], [0.0]], [[8.0], [0.0]]]), None)
    assert found.tolist() == [[10], [6]]


def test_a_short_plan_leaves_the_weights_of_later_steps_as_they_were() -> None:
    """At the third step there are two plans, 1 and 4; the second one had ended before."""
    ensembler = Ensembler(log(2), 3)
    for plan, lengths in (([1, 1, 1], None), ([9, 0, 0], [1])):
        ensembler.average(["ep"], np.array(plan, float)[None, :, None], lengths)
    assert averaged(ensembler, "ep", 4, 4, 4) == pytest.approx((1 + 4 / 2) / 1.5)


@pytest.mark.parametrize("decay", [-1e-9, -1, float("nan")])
def test_a_decay_below_0_is_refused(decay: float) -> None:
    """K19: it would turn the weights the wrong way round."""
    with pytest.raises(ValueError, match="is less than 0"):
        Ensembler(decay, 2)


TURN = {"role": "x/turn", "dim": 3, "encoding": "axis_angle"}
GRIP = {"role": "x/grip", "dim": 1, "binary": True}


def ensemble_error(action: spaces.Space[Any], *, horizon: int = 4, is_chunked: bool = True, **drives: Any) -> str:
    parts = list(drives.values())
    route = (
        resolved(action=action, drives=parts, output=[{**part, "binary": False} for part in parts])
        if parts
        else None
    )
    contract = RouteContract(observation=view_of(NUMBER), action=view_of(action), horizon=horizon)
    with pytest.raises(RouteError) as caught:
        check_ensemble(Ensemble(decay=0.1), route, contract, is_chunked=is_chunked)
    assert caught.value.where == "ensemble"
    return str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"horizon": 1}, "there is nothing to average: horizon is 1"),
        ({"is_chunked": False}, "the policy has no chunk corner"),
        ({"turn": TURN, "grip": GRIP}, 'action role "x/turn" is a rotation, which has no average'),
        ({"grip": GRIP, "free": {"dim": 3}}, 'action role "x/grip" is snapped to -1 and +1, which has no average'),
    ],
)
def test_what_has_no_average_is_refused(options: dict[str, Any], words: str) -> None:
    assert words in ensemble_error(spaces.Box(-4, 4, (4,)), **options)


def test_discrete_actions_have_no_average() -> None:
    assert "Discrete(3) have no average" in ensemble_error(spaces.Discrete(3))


def test_a_component_that_is_named_linear_is_averaged_all_the_same() -> None:
    action = spaces.Box(-4, 4, (3,))
    contract = RouteContract(observation=view_of(NUMBER), action=view_of(action), horizon=4)
    route = resolved(action=action, drives=[TURN], output=[TURN])
    check_ensemble(Ensemble(decay=0, linear=("x/turn",)), route, contract, is_chunked=True)
