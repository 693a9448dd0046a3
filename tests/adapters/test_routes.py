"""What a route makes of faults: the first call ends the run, later ones are failures of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from adapter_fakes import column, contexts
from gymnasium import spaces

from rlmesh_adapters.advisories import Advisory
from rlmesh_adapters.context import EpisodeContext
from rlmesh_adapters.contract import RouteContract
from rlmesh_adapters.corners import CORNER_NAMES
from rlmesh_adapters.engine import AdapterEngine
from rlmesh_adapters.errors import ActionError, PolicyCallError
from rlmesh_envs.spaces import view_of

DISCRETE = spaces.Discrete(20)
ANYTHING = spaces.Box(-np.inf, np.inf, (1,))


class Scripted:
    """Gives, or raises, one answer a call."""

    def __init__(self, name: str, *answers: Any) -> None:
        self._answers = iter(answers)
        setattr(self, name, self._act)

    def _act(self, obs: Any) -> Any:
        answer = next(self._answers)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def engine_for(
    policy: object, *, action: spaces.Space[Any] = DISCRETE, observation: Any = ANYTHING, horizon: int = 1
) -> AdapterEngine:
    engine = AdapterEngine()
    contract = RouteContract(
        observation=view_of(observation), action=view_of(action), num_lanes=2, horizon=horizon
    )
    engine.configure("route", lambda: policy, contract)
    return engine


def test_an_exception_of_the_very_first_call_ends_the_run() -> None:
    engine = engine_for(Scripted("predict", ValueError("no weights")))
    with pytest.raises(PolicyCallError) as raised:
        engine.predict("route", column(0), contexts(4))
    assert raised.value.cause == (
        "the policy failed on its very first call (ep-000005, step 0): "
        "ValueError: no weights (in predict, input float32[1])"
    )
    assert raised.value.where.endswith("in _act")
    assert "by hand" in raised.value.mend


@pytest.mark.parametrize(
    ("name", "answer", "kind", "words"),
    [
        ("predict", 0.5, PolicyCallError, "takes whole numbers, got float64"),
        ("predict", 99, PolicyCallError, "action 99 is outside Discrete(20)"),
        ("predict_batch", np.array([99, 0]), PolicyCallError, "action 99 is outside Discrete(20)"),
        ("predict_batch", np.array([0]), ActionError, "expected int64(2,), got int64(1,)"),
        ("predict_batch", np.zeros((2, 1), int), ActionError, "expected int64(2,), got int64(2, 1)"),
    ],
)
def test_a_misfit_of_the_very_first_call_ends_the_run(name: str, answer: Any, kind: type, words: str) -> None:
    engine = engine_for(Scripted(name, answer, answer))
    with pytest.raises(kind) as raised:
        engine.predict("route", column(0, 1), contexts(0, 1))
    assert words in raised.value.cause
    assert raised.value.mend != ""


@pytest.mark.parametrize(
    ("name", "first", "later", "words"),
    [
        ("predict_batch", np.zeros(2, int), np.array([0]), "expected int64(2,), got int64(1,)"),
        ("predict_batch", np.zeros(2, int), [0.0, 1.0], "takes whole numbers"),
        ("predict_batch", np.zeros(2, int), None, "is not an array of numbers"),
        ("predict_chunk_batch", np.zeros((2, 2), int), np.zeros((2, 0), int), "the chunk is empty"),
    ],
)
def test_a_later_answer_that_does_not_fit_fails_every_row_it_was_for(
    name: str, first: Any, later: Any, words: str
) -> None:
    engine = engine_for(Scripted(name, first, later, first), horizon=2 if "_chunk" in name else 1)
    episodes = contexts(0, 1)
    assert not engine.predict("route", column(0, 1), episodes).failures
    prediction = engine.predict("route", column(0, 1), episodes)
    assert [(row, failure.phase) for row, failure in sorted(prediction.failures.items())] == [
        (0, "policy"),
        (1, "policy"),
    ]
    assert words in prediction.failures[0].message
    assert not engine.predict("route", column(0, 1), episodes).failures


def test_a_later_exception_fails_its_row_alone() -> None:
    engine = engine_for(Scripted("predict", 1, 2, ValueError("late"), 4))
    engine.predict("route", column(0, 1), contexts(0, 1))
    prediction = engine.predict("route", column(0, 1), contexts(0, 1))
    assert list(prediction.failures) == [0]
    assert prediction.actions[1] == 4


def test_a_first_call_that_failed_for_its_second_row_alone_goes_on() -> None:
    """What episode 1 does must not depend on whether it starts beside episode 0."""
    engine = engine_for(Scripted("predict", 1, ValueError("second"), 2, 3))
    assert list(engine.predict("route", column(0, 1), contexts(0, 1)).failures) == [1]


def test_a_first_action_that_is_not_finite_fails_its_episode_not_the_run() -> None:
    engine = engine_for(Scripted("predict", np.float32([np.nan]), np.float32([0])), action=spaces.Box(-1, 1, (1,)))
    assert engine.predict("route", column(0), contexts(0)).failures[0].phase == "action"
    assert not engine.predict("route", column(0), contexts(0)).failures


def test_a_horizon_beyond_the_first_chunk_ends_the_run_and_names_its_length() -> None:
    engine = engine_for(Scripted("predict_chunk", [1, 2, 3]), horizon=5)
    with pytest.raises(ActionError) as raised:
        engine.predict("route", column(0), contexts(0))
    assert raised.value.cause == "horizon is 5, but the policy's chunk holds 3 actions"
    assert raised.value.mend == "use --horizon 3 or less"
    assert raised.value.where == "predict_chunk of the policy"


def test_later_chunks_that_are_short_are_counted() -> None:
    engine = engine_for(Scripted("predict_chunk", [1, 2, 3, 4], [1, 2], [1], [1, 2, 3]), horizon=3)
    engine.predict("route", column(0), contexts(0))
    assert engine.chunk_length("route") == 4
    assert engine.predict("route", column(0, 1), contexts(0, 1)).lengths == [2, 1]
    assert engine.predict("route", column(0), contexts(0)).lengths is None
    (advisory,) = engine.advisories
    assert (advisory.code, advisory.severity, advisory.count) == ("short-chunks", "info", 2)
    assert "horizon of 3" in advisory.message


def test_a_row_without_an_answer_is_no_short_chunk() -> None:
    engine = engine_for(Scripted("predict_chunk", [1, 2], [1], ValueError("no")), horizon=2)
    engine.predict("route", column(0), contexts(0))
    assert list(engine.predict("route", column(0, 1), contexts(0, 1)).failures) == [1]
    assert [advisory.count for advisory in engine.advisories] == [1]


class NeedsGradient:
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise RuntimeError("requires grad")


@pytest.mark.parametrize("name", CORNER_NAMES)
def test_an_answer_that_cannot_be_read_fails_rows_not_the_run(name: str) -> None:
    lead = () if name == "predict" else (1,) if name != "predict_chunk_batch" else (1, 1)
    engine = engine_for(Scripted(name, np.zeros(lead, int), NeedsGradient(), NeedsGradient()))
    engine.predict("route", column(0), contexts(0))
    assert list(engine.predict("route", column(0), contexts(0)).failures) == [0]


@pytest.mark.parametrize(
    ("ids", "words"),
    [(("a", "a"), "episode id a appears twice, again in row 1"), (("a", ""), "row 1 has an empty episode id")],
)
def test_rows_carry_distinct_episode_ids(ids: tuple[str, ...], words: str) -> None:
    engine = engine_for(Scripted("predict", 0, 0))
    episodes = tuple(EpisodeContext(known, place, place) for place, known in enumerate(ids))
    with pytest.raises(ValueError, match=words):
        engine.predict("route", column(0, 1), episodes)
    with pytest.raises(ValueError, match=words):
        engine.observe("route", column(0, 1), episodes)


def advisories_after(observation: spaces.Space[Any], *batches: Any) -> list[Advisory]:
    engine = engine_for(Scripted("predict", *[0] * 20), observation=observation)
    for batch in batches:
        engine.predict("route", batch, contexts(6, 7))
    return list(engine.advisories)


@pytest.mark.parametrize("odd", [1.5, -2, np.nan, np.inf])
def test_an_observation_outside_its_space_is_told_with_its_first_value(odd: float) -> None:
    inside, outside = np.float32([[0], [1]]), np.float32([[0], [odd]])
    (advisory,) = advisories_after(spaces.Box(-1, 1, (1,)), inside, outside, outside)
    assert (advisory.code, advisory.severity, advisory.count) == ("observation-outside", "caution", 2)
    assert advisory.message == f"the observation is outside its space, first in ep-000008: {[float(odd)]}"


def test_a_leaf_outside_is_named_by_its_path() -> None:
    space = spaces.Dict(
        {"said": spaces.Text(3), "arm": spaces.Dict({"q": spaces.Box(-1, 1, (2,)), "n": DISCRETE})}
    )
    arm = {"n": np.array([3, 20]), "q": np.float32([[0, 2], [3, 0]])}
    found = advisories_after(space, {"arm": arm, "said": ["a", "b"]})
    assert {(advisory.code, advisory.count) for advisory in found} == {
        ("observation-outside-arm.n", 1),
        ("observation-outside-arm.q", 2),
    }
    assert all("`arm." in advisory.message for advisory in found)


def test_long_observations_are_shown_in_short() -> None:
    (advisory,) = advisories_after(spaces.Box(-1, 1, (500,)), np.full((2, 500), 7, np.float32))
    assert len(advisory.message) < 200


@pytest.mark.parametrize(
    ("space", "batch"),
    [
        (spaces.Text(3), ["a", "b"]),
        (spaces.Box(0, 255, (2,), np.uint8), np.array([[0, 255]] * 2, np.uint8)),
        (spaces.Box(-np.inf, np.inf, (1,)), np.float32([[np.inf], [1]])),
        (spaces.Dict({}), {}),
    ],
)
def test_nothing_is_said_of_observations_inside(space: spaces.Space[Any], batch: Any) -> None:
    engine = engine_for(Scripted("predict_batch", np.zeros(2, int)), observation=space)
    engine.predict("route", batch, contexts(0, 1))
    assert len(engine.advisories) == 0
