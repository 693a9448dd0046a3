from __future__ import annotations

import threading
from typing import Any

import msgspec
import numpy as np
import pytest
from adapter_fakes import Net, column, contexts
from gymnasium import spaces

from rlmesh_adapters.advisories import AdvisoryBook
from rlmesh_adapters.contract import RouteContract
from rlmesh_adapters.engine import AdapterEngine
from rlmesh_adapters.errors import EnvironmentBuildError, LoadError, PolicyCallError
from rlmesh_envs.spaces import view_of

PATIENCE = 20.0


def contract(action: spaces.Space[Any] | None = None, *, num_lanes: int = 1, horizon: int = 1) -> RouteContract:
    return RouteContract(
        observation=view_of(spaces.Box(-np.inf, np.inf, (1,))),
        action=view_of(action if action is not None else spaces.Discrete(9)),
        num_lanes=num_lanes,
        horizon=horizon,
    )


class Constant:
    def __init__(self, action: int = 0) -> None:
        self.action, self.closed, self.net = action, 0, Net()

    def predict(self, obs: Any) -> int:
        return self.action

    def close(self) -> None:
        self.closed += 1


class Blocking(Constant):
    def __init__(self) -> None:
        super().__init__(1)
        self.entered, self.released = threading.Event(), threading.Event()

    def predict(self, obs: Any) -> int:
        self.entered.set()
        assert self.released.wait(PATIENCE)
        return self.action


def in_background(task: Any) -> tuple[threading.Thread, list[Any]]:
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(task()), daemon=True)
    thread.start()
    return thread, results


def test_a_route_is_configured_and_asked_while_another_one_thinks() -> None:
    engine, slow = AdapterEngine(), Blocking()
    engine.configure("slow", lambda: slow, contract())
    asking, answers = in_background(lambda: engine.predict("slow", column(0), contexts(0)).actions.tolist())
    assert slow.entered.wait(PATIENCE)

    def use_another() -> Any:
        engine.configure("quick", lambda: Constant(5), contract())
        found = engine.predict("quick", column(0), contexts(0)).actions.tolist()
        engine.end_episodes("quick", contexts(0))
        engine.release("quick")
        return found

    other, found = in_background(use_another)
    other.join(PATIENCE)
    assert (found, answers) == ([[5]], [])
    slow.released.set()
    asking.join(PATIENCE)
    assert answers == [[1]]
    engine.close()


def test_a_route_is_asked_while_another_one_is_being_configured() -> None:
    engine, building, released = AdapterEngine(), threading.Event(), threading.Event()
    engine.configure("ready", lambda: Constant(5), contract())

    def build_slowly() -> Constant:
        building.set()
        assert released.wait(PATIENCE)
        return Constant(1)

    configuring, _ = in_background(lambda: engine.configure("slow", build_slowly, contract()))
    assert building.wait(PATIENCE)
    asking, answers = in_background(lambda: engine.predict("ready", column(0), contexts(0)).actions.tolist())
    asking.join(PATIENCE)
    assert (answers, configuring.is_alive()) == ([[5]], True)
    released.set()
    configuring.join(PATIENCE)
    assert engine.predict("slow", column(0), contexts(0)).actions.tolist() == [1]


def test_no_two_calls_of_one_route_are_inside_the_policy_together() -> None:
    meeting, met = threading.Barrier(2), []

    class Sociable(Constant):
        def predict(self, obs: Any) -> int:
            try:
                meeting.wait(0.05)
            except threading.BrokenBarrierError:
                return 0
            met.append(True)
            return 0

    engine = AdapterEngine()
    engine.configure("route", Sociable, contract())
    tasks = [in_background(lambda: engine.predict("route", column(0), contexts(0)))[0] for _ in range(2)]
    for task in tasks:
        task.join(PATIENCE)
    assert not met


@pytest.mark.parametrize(
    ("policy", "horizon", "corner", "corners", "wants_context", "codes"),
    [
        ({"predict": lambda obs: 0}, 1, "predict", ("predict",), False, []),
        ({"predict": lambda obs, context: 0}, 1, "predict", ("predict",), True, []),
        ({"predict": lambda obs: 0}, 4, "predict", ("predict",), False, ["no-chunk-corner"]),
        (
            {"predict": lambda obs: 0, "predict_chunk": lambda obs: [0]},
            4,
            "predict_chunk",
            ("predict", "predict_chunk"),
            False,
            [],
        ),
    ],
)
def test_the_plan_says_how_the_route_runs(
    policy: dict[str, Any],
    horizon: int,
    corner: str,
    corners: tuple[str, ...],
    wants_context: bool,
    codes: list[str],
) -> None:
    book = AdvisoryBook()
    built = type("Policy", (), {name: staticmethod(call) for name, call in policy.items()})
    plan = AdapterEngine(advisories=book).configure("route", built, contract(horizon=horizon))
    assert (plan.corner, plan.corners, plan.horizon) == (corner, corners, horizon)
    assert (plan.wants_context, plan.sharing) == (wants_context, "shared")
    assert [advisory.code for advisory in book] == codes
    assert all(
        "horizon is 4" in advisory.message and "`predict`" in advisory.message for advisory in book.cautions
    )


@pytest.mark.parametrize("text", [spaces.Text(3), spaces.Dict({"said": spaces.Text(3)})], ids=type)
def test_an_action_space_that_is_no_array_is_refused(text: spaces.Space[Any]) -> None:
    with pytest.raises(EnvironmentBuildError) as raised:
        AdapterEngine().configure("route", Constant, contract(text))
    assert (raised.value.where, "Text(" in raised.value.cause) == ("action space", True)
    assert raised.value.mend == "use an environment with array actions"


def test_a_policy_without_a_corner_is_refused() -> None:
    with pytest.raises(LoadError, match="object has none of predict"):
        AdapterEngine().configure("route", object, contract())


def test_a_policy_that_each_lane_needs_but_can_be_built_once_is_refused() -> None:
    """Else the first lane's episodes would be scored and the others' counted as failed."""

    class Keeps(Constant):
        def reset(self) -> None:
            """Something is kept between calls."""

    stock = [Keeps()]

    def build() -> Keeps:
        if not stock:
            raise LoadError("weights are locked")
        return stock.pop()

    def begin() -> None:
        engine = AdapterEngine()
        engine.configure("route", build, contract(num_lanes=2))
        engine.predict("route", column(0, 1), contexts(0, 1))

    with pytest.raises((LoadError, PolicyCallError), match="weights are locked"):
        begin()


def test_routes_are_kept_apart() -> None:
    engine = AdapterEngine()
    for name, action in (("a", 3), ("b", 4)):
        engine.configure(name, lambda action=action: Constant(action), contract())
    answers = {name: engine.predict(name, column(0), contexts(0)).actions.tolist() for name in ("a", "b")}
    assert answers == {"a": [3], "b": [4]}
    engine.release("a")
    assert engine.predict("b", column(0), contexts(1)).actions.tolist() == [4]
    with pytest.raises(KeyError, match="a"):
        engine.predict("a", column(0), contexts(0))


def test_release_and_close_are_told_once() -> None:
    engine, first, second = AdapterEngine(), Constant(), Constant()
    engine.configure("first", lambda: first, contract())
    engine.configure("second", lambda: second, contract())
    assert (first.net.training, second.net.training) == (False, False)
    for _ in range(2):
        engine.release("first")
    assert (first.closed, first.net.training, second.closed, second.net.training) == (1, True, 0, False)
    for _ in range(2):
        engine.close()
    assert (first.closed, second.closed, second.net.training) == (1, 1, True)


def test_a_route_configured_anew_leaves_no_policy_open() -> None:
    engine, old, new = AdapterEngine(), Constant(1), Constant(2)
    engine.configure("route", lambda: old, contract())
    engine.configure("route", lambda: new, contract())
    assert engine.predict("route", column(0), contexts(0)).actions.tolist() == [2]
    engine.close()
    assert (old.closed, old.net.training, new.closed, new.net.training) == (1, True, 1, True)


def test_a_policy_that_is_refused_is_left_as_it_was() -> None:
    class Refusing(Net):
        def eval(self) -> Net:
            raise RuntimeError("no eval today")

    policy = Constant()
    policy.other = Refusing()
    with pytest.raises(Exception, match="no eval today"):
        AdapterEngine().configure("route", lambda: policy, contract())
    assert policy.net.training


def test_the_policy_s_time_is_read_from_the_given_clock() -> None:
    ticks = iter([10.0, 12.5, 20.0, 20.25])
    engine = AdapterEngine(clock=lambda: next(ticks))
    engine.configure("route", Constant, contract())
    seconds = [engine.predict("route", column(0), contexts(0)).seconds for _ in range(2)]
    assert seconds == [2.5, 0.25]


class Resetting:
    def reset(self) -> None:
        """Keep nothing, but be told to."""

    def predict(self, obs: Any) -> int:
        return 0


@pytest.mark.parametrize(
    ("sharing", "lanes", "runs", "codes"),
    [
        ("auto", 1, "shared", []),
        ("auto", 3, "lane", []),
        ("shared", 1, "shared", []),
        ("shared", 3, "shared", ["shared-state"]),
        ("lane", 3, "lane", []),
    ],
)
def test_lanes_that_share_a_policy_with_reset_are_a_caution(
    sharing: str, lanes: int, runs: str, codes: list[str]
) -> None:
    book = AdvisoryBook()
    engine = AdapterEngine(advisories=book)
    shared = msgspec.structs.replace(contract(num_lanes=lanes), sharing=sharing)
    plan = engine.configure("route", Resetting, shared)
    assert plan.sharing == runs
    assert [advisory.code for advisory in book.cautions] == codes


def test_policies_that_could_not_be_used_are_closed() -> None:
    closed = []

    class Resetting(Constant):
        def reset(self) -> None: ...

        def close(self) -> None:
            closed.append(self.action)

    single = Resetting(3)
    with pytest.raises(LoadError, match="one single object"):
        AdapterEngine().configure("route", lambda: single, contract(num_lanes=2))
    assert closed == [3]

    class Bare:
        def close(self) -> None:
            closed.append("bare")
            raise OSError("closing fails as well")

    with pytest.raises(LoadError, match="has none of"):
        AdapterEngine().configure("route", Bare, contract())
    assert closed == [3, "bare"]


def test_a_new_instance_an_episode_is_not_promised_of_one_single_object() -> None:
    single = Constant(3)
    asked = msgspec.structs.replace(contract(num_lanes=2), sharing="episode")
    with pytest.raises(LoadError, match="one single object: 2 lanes would share what it keeps"):
        AdapterEngine().configure("route", lambda: single, asked)
