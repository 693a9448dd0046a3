"""Observations of lanes: every kind of space, rows that are copies, structures that do not fit."""

from __future__ import annotations

import copy
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest
from env_fakes import Answer, Reusing, Sampled, Tape
from env_plays import same
from gymnasium import spaces

from rlmesh_adapters.batches import row_of
from rlmesh_envs.lanes import LaneVectorEnv

HALF = spaces.Box(-10, 10, (2,), np.float16)
GRAPH = spaces.Graph(spaces.Box(-1, 1, (2,)), spaces.Discrete(3))
SPACES = {
    "float32": spaces.Box(-1, 1, (2, 3)),
    "float16": HALF,
    "float64-scalar": spaces.Box(-1, 1, (), np.float64),
    "image": spaces.Box(0, 255, (2, 2, 3), np.uint8),
    "empty": spaces.Box(0, 1, (0,)),
    "bool": spaces.Box(0, 1, (2,), np.bool_),
    "discrete": spaces.Discrete(5, start=-2),
    "multi-discrete": spaces.MultiDiscrete([[2, 3], [4, 5]]),
    "multi-binary": spaces.MultiBinary((2, 2)),
    "text": spaces.Text(6, charset="aé漢"),
    "graph": GRAPH,
    "sequence": spaces.Sequence(HALF),
    "stacked-sequence": spaces.Sequence(HALF, stack=True),
    "one-of": spaces.OneOf((spaces.Discrete(3), HALF)),
    "dict": spaces.Dict(OrderedDict(z=HALF, a=spaces.Discrete(4), nested=spaces.Dict(b=spaces.MultiBinary(2)))),
    "tuple": spaces.Tuple((spaces.Discrete(2), spaces.Tuple((HALF, spaces.Text(3))))),
    "mixed": spaces.Dict(words=spaces.Text(5), graph=GRAPH, pair=spaces.Tuple((HALF, spaces.Sequence(HALF)))),
    "empty-dict": spaces.Dict(),
    "empty-tuple": spaces.Tuple(()),
}


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("name", SPACES)
def test_rows_are_what_single_environments_observe_in_every_space(name, count):
    space = SPACES[name]
    lanes = LaneVectorEnv([lambda: Sampled(space)] * count)
    singles = [Sampled(space) for _ in range(count)]
    resets = lanes.reset_lanes(range(count), range(count))
    expected = [env.reset(seed=lane)[0] for lane, env in enumerate(singles)]
    assert resets.failures == {}
    assert same([row_of(resets.observations, row) for row in range(count)], expected)
    for _ in range(3):
        steps = lanes.step_lanes(np.zeros(count, np.int64), tuple(range(count)))
        assert steps.failures == {}
        expected = [env.step(0)[0] for env in singles]
        assert same([row_of(steps.observations, row) for row in range(count)], expected)


@pytest.mark.parametrize("name", SPACES)
def test_reset_and_step_give_members_of_the_batched_observation_space(name):
    lanes = LaneVectorEnv([lambda: Sampled(SPACES[name])] * 2)
    observations, _ = lanes.reset(seed=3)
    assert lanes.observation_space.contains(observations)
    observations, *_ = lanes.step(np.array([0, 1]))
    assert lanes.observation_space.contains(observations)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("kind", ["box", "dict", "graph", "sequence"])
def test_an_environment_that_reuses_its_observation_changes_no_earlier_batch(kind, count):
    lanes = LaneVectorEnv([lambda: Reusing(kind)] * count)
    company, actions = tuple(range(count)), np.ones((count, 2), np.float32)
    batches = [lanes.reset_lanes(company, company).observations]
    batches += [lanes.step_lanes(actions, company).observations for _ in range(3)]
    for time, batch in enumerate(batches):
        for row in range(count):
            expected = Reusing(kind)
            expected.array[...] = time
            assert same(row_of(batch, row), expected.shown)


def test_the_vector_interface_gives_batches_that_later_calls_leave_alone():
    lanes = LaneVectorEnv([Reusing, Reusing])
    first, _ = lanes.reset(seed=0)
    second, *_ = lanes.step(np.ones((2, 2), np.float32))
    lanes.step(np.ones((2, 2), np.float32))
    assert first.tolist() == [[0, 0], [0, 0]]
    assert second.tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize("count", [1, 2])
def test_an_environment_that_writes_into_its_action_leaves_the_callers_batch_alone(count):
    lanes = LaneVectorEnv([Reusing] * count)
    lanes.reset_lanes(range(count), range(count))
    actions = np.full((count, 2), 3, np.float32)
    steps = lanes.step_lanes(actions, tuple(range(count)))
    assert list(steps.rewards) == [12.0] * count
    assert actions.tolist() == [[3, 3]] * count


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(
    "shape",
    [
        lambda array: np.asfortranarray(array),
        lambda array: np.repeat(array, 2)[::2],
        lambda array: array[::-1].copy()[::-1],
        lambda array: array.astype(">f4"),
        lambda array: array.astype(np.float64),
        lambda array: array.astype(np.float16),
        lambda array: array.astype(np.int64),
        lambda array: array.tolist(),
        lambda array: tuple(array.tolist()),
        lambda array: array.view(type("Sub", (np.ndarray,), {})),
    ],
)
def test_arrays_of_any_layout_are_stored_in_the_spaces_own_type(shape, count):
    def twist(tape: Tape, answer: Answer) -> Any:
        observation = shape(answer[0])
        if isinstance(observation, np.ndarray):
            observation.setflags(write=False)
        return observation, *answer[1:]

    lanes = LaneVectorEnv([lambda: Tape(3, twist=twist)] * count)
    lanes.reset_lanes(range(count), [20 + lane for lane in range(count)])
    batch = lanes.step_lanes(np.ones(count, np.int64), tuple(range(count))).observations
    assert type(batch) is np.ndarray
    assert batch.dtype == np.dtype("=f4")
    assert batch.flags.c_contiguous
    assert batch.flags.writeable
    assert batch.tolist() == [[20 + lane, 1, 1] for lane in range(count)]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (np.zeros(2, np.float32), ""),
        (np.zeros(2, np.float16), ""),
        (np.zeros(2, np.float64), "float64 is stored as float32"),
        (np.zeros(2, np.int64), "int64 is stored as float32"),
    ],
)
def test_the_first_reset_says_what_loses_precision(given, said):
    class Given(Sampled):
        def reset(self, *, seed=None, options=None):
            return given, {}

    lanes = LaneVectorEnv([lambda: Given(spaces.Box(-1, 1, (2,), np.float32))] * 2)
    assert lanes.reset_lanes([1], [0]).casts == said
    assert lanes.reset_lanes([0, 1], [0, 1]).casts == ""


def test_a_cast_inside_a_structure_names_its_leaf():
    class Given(Sampled):
        def reset(self, *, seed=None, options=None):
            return {"a": 1, "b": (np.zeros(2, np.float64),)}, {}

    space = spaces.Dict(a=spaces.Discrete(3), b=spaces.Tuple((HALF,)))
    assert LaneVectorEnv([lambda: Given(space)]).reset_lanes([0], [0]).casts == (
        "`b`: `0`: float64 is stored as float16"
    )


NESTED = spaces.Dict(camera=spaces.Box(0, 255, (2, 2), np.uint8), arm=spaces.Tuple((HALF, spaces.Discrete(3))))
GOOD = {"camera": np.zeros((2, 2), np.uint8), "arm": (np.zeros(2, np.float16), 1)}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda value: {"arm": value["arm"]}, "`camera` is missing"),
        (lambda value: {**value, "camera": np.zeros(2, np.uint8)}, "`camera`: expected shape (2, 2), got (2,)"),
        (lambda value: {**value, "camera": np.uint8(1)}, "`camera`: expected shape (2, 2), got ()"),
        (lambda value: {**value, "camera": [[1, 2], [3]]}, "`camera`"),
        (lambda value: {**value, "arm": value["arm"][:1]}, "`arm`: `1` is missing"),
        (lambda value: {**value, "arm": (np.zeros((1, 2), np.float16), 1)}, "`arm`: `0`: expected shape (2,)"),
        (lambda value: {**value, "arm": None}, "`arm`"),
        (lambda value: {**value, "arm": (value["arm"][0], None)}, "`arm`: `1`"),
        (lambda value: {**value, "arm": (value["arm"][0], "two")}, "`arm`: `1`"),
        (lambda value: None, "missing"),
        (lambda value: [value], "missing"),
        (lambda value: np.zeros(4), "missing"),
    ],
)
@pytest.mark.parametrize("at_reset", [True, False])
def test_a_structure_that_does_not_fit_fails_its_lane_and_names_the_leaf(change, words, at_reset):
    class Given(Sampled):
        def reset(self, *, seed=None, options=None):
            return (change(copy.deepcopy(GOOD)) if at_reset and seed == 1 else copy.deepcopy(GOOD)), {}

        def step(self, action):
            return (change(copy.deepcopy(GOOD)) if action == 1 else copy.deepcopy(GOOD)), 0.0, False, False, {}

    lanes = LaneVectorEnv([lambda: Given(NESTED)] * 2)
    answer: Any = lanes.reset_lanes([0, 1], [0, 1])
    if not at_reset:
        assert answer.failures == {}
        answer = lanes.step_lanes(np.array([0, 1]), (0, 1))
    assert list(answer.failures) == [1]
    assert words in answer.failures[1].message
    assert same(row_of(answer.observations, 0), GOOD | {"arm": (GOOD["arm"][0], np.int64(1))})


def test_a_short_row_in_all_lanes_is_refused_in_all_lanes():
    def twist(tape: Tape, answer: Answer) -> Any:
        return answer[0][:1], *answer[1:]

    lanes = LaneVectorEnv([lambda: Tape(3, twist=twist)] * 2)
    lanes.reset_lanes([0, 1], [0, 1])
    failures = lanes.step_lanes(np.zeros(2, np.int64), (0, 1)).failures
    assert {row: failure.message for row, failure in failures.items()} == dict.fromkeys(
        (0, 1), "ValueError: expected shape (3,), got (1,)"
    )


def test_actions_of_structured_spaces_reach_their_own_lanes():
    got = []

    class Told(Sampled):
        action_space = spaces.Dict(word=spaces.Text(4), pair=spaces.Tuple((HALF, spaces.Discrete(9))))

        def step(self, action):
            got.append(action)
            return super().step(action)

    lanes = LaneVectorEnv([lambda: Told(spaces.Discrete(2))] * 3)
    lanes.reset_lanes([0, 1, 2], [0, 1, 2])
    halves = np.array([[1, 2], [3, 4]], np.float16)
    lanes.step_lanes({"word": ["ab", "cd"], "pair": (halves, np.array([5, 6]))}, (2, 0))
    assert same(got[0], {"word": "ab", "pair": (halves[0], np.int64(5))})
    assert same(got[1], {"word": "cd", "pair": (halves[1], np.int64(6))})
