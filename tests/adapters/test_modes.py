from __future__ import annotations

import contextlib
import sys
import types
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from adapter_fakes import Net, NetWithoutSetter, column, contexts
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from rlmesh_adapters.contract import RouteContract
from rlmesh_adapters.engine import AdapterEngine
from rlmesh_adapters.errors import PolicyCallError
from rlmesh_adapters.modes import EvalMode
from rlmesh_cli.guests import run_file
from rlmesh_envs.spaces import view_of

every_kind = pytest.mark.parametrize("kind", [Net, NetWithoutSetter])


def every_net(roots: list[Net]) -> list[Net]:
    found = list(roots)
    for net in found:
        found.extend(part for part in net.parts if part not in found)
    return found


@st.composite
def networks(draw: Any, kind: type[Net] = Net) -> list[Net]:
    """Draw nets with random flags whose parts are earlier nets, so that two may share one."""
    nets: list[Net] = []
    for _ in range(draw(st.integers(1, 6))):
        parts = draw(st.lists(st.sampled_from(nets), unique=True, max_size=3)) if nets else []
        nets.append(kind(*parts, training=draw(st.booleans())))
    return draw(st.permutations(nets))


@every_kind
@given(data=st.data())
@settings(deadline=None, max_examples=60)
def test_all_modules_evaluate_and_all_flags_come_back(kind: type[Net], data: Any) -> None:
    nets = data.draw(networks(kind))
    policy = SimpleNamespace(**{f"net_{place}": net for place, net in enumerate(nets)})
    before = [net.training for net in every_net(nets)]
    modes = EvalMode()
    modes.enter(policy)
    assert [net.training for net in every_net(nets)] == [False] * len(before)
    modes.leave()
    assert [net.training for net in every_net(nets)] == before


@every_kind
def test_a_frozen_part_of_a_training_module_stays_frozen(kind: type[Net]) -> None:
    frozen, free = kind(training=False), kind()
    net = kind(frozen, free)
    modes = EvalMode()
    modes.enter(SimpleNamespace(net=net))
    modes.leave()
    assert (net.training, free.training, frozen.training) == (True, True, False)


def test_a_module_that_two_instances_share_comes_back() -> None:
    shared = Net()
    modes = EvalMode()
    for _ in range(2):
        modes.enter(SimpleNamespace(backbone=shared))
    modes.leave()
    assert shared.training


def test_a_policy_that_changes_modes_itself_is_put_back_as_it_was() -> None:
    evaluating, training = Net(training=False), Net()
    modes = EvalMode()
    modes.enter(SimpleNamespace(a=evaluating, b=training))
    evaluating.train()
    training.train()
    modes.leave()
    assert (evaluating.training, training.training) == (False, True)


class Slotted:
    __slots__ = ("net",)

    def __init__(self, net: Net) -> None:
        self.net = net


@dataclass
class Wrapper:
    inner: Any


class Lightning:
    """Owns nets that only its `modules()` names."""

    def __init__(self, net: Net) -> None:
        self.training = False
        self.modules = lambda: iter([net])

    def eval(self) -> None:
        """Nothing to do."""


@pytest.mark.parametrize(
    "holder",
    [
        lambda net: net,
        lambda net: Wrapper(Wrapper(net)),
        lambda net: Wrapper([1, {"deep": (net,)}]),
        lambda net: Wrapper({net}),
        lambda net: Wrapper(OrderedDict(net=net)),
        lambda net: Wrapper(Lightning(net)),
        Slotted,
    ],
    ids=["itself", "attributes", "containers", "set", "ordered dict", "modules()", "slots"],
)
def test_modules_are_found_wherever_a_policy_keeps_them(holder: Any) -> None:
    net = Net()
    modes = EvalMode()
    modes.enter(holder(net))
    assert not net.training
    modes.leave()
    assert net.training


def test_nets_of_a_policy_file_are_found() -> None:
    """A file with a bare `predict` keeps its net at module level; the net's class comes from elsewhere."""
    file = types.ModuleType("policy_file")
    file.net, file.other_module = Net(), pytest
    modes = EvalMode()
    modes.enter(file)
    assert not file.net.training


def installed_decorator() -> Any:
    """Return a decorator whose code stands in an installed package."""
    code = compile(
        "import functools\ndef no_grad(function):\n"
        "    @functools.wraps(function)\n    def inner(*a):\n        return function(*a)\n    return inner\n",
        "/lib/site-packages/torchlike/grad.py",
        "exec",
    )
    names: dict[str, Any] = {}
    exec(code, names)
    return names["no_grad"]


PLACES = """
from training_nets import Net, no_grad

NET = Net()


class Global:
    def predict(self, obs):
        return NET(obs)


class Inside:
    def predict(self, obs):
        return [NET(one) for one in [obs]][0]


class Held:
    net = NET

    def predict(self, obs):
        return self.net(obs)


class Heir(Held):
    pass


def decorated(function):
    # As a package does it: what is seen of the method is the package's code.
    return no_grad(function)


class Decorated:
    @decorated
    def predict(self, obs):
        return NET(obs)


class Static:
    @staticmethod
    def predict(obs):
        return NET(obs)


def function(obs):
    def act(one):
        return NET(one)

    return act(obs)
"""


@pytest.mark.parametrize("name", ["Global", "Inside", "Held", "Heir", "Decorated", "Static", "function"])
def test_nets_that_the_file_of_a_policy_keeps_are_found_through_its_classes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        sys.modules, "training_nets", types.SimpleNamespace(Net=Net, no_grad=installed_decorator())
    )
    (tmp_path / "placed.py").write_text(PLACES)
    module = run_file(tmp_path / "placed.py")
    found = getattr(module, name)
    modes = EvalMode()
    modes.enter(found() if isinstance(found, type) else found)
    assert not module.NET.training
    modes.leave()
    assert module.NET.training


def test_a_policy_that_holds_itself_is_searched_once() -> None:
    policy = SimpleNamespace(net=Net())
    policy.me, policy.all = policy, [policy]
    modes = EvalMode()
    modes.enter(policy)
    assert not policy.net.training


class RaisesForUnknownNames:
    """A config object whose lookup raises KeyError, as many hand-written ones do."""

    def __getattr__(self, name: str) -> Any:
        raise KeyError(name)


class RaisesInItsFlag:
    @property
    def training(self) -> bool:
        raise RuntimeError("not built yet")


@pytest.mark.parametrize("odd", [RaisesForUnknownNames(), RaisesInItsFlag()], ids=type)
def test_odd_attributes_do_not_hide_the_modules_beside_them(odd: Any) -> None:
    policy = SimpleNamespace(before=odd, net=Net(), after=odd)
    modes = EvalMode()
    modes.enter(policy)
    assert not policy.net.training
    modes.leave()
    assert policy.net.training


@pytest.mark.parametrize("flag", ["yes", 1, None])
def test_only_a_boolean_flag_makes_a_module(flag: Any) -> None:
    policy = SimpleNamespace(training=flag, eval=lambda: pytest.fail("is no module"))
    EvalMode().enter(policy)
    assert policy.training is flag


class RaisesInEval(Net):
    def eval(self) -> Net:
        raise RuntimeError("no eval today")


def test_flags_come_back_when_a_module_cannot_evaluate() -> None:
    first, second = Net(), RaisesInEval()
    modes = EvalMode()
    with contextlib.suppress(RuntimeError):
        modes.enter(SimpleNamespace(first=first, second=second))
    modes.leave()
    assert first.training


class RaisesInTrain(Net):
    def train(self, mode: bool = True) -> Net:
        if mode:
            raise RuntimeError("never again")
        return super().train(mode)


def test_one_module_that_cannot_be_put_back_does_not_keep_the_others() -> None:
    first, bad, last = Net(), RaisesInTrain(), Net()
    modes = EvalMode()
    modes.enter(SimpleNamespace(first=first, bad=bad, last=last))
    with contextlib.suppress(RuntimeError):
        modes.leave()
    assert (first.training, last.training) == (True, True)


@every_kind
def test_flags_come_back_after_a_policy_raised(kind: type[Net]) -> None:
    net = kind(kind(training=False))
    seen: list[bool] = []

    class Policy:
        def __init__(self) -> None:
            self.net = net

        def predict(self, obs: Any) -> int:
            seen.append(self.net.training)
            raise ValueError("no")

    space = view_of(spaces.Discrete(2))
    engine = AdapterEngine()
    engine.configure("route", Policy, RouteContract(observation=view_of(spaces.Box(-9, 9, (1,))), action=space))
    with pytest.raises(PolicyCallError, match="ValueError: no"):
        engine.predict("route", column(0), contexts(0))
    engine.close()
    assert seen == [False]
    assert [part.training for part in every_net([net])] == [True, False]


def test_what_only_looks_like_a_module_is_left_alone() -> None:
    """As a pickled wrapper of environments does, whose lookups raise until it has some."""

    class Wrapper:
        training = True

        def __getattr__(self, name: str) -> Any:
            raise RuntimeError(f"no {name} yet")

    class Policy:
        def __init__(self) -> None:
            self.wrapper = Wrapper()

    policy, modes = Policy(), EvalMode()
    modes.enter(policy)
    assert modes.count_training == 1
    modes.leave()
    assert policy.wrapper.training is True
