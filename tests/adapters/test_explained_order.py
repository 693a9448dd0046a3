"""The steps that `explain` prints, carried out in the order printed, come to what is sent or seen."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from adapter_routes import assembled, box, drive, free, paired, predicted, resolved, tag
from gymnasium import spaces
from scipy.spatial.transform import Rotation

from rlmesh_adapters.adapter import Adapter
from rlmesh_adapters.documents.actions import Actuator
from rlmesh_adapters.documents.encodings import CustomEncoding
from rlmesh_adapters.documents.spec import Concat, State
from rlmesh_adapters.explain import explain_action, explain_input
from rlmesh_envs.spaces import view_of

#: How SciPy makes a rotation of an encoding's numbers, and the numbers of a rotation.
READ: Mapping[str, Callable[[Any], Rotation]] = {
    "axis_angle": Rotation.from_rotvec,
    "quat_xyzw": Rotation.from_quat,
    "quat_wxyz": lambda numbers: Rotation.from_quat(np.roll(numbers, -1)),
}
WRITTEN: Mapping[str, Callable[[Rotation], Any]] = {
    "axis_angle": Rotation.as_rotvec,
    "quat_xyzw": lambda turn: turn.as_quat(canonical=True),
    "quat_wxyz": lambda turn: np.roll(turn.as_quat(canonical=True), 1),
}
NUMBERS = r"(\[[^]]*\]|[-+.\de]+)"


def halved(numbers: Any) -> Any:
    return np.asarray(numbers) / 2


def parsed(text: str) -> Any:
    """Return the number, or the array, that a step prints."""
    return np.array([float(part) for part in text.strip("[]").split(", ")])


def carried_out(step: str, numbers: Any, observed: Mapping[str, float]) -> Any:
    """Return what one printed step makes of numbers, read as its words say."""
    if found := re.fullmatch(r"model\[(\d+):(\d+)\]", step):
        return numbers[int(found[1]) : int(found[2])]
    if found := re.fullmatch(rf"by statistics \(\w+\): \* {NUMBERS} \+ {NUMBERS}", step):
        return numbers * parsed(found[1]) + parsed(found[2])
    if step in ("encoded by a function of the policy's", "decoded by a function of the policy's"):
        return halved(numbers)
    if found := re.fullmatch(r"(\w+) to (\w+)", step):
        return WRITTEN[found[2]](READ[found[1]](numbers))
    if found := re.fullmatch(rf"\({NUMBERS}, {NUMBERS}\) to \({NUMBERS}, {NUMBERS}\)", step):
        low, high, least, most = (parsed(end) for end in found.groups())
        return (numbers - low) / (high - low) * (most - least) + least
    if found := re.fullmatch(r"(plus|minus) the observed (\S+)", step):
        return numbers + observed[found[2]] * (1 if found[1] == "plus" else -1)
    if found := re.fullmatch(rf"\* {NUMBERS} \(.*scale\)", step):
        return numbers * parsed(found[1])
    if re.fullmatch(r"negated \(.*\)", step):
        return -numbers
    if found := re.fullmatch(rf"- {NUMBERS} \(.*threshold\)", step):
        return numbers - parsed(found[1])
    if step == "snapped to -1 or +1":
        return np.where(numbers >= 0, 1.0, -1.0)
    if found := re.fullmatch(rf"clipped to \({NUMBERS}, {NUMBERS}\)", step):
        return np.clip(numbers, parsed(found[1]), parsed(found[2]))
    raise AssertionError(f"a step that this test does not know: {step}")


def both_ways(env: Any, model: Any, action: spaces.Space[Any], output: Any) -> tuple[Any, Any]:
    """Return (what is sent, what the printed steps come to) for one output of the model."""
    tags = tag("x/pos")
    adapter = Adapter(paired(env, model, action, observation=free(1), tags=tags, wanted={}), view_of(action))
    sent = predicted(adapter, [output], np.array([[0.25]])).actions[0]
    made: Any = np.array(output, float)
    for step in explain_action(adapter.actions.plan)[0].steps:
        made = carried_out(step, made, {"x/pos": 0.25})
    return sent.tolist(), made.tolist()


SHIFTED = {"kind": "mean_std", "mean": [0.5, 0, 0], "std": [1, 2, 1]}
HALVED = CustomEncoding("axis_angle", to_base=halved, from_base=halved)
AXIS = {"dim": 3, "encoding": "axis_angle"}
QUAT = {"dim": 4, "encoding": "quat_xyzw"}


@pytest.mark.parametrize(
    ("env", "model", "action", "output"),
    [
        (drive(**QUAT), drive(**AXIS, normalize=SHIFTED), free(4), [0.1, 0.2, 0.3]),
        (drive(**AXIS), drive(**AXIS, normalize=SHIFTED), free(3), [0.1, 0.2, 0.3]),
        (drive(**QUAT), Actuator("x/a", 3, encoding=HALVED), free(4), [0.1, 0.2, 0.3]),
        (
            drive(dim=4, encoding="quat_wxyz"),
            Actuator("x/a", 3, encoding=HALVED, normalize=SHIFTED),
            free(4),
            [0.1, 0.2, 0.3],
        ),
        (drive(**AXIS, scale=3, clip=True), drive(**AXIS, range=[0, 1]), box(-2, 2, 3), [0.1, 0.6, 0.3]),
        (drive(range=[0, 0.08]), drive(range=[-1, 1], invert=True), free(1), [0.5]),
        (
            drive(scale=0.5, binary=True, threshold=1, invert=True),
            drive(range=[0, 1], scale=3, threshold=0.25),
            box(-1, 1, 1),
            [0.8],
        ),
        (drive(mode="absolute"), drive(mode="delta", reference="x/pos", scale=2), free(1), [0.5]),
        (drive(mode="delta"), drive(mode="absolute", reference="x/pos", invert=True), free(1), [0.5]),
    ],
)
def test_what_is_printed_of_an_action_gives_what_is_sent(env: Any, model: Any, action: Any, output: Any) -> None:
    sent, printed = both_ways(env, model, action, output)
    assert sent == pytest.approx(printed, abs=1e-6)


def test_statistics_of_an_action_come_before_its_conversion() -> None:
    """[0.1, 0.2, 0.3] stands for [0.6, 0.4, 0.3], whose quaternion SciPy gives."""
    plan = paired(drive(**QUAT), drive(**AXIS, normalize=SHIFTED), free(4)).action
    assert explain_action(plan)[0].steps == (
        "model[0:3]",
        "by statistics (mean_std): * [1, 2, 1] + [0.5, 0, 0]",
        "axis_angle to quat_xyzw",
    )
    sent, _ = both_ways(drive(**QUAT), drive(**AXIS, normalize=SHIFTED), free(4), [0.1, 0.2, 0.3])
    assert sent == pytest.approx(Rotation.from_rotvec([0.6, 0.4, 0.3]).as_quat().tolist(), abs=1e-6)


@pytest.mark.parametrize(
    "part",
    [
        {"encoding": "axis_angle", "normalize": SHIFTED},
        {"encoding": "axis_angle", "dim": 2},
        {"encoding": HALVED},
        {"encoding": HALVED, "normalize": SHIFTED},
    ],
)
def test_what_is_printed_of_a_state_gives_what_is_seen(part: dict[str, Any]) -> None:
    """A function of the policy's is given the encoding that it names, so the conversion comes before it."""
    route = free(4), tag("x/r", encoding="quat_xyzw"), Concat(State("x/r", **part))
    made: Any = Rotation.from_rotvec([0.3, -0.2, 0.5]).as_quat()
    seen = assembled(made[None], *route)[0]
    source, *steps = re.split(r", (?![^[(]*[])])", explain_input(resolved(*route).plans[0]).steps[0])
    assert source == "x/r from observation"
    for step in steps:
        made = made[: int(step.split()[-1])] if step.startswith("the first") else carried_out(step, made, {})
    assert seen.tolist() == pytest.approx(made.tolist(), abs=1e-6)


@pytest.mark.parametrize(
    ("action", "model", "shape"),
    [
        (spaces.MultiBinary(2), drive(dim=2, select="threshold", threshold=0.5), "2 numbers of 2 values each"),
        (spaces.MultiDiscrete([5, 5, 5]), drive(dim=3, select="index"), "3 numbers of 5 values each"),
        (spaces.MultiBinary(1), drive(select="index"), "1 number of 2 values"),
        (spaces.Discrete(3), drive(dim=3, select="argmax"), "1 number of 3 values"),
        (box(-1, 1, 2), drive(dim=2), "2 numbers"),
        (box(-1, 1, 1), drive(), "1 number"),
    ],
)
def test_a_component_is_said_to_have_as_many_numbers_as_are_sent(
    action: spaces.Space[Any], model: Any, shape: str
) -> None:
    plan = paired(drive(dim=view_of(action).size), model, action).action
    assert explain_action(plan)[0].shape == shape
