"""What a policy is made of, and how many bytes of it: found without calling its code."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from rlmesh_adapters.contract import RouteContract
from rlmesh_adapters.engine import AdapterEngine
from rlmesh_adapters.insides import objects_inside
from rlmesh_adapters.weights import held_bytes
from rlmesh_envs.spaces import view_of


class Marked:
    """What is looked for."""


class Holder:
    def __init__(self, part: Any) -> None:
        self.part = part


class Slotted:
    __slots__ = ("part",)

    def __init__(self, part: Any) -> None:
        self.part = part


def closure(part: Any) -> Any:
    def policy(obs):
        return part

    return policy


def defaulted(part: Any) -> Any:
    def policy(obs, net=part, *, other=None):
        return net

    return policy


def file_with(part: Any) -> Any:
    module = types.ModuleType("policy")
    module.net = part
    module.imported = np
    return module


def function_of_a_file(part: Any) -> Any:
    module = file_with(part)
    exec("def predict(obs):\n    return net(obs)", module.__dict__)
    return module.predict


WAYS = {
    "attribute": Holder,
    "slot": Slotted,
    "list": lambda part: Holder([1, [part]]),
    "tuple": lambda part: (part,),
    "dict": lambda part: Holder({"a": {"b": part}}),
    "closure": closure,
    "default": defaulted,
    "method": lambda part: types.MethodType(lambda self, obs: obs, Holder(part)),
    "file": file_with,
    "global of a file": function_of_a_file,
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_parts_are_found_however_they_are_held(way):
    part = Marked()
    assert [item for item in objects_inside(way(part)) if isinstance(item, Marked)] == [part]


def test_each_object_is_given_once_and_circles_end():
    part = Marked()
    root = Holder([part, part, Holder(part)])
    root.again = root
    assert [item for item in objects_inside(root) if isinstance(item, Marked)] == [part]


def test_no_code_of_the_policy_is_called():
    class Touchy:
        @property
        def trap(self):
            raise AssertionError("called")

        def __getattr__(self, name):
            raise SystemExit(name)

        def __iter__(self):
            raise AssertionError("iterated")

    assert sum(isinstance(item, Touchy) for item in objects_inside(Holder(Touchy()))) == 1


def test_what_a_file_imports_is_not_part_of_it():
    assert np not in list(objects_inside(file_with(Marked())))


def test_bytes_of_arrays_count_once():
    table = np.zeros((10, 10), np.float32)
    policy = Holder({"a": table, "b": [table, np.zeros(3, np.int8)]})
    assert held_bytes(policy) == 10 * 10 * 4 + 3


def test_bytes_of_modules_are_their_parameters():
    class Parameter:
        nbytes = 5

    class Module:
        training = False

        def __init__(self):
            self._parameters = [Parameter(), Parameter()]

        def parameters(self):
            return iter(self._parameters)

    assert held_bytes(Holder(Module())) == 10


@pytest.mark.parametrize(("sharing", "is_told"), [("lane", True), ("episode", True), ("shared", False)])
def test_many_large_instances_are_told(monkeypatch, sharing, is_told):
    monkeypatch.setattr("rlmesh_adapters.engine.LARGE_BYTES", 3 * 8_000)

    class Policy:
        def __init__(self):
            self.table = np.zeros(1_000)

        def predict(self, obs):
            return 0

    engine = AdapterEngine()
    contract = RouteContract(
        observation=view_of(spaces.Box(-1, 1, (1,))),
        action=view_of(spaces.Discrete(9)),
        num_lanes=3,
        sharing=sharing,
    )
    engine.configure("route", Policy, contract)
    told = [advisory for advisory in engine.advisories if advisory.code == "instances-memory"]
    assert bool(told) == is_told
    if told:
        assert "3 instances" in told[0].message
