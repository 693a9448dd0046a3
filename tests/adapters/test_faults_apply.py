"""Faults that were found by hunting in what is done to batches, each as the fact that it broke."""

from __future__ import annotations

import io
from math import pi, sqrt
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from adapter_fakes import contexts
from adapter_routes import (
    DRIVE,
    NUMBER,
    NUMBER_TAG,
    Asked,
    acted,
    adapter_of,
    assembled,
    camera,
    drive,
    free,
    image,
    predicted,
    route_of,
    spec_of,
    state,
    tag,
    vector,
)
from gymnasium import spaces

from rlmesh_adapters.apply.errors import ApplyError
from rlmesh_adapters.contract import Ensemble
from rlmesh_adapters.documents.actions import Actuator
from rlmesh_adapters.documents.encodings import CustomEncoding
from rlmesh_adapters.documents.spec import Concat, State

HALF = sqrt(0.5)
UNIT, QUARTER, NONE = [0, 0, 0, 1], [0, 0, HALF, HALF], [0, 0, 0, 0]
VECTOR, QUAT = tag("x/r", encoding="axis_angle"), tag("x/r", encoding="quat_xyzw")
AS_VECTOR = {"role": "x/r", "encoding": "axis_angle"}
TURNS = drive(dim=3, encoding="axis_angle")


def floats(*rows: Any) -> Any:
    return np.array(rows, np.float32)


def zeros(observations: Any) -> Any:
    return np.zeros((len(observations), 1))


def own(function: Any, base: str = "axis_angle") -> Concat:
    """Return a state in an encoding of the user's own."""
    return Concat(State("x/r", CustomEncoding(base, from_base=function)))


def own_output(function: Any, dim: int = 3, base: str = "axis_angle") -> Actuator:
    return Actuator("x/a", dim, encoding=CustomEncoding(base, to_base=function))


def small_only(values: Any) -> Any:
    if values[0] > 5:
        raise ValueError(f"{values[0]} is no turn")
    return values


def test_an_encoding_of_the_user_s_own_is_handed_its_base_whatever_the_environment_gives() -> None:
    """The function takes an axis-angle; the quaternion as it came would have another width and meaning."""
    result = vector([0, 0, 0.6, 0.8], QUAT, State("x/r", CustomEncoding("axis_angle", from_base=lambda v: v * 2)))
    assert result.tolist() == pytest.approx([0, 0, 2 * 1.2870022], abs=1e-6)


@pytest.mark.parametrize("function", [small_only, lambda values: values[: 3 - 2 * int(values[0] > 5)]])
def test_an_encoding_of_the_user_s_own_fails_the_row_that_it_fails_on(function: Any) -> None:
    """Raising or giving too few numbers: a single row must not end the others' episodes."""
    spec = {"input": own(function), "output": {"components": [DRIVE]}}
    engine = route_of(Asked(spec, zeros), free(3), VECTOR, num_lanes=3)
    prediction = engine.predict("route", floats([1, 0, 0], [6, 0, 0], [2, 0, 0]), contexts(0, 1, 2))
    assert (list(prediction.failures), prediction.failures[1].phase) == ([1], "adapter")
    adapter = adapter_of(action=free(3), drives=[TURNS], output=[own_output(function)])
    prediction = predicted(adapter, [[1, 0, 0], [6, 0, 0], [2, 0, 0]])
    assert list(prediction.failures) == [1]
    assert "the policy's own encoding raised ValueError" in prediction.failures[1].message
    assert prediction.actions[[0, 2]].tolist() == [[1, 0, 0], [2, 0, 0]]


def test_a_turn_of_the_user_s_own_that_is_too_short_is_never_repeated_over_the_row() -> None:
    """One number would be broadcast to three."""
    for function in (lambda values: values[:2], lambda values: values[:1]):
        with pytest.raises(ApplyError, match="cannot reshape"):
            assembled(floats([0, 0, 0]), free(3), VECTOR, own(function))
    quat = own_output(lambda values: values[:3], 4, "quat_xyzw")
    adapter = adapter_of(action=free(3), drives=[TURNS], output=[quat])
    assert list(predicted(adapter, [UNIT]).failures) == [0]


def test_an_encoding_of_the_user_s_own_cannot_write_into_the_model_s_output() -> None:
    def doubled(values: Any) -> Any:
        values *= 2
        return values

    outputs = np.array([[1.0, 2.0, 3.0]])
    adapter = adapter_of(action=free(3), drives=[TURNS], output=[own_output(doubled)])
    assert adapter.actions.apply(outputs, None)[0].tolist() == [[2, 4, 6]]
    assert outputs.tolist() == [[1, 2, 3]]


@pytest.mark.parametrize(
    ("target", "model", "output", "right"),
    [
        ("axis_angle", ("euler_xyz", [0, 0, pi / 2], 1), [pi / 2, 0, -pi / 2], [pi / 2, 0, 0]),
        ("axis_angle", ("rot6d", [0] * 6, 1), [1, 0, 0, 0, 1, 0], [0, 0, 0]),
        ("quat_xyzw", ("axis_angle", [0, 0, pi / 2], 2), [0, 0, 0], QUARTER),
    ],
)
def test_statistics_are_undone_in_the_model_s_encoding(target: str, model: Any, output: Any, right: Any) -> None:
    """They were taken of what the model puts out; the environment's encoding has other numbers, or fewer."""
    encoding, mean, std = model
    statistics = {"kind": "mean_std", "mean": mean, "std": [std] * len(mean)}
    drives = [drive(dim=len(right), encoding=target)]
    trained = drive(dim=len(mean), encoding=encoding, normalize=statistics)
    assert acted([output], free(len(right)), drives, [trained])[0].tolist() == pytest.approx(right, abs=1e-6)


@pytest.mark.parametrize("broken", [NONE, [np.nan] * 4])
def test_windows_move_on_though_a_neighbour_cannot_be_assembled(broken: Any) -> None:
    """The neighbour's step was dropped together with the broken one, without a word."""
    policy = Asked(spec_of({"r": state(AS_VECTOR, stack=2)}, DRIVE), lambda seen: np.zeros((len(seen["r"]), 1)))
    engine = route_of(policy, free(4), QUAT, num_lanes=2)
    engine.predict("route", floats(UNIT, UNIT), contexts(0, 1))
    engine.observe("route", floats(broken, QUARTER), contexts(0, 1))
    engine.predict("route", floats(UNIT), contexts(1))
    assert policy.seen[1]["r"][0].tolist() == [[0, 0, np.float32(pi / 2)], [0, 0, 0]]


def test_all_windows_of_an_episode_stay_in_step() -> None:
    """The first input had moved on when the second one could not be assembled."""
    space = spaces.Dict({"a": NUMBER, "r": free(4)})
    spec = spec_of({"a": state("x/number", stack=2), "r": state(AS_VECTOR, stack=2)}, DRIVE)
    policy = Asked(spec, lambda seen: np.zeros((len(seen["a"]), 1)))
    engine = route_of(policy, space, {"a": NUMBER_TAG, "r": QUAT}, num_lanes=2)
    for act, number, turn in ((engine.predict, 1, UNIT), (engine.observe, 2, NONE), (engine.predict, 3, UNIT)):
        act("route", {"a": floats([number], [number]), "r": floats(turn, UNIT)}, contexts(0, 1))
    assert policy.seen[1]["a"][..., 0].tolist() == [[1, 3], [2, 3]]


def test_a_chunk_may_be_longer_than_those_of_the_episodes_before() -> None:
    """Ensembling kept the length of an episode's first chunk, and a longer one ended the run."""

    class Uneven:
        spec = spec_of(state("x/number"), DRIVE)

        def __init__(self) -> None:
            self.chunks = iter([[0, 0], [0.25], [0.5, 1.0], [0, 0]])

        def predict_chunk(self, observation: Any) -> Any:
            return np.array(next(self.chunks))[:, None]

    engine = route_of(Uneven(), horizon=2, ensemble=Ensemble(decay=0))
    row, first = floats([0]), contexts(0)
    engine.predict("route", row, first)
    engine.end_episodes("route", first)
    assert [engine.predict("route", row, contexts(1)).actions.item() for _ in range(3)] == [0.25, 0.5, 0.5]


def test_what_a_component_s_own_clip_cuts_off_is_counted() -> None:
    adapter = adapter_of(action=free(1), drives=[drive(range=[-1, 1], clip=True)], output=[drive()])
    predicted(adapter, [[5], [0], [-1]])
    (use,) = adapter.actions.uses
    assert (use.values, use.clipped, use.saturated) == (3, 1, 2)


def test_rows_that_are_converted_again_are_counted_once() -> None:
    """A row that fails is left out and the others are converted anew; 9 was counted as clipped twice."""
    drives = output = [drive(dim=2)]
    adapter = adapter_of(action=spaces.Box(0, 3, (2,), np.int64), drives=drives, output=output)
    prediction = predicted(adapter, [[9, 1], [0.5, 1]])
    (use,) = adapter.actions.uses
    assert (list(prediction.failures), use.values, use.clipped, use.saturated) == ([1], 2, 1, 1)


@pytest.mark.parametrize("layout", ["hwc", "chw"])
def test_one_mean_is_for_all_channels(layout: str) -> None:
    """0 and 255 are -1 and 1 when 0.5 is taken off and divided by; so is a camera that is filled in."""
    wanted = {"dtype": "float32", "normalize": True, "mean": [0.5], "std": [0.5], "layout": layout}
    pixels = np.array([0, 255, 255], np.uint8).reshape(1, 1, 1, 3)
    assert assembled(pixels, camera(1, 1), image(), image(**wanted)).ravel().tolist() == [-1, 1, 1]
    blank = image("image/wrist", optional=True, height=1, width=2, channels=3, fill=255, **wanted)
    assert np.ptp(assembled(floats([0]), NUMBER, NUMBER_TAG, blank)) == 0


def test_bytes_that_are_no_image_fail_their_row_alone() -> None:
    from_array = pytest.importorskip("PIL.Image").fromarray
    file = io.BytesIO()
    from_array(np.full((1, 1, 3), 7, np.uint8)).save(file, "PNG")
    good = file.getvalue()
    adapter = adapter_of(camera(1, 1), image(), image())
    with pytest.raises(ApplyError) as caught:
        adapter.observations.apply([good, b"xx", good], ["a", "b", "c"])
    assert (caught.value.rows, "PNG or JPEG" in caught.value.messages[1]) == ((1,), True)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("float16", 1e6),
        ("float32", 1e39),
        ("int64", 2.0**63),
        ("int64", -1e300),
        ("uint64", 2.0**64),
        ("uint8", 256),
    ],
)
def test_a_number_that_a_state_s_type_does_not_hold_fails_its_row(dtype: str, value: float) -> None:
    """It became infinite, or the least whole number there is."""
    space = spaces.Box(-np.inf, np.inf, (1,), np.float64)
    with pytest.raises(ApplyError, match=f"does not fit into {dtype}") as caught:
        assembled(np.array([[1.0], [value]]), space, tag("x/s"), state("x/s", dtype=dtype), rows=2)
    assert caught.value.rows == (1,)


@pytest.mark.parametrize("value", [1e39, -1e39])
def test_an_action_that_its_space_s_type_does_not_hold_fails_its_row(value: float) -> None:
    """An unbounded float32 has no 1e39; infinity was sent."""
    adapter = adapter_of(action=free(1), drives=[drive()], output=[drive()])
    prediction = predicted(adapter, [[0.5], [value]])
    assert (list(prediction.failures), prediction.actions[0].tolist()) == ([1], [0.5])


def test_the_largest_whole_action_does_not_become_the_least() -> None:
    """2**63 - 1 has no float64, and the one above it wraps round."""
    ends = np.iinfo(np.int64)
    space = spaces.Box(ends.min, ends.max, (1,), np.int64)
    assert acted([[1e19]], space, [drive()], [drive()]).item() > 2**62


@pytest.mark.parametrize("shape", [(2, 0), (2, 3, 0)])
def test_a_model_that_drives_nothing_may_put_out_chunks_of_nothing(shape: tuple[int, ...]) -> None:
    adapter = adapter_of(drives=[{"dim": 1, "fill": 0.5}], output=[])
    actions, _ = adapter.actions.apply(np.zeros(shape), None)
    assert actions.tolist() == np.full((*shape[:-1], 1), 0.5).tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("space", "env", "model", "right"),
    [
        (free(1), {"binary": True, "threshold": 0.7}, {}, -1),
        (free(1), {}, {"binary": True, "threshold": 0.7}, -1),
        (spaces.Discrete(2), {}, {"select": "threshold", "threshold": 0.7}, 0),
    ],
)
def test_a_number_is_compared_as_it_was_put_out(dtype: Any, space: Any, env: Any, model: Any, right: int) -> None:
    """float32 has no 0.7, only 0.699999988, which is below; in float32 the threshold was rounded to it."""
    adapter = adapter_of(action=space, drives=[drive(**env)], output=[drive(**model)])
    actions, _ = adapter.actions.apply(np.array([[0.7]], np.float32).astype(dtype), None)
    assert actions.item() == right


def test_what_a_policy_may_return_it_may_return_in_any_corner() -> None:
    """`predict` and `predict_batch` gave grippers that went opposite ways."""
    found = []
    for corner in ("predict", "predict_batch"):

        def answer(observation: Any, shape: Any = (1,) if corner == "predict" else (1, 1)) -> Any:
            return np.full(shape, 0.7, np.float32)

        policy = SimpleNamespace(spec=spec_of(state("x/number"), DRIVE), **{corner: answer})
        engine = route_of(policy, drives=[{**DRIVE, "binary": True, "threshold": 0.7}])
        found.append(engine.predict("route", floats([0]), contexts(0)).actions.item())
    assert found == [-1, -1]


def test_outputs_of_half_precision_are_reckoned_with_in_double() -> None:
    """60,000 is nearly all that float16 holds."""
    adapter = adapter_of(action=free(1), drives=[drive(scale=10)], output=[drive()])
    actions, _ = adapter.actions.apply(np.array([[60000]], np.float16), None)
    assert actions.item() == 600000


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 255), (0.2, 0.8), (0, 0.08), (-0.3, 0.9), (0.1, 0.3)])
def test_the_middle_of_a_model_s_range_snaps_to_plus_one(low: float, high: float) -> None:
    env = drive(range=[-1, 1], binary=True)
    assert acted([[(low + high) / 2]], free(1), [env], [drive(range=[low, high])]).item() == 1


def test_a_negative_zero_stays_one_beside_a_row_that_is_clipped() -> None:
    adapter = adapter_of(action=spaces.Box(0, 1, (8,)), drives=[drive(dim=8)], output=[drive(dim=8)])
    for outputs in ([[-0.0] * 8], [[-0.0] * 8, [5] * 8]):
        assert np.signbit(predicted(adapter, outputs).actions[0]).all()


def test_a_snapped_number_without_a_reference_fails_its_row() -> None:
    """NaN has a sign bit, and a gripper moved by it."""
    env, model = drive(binary=True, mode="absolute"), drive(mode="delta", reference="x/number")
    adapter = adapter_of(drives=[env], output=[model])
    prediction = predicted(adapter, [[-5], [5]], floats([np.nan], [0.5]))
    assert (list(prediction.failures), prediction.actions[1].tolist()) == ([0], [1])
