"""What becomes of a policy's hooks, and of the state of episodes that ended."""

from __future__ import annotations

from typing import Any

import pytest
from adapter_fakes import Counting, Net, OneRoute, contexts

from rlmesh_adapters.context import EpisodeContext


def test_a_failing_end_is_an_advisory_and_the_next_episode_goes_on(policy: type[Counting]) -> None:
    class Raising(policy):  # type: ignore[misc,valid-type]
        def on_episode_end(self, context: EpisodeContext) -> None:
            raise ValueError(f"end of {context.index}")

    route = OneRoute(Raising)
    first, second, third = contexts(0, 1, 2)
    route.ask((first, second), 1, 1)
    route.end(first, second)
    assert route.ask((third,), 5).actions.tolist() == [5]
    (advisory,) = route.engine.advisories
    assert (advisory.code, advisory.severity, advisory.count) == ("episode-end-raised", "caution", 2)
    assert advisory.message == "on_episode_end raised: ValueError: end of 0"


def test_a_failing_close_keeps_no_other_instance_open(policy: type[Counting]) -> None:
    class Raising(policy):  # type: ignore[misc,valid-type]
        def __init__(self) -> None:
            super().__init__()
            self.net = Net()

        def close(self) -> None:
            super().close()
            raise ValueError("still open")

    route = OneRoute(Raising)
    route.ask(contexts(0, 1), 1, 1)
    assert [instance.net.training for instance in Raising.built] == [False, False]
    route.engine.close()
    assert [instance.life.count("close") for instance in Raising.built] == [1, 1]
    assert [instance.net.training for instance in Raising.built] == [True, True]
    (advisory,) = route.engine.advisories
    assert (advisory.code, advisory.severity) == ("close-raised", "info")
    assert advisory.message == "close of the policy raised: ValueError: still open"


def test_hooks_without_a_context_are_called_without_one() -> None:
    life = []

    class Plain:
        def reset(self) -> None:
            life.append("reset")

        def predict(self, obs: Any) -> float:
            return 0.0

        def on_episode_end(self) -> None:
            life.append("end")

    route = OneRoute(Plain, num_lanes=1)
    route.ask(contexts(0), 1)
    route.end(*contexts(0))
    assert life == ["reset", "end"]


@pytest.mark.parametrize("sharing", ["shared", "lane"])
def test_the_state_of_an_ended_episode_is_forgotten(sharing: str) -> None:
    seen: list[Any] = []

    class Passing:
        def predict(self, obs: Any, state: Any) -> Any:
            seen.append(state)
            return 0.0, (state or 0) + 1

    route = OneRoute(Passing, sharing=sharing)
    (episode,) = contexts(0)
    for _ in range(2):
        route.ask((episode,), 1)
        route.ask((episode,), 1)
        route.end(episode)
    assert seen == [None, 1, None, 1]
