"""Which policy object answers for which episode, and its life from `reset` to `close`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from adapter_fakes import Counting, OneRoute, contexts
from hypothesis import given, settings
from hypothesis import strategies as st

from rlmesh_adapters.context import EpisodeContext
from rlmesh_adapters.errors import HarnessError, PolicyCallError


@given(data=st.data(), num_lanes=st.integers(1, 4))
@settings(deadline=None, max_examples=40)
def test_a_policy_with_memory_answers_as_if_it_played_each_episode_alone(data: Any, num_lanes: int) -> None:
    policy = type("Policy", (Counting,), {"built": []})
    route = OneRoute(policy, num_lanes=num_lanes)
    running: list[EpisodeContext] = []
    sums: dict[str, float] = {}
    started = 0
    for _ in range(data.draw(st.integers(1, 12))):
        while len(running) < num_lanes:
            running.append(contexts(started)[0])
            started += 1
        asking = data.draw(st.lists(st.sampled_from(running), unique=True, min_size=1))
        values = [float(episode.index * 100 + len(sums)) for episode in asking]
        for episode, value in zip(asking, values, strict=True):
            sums[episode.episode_id] = sums.get(episode.episode_id, 0.0) + value
        assert route.ask(asking, *values).actions.tolist() == [sums[episode.episode_id] for episode in asking]
        ended = data.draw(st.lists(st.sampled_from(running), unique=True))
        route.end(*ended)
        running = [episode for episode in running if episode not in ended]
    route.end(*running)
    route.engine.close()
    assert len(policy.built) <= num_lanes
    lives = [event for instance in policy.built for event in instance.life]
    ends = [event for event in lives if event.startswith("end")]
    assert len(ends) == len(set(ends)) == len(sums)
    for instance in policy.built:
        assert instance.life[-1] == "close"
        assert instance.life.count("close") == 1
        check_life(instance.life[:-1])


def check_life(life: list[str]) -> None:
    """An episode is reset, predict..., end; of one episode after another."""
    current = ""
    for event in life:
        if event.startswith("reset"):
            assert current == ""
            current = event.removeprefix("reset ")
        elif event.startswith("end"):
            assert event == f"end {current}"
            current = ""
        else:
            assert current != ""


def test_lanes_share_one_instance_unless_it_keeps_something(policy: type[Counting]) -> None:
    class Stateless:
        def predict_batch(self, obs: Any) -> Any:
            return obs[:, 0].astype(float)

    assert OneRoute(Stateless).plan.sharing == "shared"
    assert OneRoute(policy, num_lanes=2).plan.sharing == "lane"
    assert OneRoute(policy, num_lanes=1).plan.sharing == "shared"
    assert OneRoute(policy, num_lanes=2, sharing="shared").plan.sharing == "shared"
    assert OneRoute(Stateless, sharing="lane").plan.sharing == "lane"


def test_a_policy_whose_state_is_passed_is_shared_even_if_it_can_be_reset() -> None:
    class Passing:
        def reset(self) -> None:
            """Nothing is kept."""

        def predict(self, obs: Any, state: Any) -> Any:
            return 0.0, state

    assert OneRoute(Passing).plan.sharing == "shared"


def test_a_shared_policy_is_reset_before_each_episode_s_first_call(policy: type[Counting]) -> None:
    route = OneRoute(policy, sharing="shared")
    first, second, third = contexts(0, 1, 2)
    route.ask((first, second), 1, 1)
    route.ask((second,), 1)
    route.end(first)
    route.ask((third, second), 1, 1)
    assert policy.built[0].life == [
        *("reset 0", "reset 1", "predict", "predict", "predict", "end 0"),
        *("reset 2", "predict", "predict"),
    ]


def test_an_ended_episode_hands_its_instance_to_the_next_one(policy: type[Counting]) -> None:
    route = OneRoute(policy, num_lanes=2)
    first, second, third = contexts(0, 1, 2)
    route.ask((first, second), 1, 2)
    route.end(first)
    assert route.ask((third, second), 10, 20).actions.tolist() == [10, 22]
    assert len(policy.built) == 2


@pytest.mark.parametrize("sharing", ["shared", "lane"])
def test_an_ended_episode_that_is_asked_again_begins_again(policy: type[Counting], sharing: str) -> None:
    route, episodes = OneRoute(policy, num_lanes=1, sharing=sharing), contexts(0)
    for _ in range(2):
        route.ask(episodes, 1)
        route.end(*episodes)
    assert policy.built[0].life == ["reset 0", "predict", "end 0"] * 2


def test_an_end_is_told_once_however_often_it_comes(policy: type[Counting]) -> None:
    route = OneRoute(policy, num_lanes=1)
    (episode,) = contexts(0)
    route.ask((episode,), 1)
    for _ in range(3):
        route.end(episode)
    assert policy.built[0].life.count("end 0") == 1


def test_a_reset_that_failed_costs_no_later_episode_its_instance(policy: type[Counting]) -> None:
    class Refusing(policy):  # type: ignore[misc,valid-type]
        def reset(self, context: EpisodeContext) -> None:
            if context.index % 2:
                raise ValueError("odd")

    route = OneRoute(Refusing, num_lanes=2)
    for start in range(0, 12, 2):
        episodes = contexts(start, start + 1)
        prediction = route.ask(episodes, 1, 1)
        assert list(prediction.failures) == [1]
        assert prediction.failures[1].message == "ValueError: odd"
        route.end(*episodes)
    assert len(Refusing.built) <= 2


def test_a_reset_that_fails_first_ends_the_run(policy: type[Counting]) -> None:
    class Refusing(policy):  # type: ignore[misc,valid-type]
        def reset(self, context: EpisodeContext) -> None:
            raise ValueError("no weights")

    with pytest.raises(PolicyCallError, match="ValueError: no weights"):
        OneRoute(Refusing).ask(contexts(0, 1), 1, 1)


def test_the_misfit_of_one_instance_fails_its_own_row_alone(policy: type[Counting]) -> None:
    """Each lane has an instance of its own, so nobody else's answer was wrong."""

    class Batched(policy):  # type: ignore[misc,valid-type]
        predict = None

        def predict_batch(self, obs: Any) -> Any:
            return np.zeros(2 if obs[0, 0] == 7 else 1)

    route = OneRoute(Batched, num_lanes=3)
    episodes = contexts(0, 1, 2)
    route.ask(episodes, 1, 1, 1)
    prediction = route.ask(episodes, 1, 7, 1)
    assert list(prediction.failures) == [1]
    assert prediction.actions[[0, 2]].tolist() == [0, 0]


def test_one_object_given_twice_is_never_two_instances() -> None:
    """A file may name an object, which nobody can build a second time."""
    policy = type("Policy", (Counting,), {"built": []})()
    episodes, answers, refusal = contexts(0, 1), [], ""
    try:
        route = OneRoute(lambda: policy, num_lanes=2)
        answers += [route.ask(episodes, 1, 10).actions.tolist() for _ in range(2)]
    except HarnessError as error:
        refusal = str(error)
    assert answers == [[1, 10], [2, 20]] or "lane" in refusal
