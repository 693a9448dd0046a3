"""Rows of a batch that cannot be converted fail alone, and no row depends on its neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from adapter_fakes import contexts
from adapter_routes import (
    DRIVE,
    NUMBER,
    NUMBER_TAG,
    Asked,
    adapter_of,
    camera,
    drive,
    free,
    ids,
    image,
    predicted,
    route_of,
    spec_of,
    state,
    tag,
)
from gymnasium import spaces

from rlmesh_adapters.apply.errors import ApplyError
from rlmesh_adapters.documents.spec import Custom
from rlmesh_adapters.engine import AdapterEngine
from rlmesh_adapters.errors import PolicyCallError

QUAT, UNIT, NONE = tag("x/r", encoding="quat_xyzw"), [0, 0, 0, 1], [0, 0, 0, 0]
AS_VECTOR = state({"role": "x/r", "encoding": "axis_angle"})


def answers(observations: Any) -> Any:
    """Answer each row with 0.5."""
    return np.full((len(observations), 1), 0.5)


def quats(*rows: Any) -> Any:
    return np.array(rows, np.float32)


def ask(engine: AdapterEngine, rows: Any, count: int, first: int = 0) -> Any:
    return engine.predict("route", rows, contexts(*range(first, first + count)))


def test_a_row_that_cannot_be_assembled_is_not_asked_for() -> None:
    """W9: a quaternion without length is no rotation; the reference takes it for the identity."""
    policy = Asked(spec_of(AS_VECTOR, DRIVE), answers)
    engine = route_of(policy, free(4), QUAT, num_lanes=3)
    prediction = ask(engine, quats(UNIT, NONE, UNIT), 3)
    assert (list(prediction.failures), prediction.failures[1].phase) == ([1], "adapter")
    assert "quat_xyzw has length zero" in prediction.failures[1].message
    assert prediction.actions[[0, 2]].tolist() == [[0.5], [0.5]]
    assert [len(seen) for seen in policy.seen] == [2]


def test_all_rows_may_fail_and_the_next_call_goes_on() -> None:
    engine = route_of(Asked(spec_of(AS_VECTOR, DRIVE), answers), free(4), QUAT, num_lanes=2)
    ask(engine, quats(UNIT, UNIT), 2)
    broken = ask(engine, quats(NONE, NONE), 2)
    assert (list(broken.failures), broken.actions) == ([0, 1], None)
    assert ask(engine, quats(UNIT, UNIT), 2).actions.tolist() == [[0.5], [0.5]]


def test_a_first_row_that_cannot_be_assembled_at_the_very_start_ends_the_run() -> None:
    engine = route_of(Asked(spec_of(AS_VECTOR, DRIVE), answers), free(4), QUAT, num_lanes=2)
    with pytest.raises(PolicyCallError, match="length zero"):
        ask(engine, quats(NONE, UNIT), 2)


TALK = spaces.Dict({"say": spaces.Text(9), "n": NUMBER})
TALK_TAGS = {"say": {"type": "text", "role": "text/instruction"}, "n": NUMBER_TAG}


@pytest.mark.parametrize("bad", [3, None, b"go", ["go"]])
@pytest.mark.parametrize("container", ["str", "list"])
def test_a_text_of_another_type_fails_its_row(bad: Any, container: str) -> None:
    """W14, ours: the reference puts the fill in its place."""
    leaf = {"type": "text", "role": "text/instruction", "fill": "stop", "container": container}
    policy = Asked(spec_of(leaf, DRIVE), answers)
    engine = route_of(policy, TALK, TALK_TAGS, num_lanes=3)
    rows = {"n": np.zeros((3, 1), np.float32), "say": ["go", bad, "halt"]}
    prediction = ask(engine, rows, 3)
    assert list(prediction.failures) == [1]
    assert f"expected text, got {type(bad).__name__}" in prediction.failures[1].message
    assert policy.seen == [["go", "halt"] if container == "str" else [["go"], ["halt"]]]


def test_a_custom_input_that_raises_fails_its_row() -> None:
    def tenth(observation: Any) -> Any:
        if observation[0] < 0:
            raise ValueError(f"{observation[0]} is no length")
        return observation / 10

    policy = Asked({"input": Custom(tenth), "output": {"components": [DRIVE]}}, answers)
    prediction = ask(route_of(policy, num_lanes=4), np.array([[1], [-1], [0.5], [-0.5]], np.float32), 4)
    assert list(prediction.failures) == [1, 3]
    assert "(tenth): ValueError: -1.0 is no length" in prediction.failures[1].message
    assert policy.seen[0].tolist() == [[np.float32(0.1)], [np.float32(0.05)]]


def test_an_output_that_is_no_rotation_fails_its_row() -> None:
    turns = drive("x/r", 4, encoding="quat_xyzw")
    outputs = quats(UNIT, NONE, UNIT)
    policy = Asked(spec_of(state("x/number"), turns), outputs)
    env = drive("x/r", 3, encoding="axis_angle")
    engine = route_of(policy, action=free(3), drives=[env], num_lanes=3)
    prediction = ask(engine, np.zeros((3, 1), np.float32), 3)
    assert (list(prediction.failures), prediction.failures[1].phase) == ([1], "adapter")
    assert prediction.actions[[0, 2]].tolist() == [[0, 0, 0]] * 2


def test_observations_and_outputs_may_fail_in_one_call() -> None:
    """Failures are told by the rows that were asked about, not by those that were asked for."""
    spec = spec_of(AS_VECTOR, drive("x/r", 4, encoding="quat_xyzw"))
    policy = Asked(spec, lambda seen: np.array([UNIT, NONE, UNIT], np.float64)[: len(seen)])
    env = drive("x/r", 3, encoding="axis_angle")
    engine = route_of(policy, free(4), QUAT, action=free(3), drives=[env], num_lanes=4)
    prediction = ask(engine, quats(UNIT, NONE, UNIT, UNIT), 4)
    assert sorted(prediction.failures) == [1, 2]
    assert "observation" not in prediction.failures[2].message
    assert prediction.actions[[0, 3]].tolist() == [[0, 0, 0]] * 2


def test_not_a_number_fails_its_row_in_front_of_any_conversion() -> None:
    policy = Asked(spec_of(state("x/number"), DRIVE), [[0.25], [np.nan], [-0.25]])
    engine = route_of(policy, drives=[{**DRIVE, "binary": True}], num_lanes=3)
    prediction = ask(engine, np.zeros((3, 1), np.float32), 3)
    assert (list(prediction.failures), prediction.failures[1].phase) == ([1], "action")
    assert prediction.actions[[0, 2]].tolist() == [[1], [-1]]


def test_windows_of_rows_that_go_on_are_whole() -> None:
    """The neighbour fails at the second step, and nothing of it is mixed in."""
    spec = spec_of({"r": {**AS_VECTOR, "stack": 2}}, DRIVE)
    policy = Asked(spec, lambda seen: np.zeros((len(seen["r"]), 1)))
    engine = route_of(policy, free(4), QUAT, num_lanes=2)
    half = [0, 0, np.sqrt(0.5), np.sqrt(0.5)]
    ask(engine, quats(UNIT, half), 2)
    assert list(ask(engine, quats(NONE, UNIT), 2).failures) == [0]
    ask(engine, quats(UNIT), 1, first=1)
    assert policy.seen[1]["r"].round(4).tolist() == [[[0, 0, np.float32(1.5708)], [0, 0, 0]]]
    assert policy.seen[2]["r"].tolist() == [[[0, 0, 0], [0, 0, 0]]]


@pytest.mark.parametrize("width", [1, 3])
def test_a_width_that_the_space_did_not_promise_is_refused(width: int) -> None:
    """W13: the reference shifts all that stands behind it."""
    adapter = adapter_of(free(2), tag("x/s"), state("x/s"))
    words = f'state piece "<root>" resolved to 2 dims but the observation yields {width}'
    with pytest.raises(ApplyError, match=words) as caught:
        adapter.observations.apply(np.zeros((2, width), np.float32), ids(2))
    assert caught.value.rows == (0, 1)


def test_a_camera_of_another_size_is_refused() -> None:
    adapter = adapter_of(camera(2, 3), image(), {"cam": image()})
    with pytest.raises(ApplyError, match='image "cam": camera `<root>`: expected height, width, channels'):
        adapter.observations.apply(np.zeros((1, 3, 2, 3), np.uint8), ids(1))


def test_what_the_model_sees_is_its_own_to_write_into() -> None:
    def scribbles(observations: Any) -> Any:
        for leaf in observations.values():
            leaf[...] = 0
        return np.zeros((1, 1))

    space = spaces.Dict({"cam": camera(1, 1), "n": NUMBER})
    tags = {"cam": image(), "n": NUMBER_TAG}
    engine = route_of(Asked(spec_of({"cam": image(), "n": state("x/number")}, DRIVE), scribbles), space, tags)
    rows = {"cam": np.full((1, 1, 1, 3), 7, np.uint8), "n": np.ones((1, 1), np.float32)}
    ask(engine, rows, 1)
    assert (rows["cam"].min(), rows["n"].item()) == (7, 1)


EVERYTHING = spaces.Dict({"cam": camera(4, 6), "r": free(4), "s": spaces.Box(-1, 1, (3,)), "say": spaces.Text(9)})
EVERY_TAG = {
    "cam": image(upside_down=True),
    "r": QUAT,
    "s": tag("x/s"),
    "say": {"type": "text", "role": "text/instruction"},
}
EVERY_INPUT = {
    "cam": image(height=2, width=2, fit="crop", layout="chw", dtype="float32", normalize=True, stack=2),
    "low": state({"role": "x/r", "encoding": "rot6d"}, {"role": "x/s", "range": [0, 5]}, pad_to=11, stack=3),
    "say": {"type": "text", "role": "text/instruction", "container": "list"},
}


def test_no_row_depends_on_those_beside_it() -> None:
    pytest.importorskip("cv2")
    rng = np.random.default_rng(5)
    together = adapter_of(EVERYTHING, EVERY_TAG, EVERY_INPUT).observations
    alone = [adapter_of(EVERYTHING, EVERY_TAG, EVERY_INPUT).observations for _ in range(5)]
    for _ in range(4):
        batch = {
            "cam": rng.integers(0, 256, (5, 4, 6, 3), np.uint8),
            "r": rng.normal(size=(5, 4)).astype(np.float32),
            "s": rng.uniform(-1, 1, (5, 3)).astype(np.float32),
            "say": [f"go {row}" for row in range(5)],
        }
        found = together.apply(batch, ids(5))
        together.commit()
        for row, stage in enumerate(alone):
            single = stage.apply({name: leaf[row : row + 1] for name, leaf in batch.items()}, [ids(5)[row]])
            stage.commit()
            assert found["say"][row] == single["say"][0]
            for name in ("cam", "low"):
                assert np.array_equal(found[name][row], single[name][0])


def test_no_action_depends_on_those_beside_it() -> None:
    env = [drive("x/r", 3, encoding="axis_angle"), drive("x/g", range=[0, 8]), drive("x/b", binary=True)]
    model = [drive("x/g", range=[-1, 1]), drive("x/b"), drive("x/r", 6, encoding="rot6d")]
    adapter = adapter_of(action=free(5), drives=env, output=model)
    outputs = np.random.default_rng(6).normal(size=(7, 8))
    together = predicted(adapter, outputs).actions
    each = [predicted(adapter, outputs[row : row + 1]).actions[0] for row in range(7)]
    assert np.array_equal(together, each)
