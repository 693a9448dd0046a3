"""Faults that were found by hunting in how a route is resolved, each as the fact that it broke."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from adapter_fakes import contexts
from adapter_routes import (
    DRIVE,
    NUMBER,
    NUMBER_TAG,
    acted,
    assembled,
    box,
    camera,
    drive,
    free,
    image,
    lines,
    notes_of,
    paired,
    refused,
    resolved,
    route_of,
    spec_of,
    state,
    tag,
    unpaired,
)
from gymnasium import spaces

from rlmesh_adapters.contract import Ensemble, RouteContract
from rlmesh_adapters.documents.actions import Actuator
from rlmesh_adapters.documents.encodings import CustomEncoding
from rlmesh_adapters.documents.reading import read_spec
from rlmesh_adapters.documents.schema import DocumentError
from rlmesh_adapters.engine import AdapterEngine
from rlmesh_adapters.errors import RouteError
from rlmesh_envs.spaces import view_of

LARGEST = float(np.finfo(np.float64).max)
LARGEST_32 = float(np.finfo(np.float32).max)
QUAT = tag("x/r", encoding="quat_xyzw")
BLANK = {"optional": True, "height": 1, "width": 1, "channels": 1}


def test_notes_stand_in_the_order_of_the_model_s_inputs() -> None:
    """Those of states came before those of cameras, whatever their places."""
    gone = state({"role": "x/gone", "optional": True, "dim": 1})
    inputs = {"a": image("image/wrist", **BLANK), "b": gone, "c": image("image/side", **BLANK)}
    codes = [note.code for note in resolved(wanted=inputs).notes]
    assert codes == ["camera-zero-filled", "state-zero-filled", "camera-zero-filled"]


def test_an_unknown_kind_is_passed_over_where_the_role_stands_in_a_known_one() -> None:
    space = spaces.Dict({"a": camera(2, 2), "b": NUMBER})
    route = resolved(space, {"a": image(), "b": {"type": "depth", "role": "image/primary"}}, image())
    assert (notes_of(route), route.plans[0].source) == ([("info", "feature-ignored")], ("a",))


@pytest.mark.parametrize(
    ("space", "tags", "wanted", "words"),
    [
        (camera(2, 2), image(), image(lead_dims=100), "100 axes of size 1"),
        (camera(2, 2), image(), image(height=2**24, width=2**24, allow_upscale=True), "is too large"),
        (NUMBER, NUMBER_TAG, image(optional=True, height=2**24, width=2**24, channels=3), "is too large"),
        (camera(2, 2), image(), image(height=2**12, width=2**12, stack=64, allow_upscale=True), "is too large"),
        (NUMBER, NUMBER_TAG, image(lead_dims=70, **BLANK), "70 axes of size 1"),
        (NUMBER, NUMBER_TAG, state("x/number", reshape=[1] * 70), "a shape of 70 axes"),
    ],
)
def test_inputs_that_no_array_can_be_are_refused(space: Any, tags: Any, wanted: Any, words: str) -> None:
    """They ended the run at its first step, out of memory or with an error of numpy's."""
    error = refused(space, tags, wanted)
    assert (error.code, error.where, words in error.cause) == ("Unsupported", "model_spec.input", True), error
    assert "at most" in error.mend


def test_outputs_that_no_memory_holds_are_refused() -> None:
    error = refused(output=[DRIVE, *[{"dim": 2**24}] * 5000])
    assert (error.code, error.cause) == ("Unsupported", "the model puts out 83,886,080,001 numbers")


def test_a_camera_whose_tag_has_no_width_is_refused() -> None:
    error = refused(free(1, 1, 1), image(range=[1, 1]), image())
    assert (error.code, "range (1.0, 1.0) has no width" in error.cause) == ("InvalidTag", True)


@pytest.mark.parametrize("space", [box(1, 1, 1, 1, 1), box(-LARGEST_32, LARGEST_32, 1, 1, 1)])
def test_a_camera_whose_bounds_say_nothing_is_taken_for_0_to_1(space: spaces.Box) -> None:
    """Bounds without width gave 255 for everything, and the largest numbers there are grey."""
    route = resolved(space, image(), image())
    assert notes_of(route) == [("caution", "camera-range-assumed")]
    values = np.array([0.0, 1.0], np.float32).reshape(2, 1, 1, 1)
    assert assembled(values, space, image(), image(), rows=2).ravel().tolist() == [0, 255]


@pytest.mark.parametrize("bound", [1e30, LARGEST_32, LARGEST])
def test_bounds_that_are_as_good_as_infinite_are_none(bound: float) -> None:
    """Their width is infinite in float64, and every number became the same one."""
    space = spaces.Box(-bound, bound, (1,), np.float64)
    wanted = state({"role": "x/s", "range": [0, 1]})
    route = resolved(space, tag("x/s"), wanted)
    assert notes_of(route) == [("info", "state-range-unused")]
    assert assembled(np.array([[0.25]]), space, tag("x/s"), wanted).tolist() == [[0.25]]
    assert "no finite range to map it into" in unpaired(drive(), drive(range=[0, 1]), space).cause
    assert notes_of(paired(drive(), drive(), space)) == []
    assert notes_of(resolved(space, tag("x/s", range=[-5, 5]), wanted)) == []


def test_bounds_just_below_are_bounds() -> None:
    space = spaces.Box(-9e29, 9e29, (1,), np.float64)
    wanted = state({"role": "x/s", "range": [0, 1]})
    assert assembled(np.array([[4.5e29]]), space, tag("x/s"), wanted).tolist() == [[0.75]]


@pytest.mark.parametrize(
    "part",
    [
        {"normalize": {"kind": "mean_std", "mean": [0], "std": [5e-324]}},
        {"normalize": {"kind": "mean_std", "mean": [0], "std": [9e-31]}},
    ],
)
def test_states_are_not_scaled_by_what_is_next_to_infinite(part: Any) -> None:
    error = refused(box(-1, 1, 1), tag("x/s"), state({"role": "x/s", **part}))
    assert (error.code, error.where) == ("Unsupported", "model_spec.input.components[0]")
    assert "cannot be reckoned with" in error.cause


@pytest.mark.parametrize(
    ("env", "model"),
    [
        ({"range": [0, 1]}, {"range": [0, 1e-31]}),
    ],
)
def test_actions_are_not_scaled_by_what_is_next_to_infinite(env: Any, model: Any) -> None:
    error = unpaired(drive(**env), drive(**model), free(1))
    assert (error.code, "cannot be reckoned with" in error.cause) == ("Unsupported", True)


@pytest.mark.parametrize(
    "part",
    [
        {"normalize": {"kind": "mean_std", "mean": [1e31], "std": [1]}},
        {"normalize": {"kind": "min_max", "min": [-1e308], "max": [1e308]}},
        {"range": [0, 1e31]},
    ],
)
def test_numbers_that_are_as_good_as_infinite_are_no_document(part: Any) -> None:
    with pytest.raises(DocumentError, match="as good as infinite"):
        read_spec({"input": state({"role": "x/s", **part}), "output": {"components": []}})


def test_a_spread_that_is_small_but_not_nothing_is_used() -> None:
    statistics = {"kind": "mean_std", "mean": [0], "std": [1e-20]}
    wanted = state({"role": "x/s", "normalize": statistics})
    assert assembled(np.array([[3e-20]]), free(1), tag("x/s"), wanted).item() == pytest.approx(3)


def test_a_range_of_a_rotation_that_is_converted_does_nothing_and_is_not_shown() -> None:
    """The environment's range is of a quaternion's numbers, which an axis-angle does not have."""
    wanted = state({"role": "x/r", "encoding": "axis_angle", "range": [0, 1]})
    route = resolved(box(-1, 1, 4), QUAT, wanted)
    assert notes_of(route) == [("info", "state-range-unused")]
    assert route.notes[0].message.endswith("but the rotation is converted; it is a no-op")
    assert lines(route)[1] == '  "<root>" <- concat(<root> (quat_xyzw->axis_angle))'
    turn = assembled(np.array([[0, 0, 0.6, 0.8]], np.float32), box(-1, 1, 4), QUAT, wanted)
    assert turn[0].tolist() == pytest.approx([0, 0, 1.2870022], abs=1e-6)


STATISTICS = {"kind": "min_max", "min": [0], "max": [1]}


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"select": "argmax"}, "`select`"),
        ({"normalize": STATISTICS}, "`normalize`"),
        ({"reference": "x/number", "mode": "delta"}, "`reference`"),
        ({"keep_sign": True, "select": "index"}, "`select`, `keep_sign`"),
        ({"optional": True, "normalize": STATISTICS}, "`normalize`"),
    ],
)
def test_what_only_a_model_can_say_is_not_passed_over_in_a_tag(fields: Any, names: str) -> None:
    error = unpaired(drive(**fields), drive())
    assert (error.code, error.where) == ("InvalidTag", "env_tags.action")
    assert error.cause == f'action role "x/a": {names} belongs to the model\'s side'


def test_an_environment_has_no_encoding_of_its_own() -> None:
    """Its function was never called, and the numbers were sent as those of its base."""
    for function in ({"from_base": list}, {"to_base": list}):
        turns = Actuator("x/a", 3, encoding=CustomEncoding("axis_angle", **function))
        error = unpaired(turns, drive(dim=3, encoding="axis_angle"), free(3))
        assert (error.code, "belongs to the model's side" in error.cause) == ("InvalidTag", True)


def test_a_number_of_0_is_said_all_the_same() -> None:
    """A scale and a threshold of 0 were taken for none."""
    error = unpaired(drive(threshold=0, scale=0), drive(select="index"), spaces.Discrete(2))
    assert (error.code, "cannot have `scale`, `threshold`" in error.cause) == ("InvalidTag", True)


def test_a_model_cannot_say_that_a_component_is_optional() -> None:
    """It puts out what it puts out."""
    error = unpaired(drive(), drive(optional=True, fill=1))
    assert (error.code, error.where) == ("Unsupported", "model_spec.output")
    assert "optional is for the environment's side" in error.cause


@pytest.mark.parametrize("clip", [[5, 6], [-9, -1.5]])
def test_a_clip_beside_the_action_space_is_refused(clip: Any) -> None:
    """Every action became one that the environment does not take."""
    error = refused(clip=clip)
    assert (error.code, error.where) == ("InvalidTag", "env_tags.action.clip")
    assert "lies outside the action space" in error.cause


def test_a_clip_that_meets_the_action_space_is_taken() -> None:
    for clip in ([1, 6], [-9, 9], [-9, -1]):
        assert resolved(clip=clip).action.clip == tuple(clip)


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        ([drive(), {"dim": 1, "fill": 5}], "an action component without a role"),
        ([drive(), drive("x/b", optional=True, fill=-2)], 'action role "x/b"'),
    ],
)
def test_a_constant_that_the_environment_does_not_take_is_refused(parts: Any, name: str) -> None:
    """It was clipped at every step of every episode."""
    error = unpaired(parts, drive(), box(-1, 1, 2))
    assert (error.code, error.where) == ("InvalidTag", "env_tags.action")
    assert error.cause.startswith(f"{name}: fill ")
    assert error.cause.endswith("is outside the action space")


def test_a_constant_is_held_against_its_own_numbers() -> None:
    space = spaces.Box(np.array([-1, 3], np.float32), np.array([1, 8], np.float32))
    assert acted([[0.5]], space, [drive(), {"dim": 1, "fill": 5}], [drive()]).tolist() == [[0.5, 5]]


@pytest.mark.parametrize("dtype", ["int8", "bool"])
def test_a_type_that_does_not_hold_a_byte_is_none_for_images(dtype: str) -> None:
    """200 became 127."""
    for error in (
        refused(camera(2, 2), image(), image(dtype=dtype)),
        refused(wanted=image(dtype=dtype, **BLANK)),
    ):
        assert (error.code, f"dtype {dtype} does not hold 0 to 255" in error.cause) == ("Unsupported", True)


def test_a_camera_of_yes_and_no_is_not_said_to_saturate() -> None:
    assert notes_of(resolved(spaces.Box(0, 1, (1, 1, 1), np.bool_), image(), image())) == []


def test_a_rotation_is_no_reference_and_is_told_so() -> None:
    """The words were of an encoding that both sides must declare, which nobody had asked for."""
    env, model = drive(dim=3, mode="absolute"), drive(dim=3, mode="delta", reference="x/r")
    error = unpaired(env, model, free(3), observation=free(3), tags=tag("x/r", encoding="axis_angle"), wanted={})
    assert (error.code, "rotations are no sums" in error.cause) == ("Unsupported", True)


class Chunks:
    """A policy that plans two actions."""

    def __init__(self, *output: Any) -> None:
        self.spec = spec_of(state("x/number"), *output or [DRIVE])

    def predict_chunk(self, observation: Any) -> Any:
        return np.zeros((2, 1))


def test_later_actions_of_a_chunk_are_no_steps_from_where_it_stood_before() -> None:
    """Absolute 1, 2, 3 became steps of 1, 2 and 3, and the arm went to 6."""
    policy = Chunks({**DRIVE, "mode": "absolute", "reference": "x/number"})
    drives = [{**DRIVE, "mode": "delta"}]
    for more in ({}, {"ensemble": Ensemble(decay=0)}):
        with pytest.raises(RouteError, match="which the later actions of a chunk do not have") as caught:
            route_of(policy, drives=drives, horizon=2, **more)
        assert (caught.value.where, "--horizon 1" in caught.value.mend) == ("horizon", True)
    route_of(policy, drives=drives)


def test_whole_numbers_of_a_box_have_no_average() -> None:
    """The average of 3 and 0 was cut to 1."""
    with pytest.raises(RouteError, match="have no average"):
        route_of(Chunks(), action=spaces.Box(0, 9, (1,), np.int64), horizon=2, ensemble=Ensemble(decay=0))


@pytest.mark.parametrize("decay", [-1, float("nan")])
def test_a_decay_below_0_is_the_user_s_to_mend(decay: float) -> None:
    with pytest.raises(RouteError, match="would let later plans outweigh") as caught:
        route_of(Chunks(), horizon=2, ensemble=Ensemble(decay=decay))
    assert caught.value.where == "ensemble.decay"


def test_a_spec_that_cannot_be_read_off_a_policy_is_none() -> None:
    """Policies have attributes of that name that have nothing to do with us."""

    class Late(SimpleNamespace):
        @property
        def spec(self) -> Any:
            raise RuntimeError("not built yet")

        def predict(self, observation: Any) -> Any:
            return observation

    engine = AdapterEngine()
    engine.configure("route", Late, RouteContract(observation=view_of(NUMBER), action=view_of(NUMBER)))
    prediction = engine.predict("route", np.array([[0.5]], np.float32), contexts(0))
    assert prediction.actions.tolist() == [[0.5]]
