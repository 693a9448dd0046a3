from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlmesh_adapters.context import EpisodeContext


def draws(context: EpisodeContext, count: int = 8) -> list[float]:
    return context.rng.random(count).tolist()


@given(seed=st.integers(-(2**63), 2**64 - 1), index=st.integers(0, 10**6), id_=st.text(min_size=1, max_size=5))
@settings(deadline=None, max_examples=50)
def test_seed_and_index_alone_decide_what_an_episode_draws(seed: int, index: int, id_: str) -> None:
    first, second = EpisodeContext("ep-000001", index, seed), EpisodeContext(id_, index, None, rng_seed=seed)
    second.step = 17
    assert draws(first) == draws(second)


def test_another_episode_drawing_first_changes_nothing() -> None:
    alone = [draws(EpisodeContext("a", index, 5)) for index in range(3)]
    company = [EpisodeContext("a", index, 5) for index in range(3)]
    interleaved = [[context.rng.random() for context in company] for _ in range(8)]
    assert [list(numbers) for numbers in zip(*interleaved, strict=True)] == alone


def test_the_generator_goes_on_where_it_was() -> None:
    context = EpisodeContext("a", 0, 1)
    assert draws(context, 3) + draws(context, 3) == draws(EpisodeContext("a", 0, 1), 6)


def test_two_seeds_draw_differently_and_the_place_in_the_plan_does_not_matter() -> None:
    seeds = [0, 1, 2, 2**32, 2**63]
    firsts = {seed: {draws(EpisodeContext("a", index, seed), 1)[0] for index in range(5)} for seed in seeds}
    assert all(len(drawn) == 1 for drawn in firsts.values())
    assert len(set.union(*firsts.values())) == len(seeds)


def test_a_policy_does_not_see_the_numbers_of_an_environment_with_the_same_seed() -> None:
    """Gymnasium starts an environment's generator from the bare seed."""
    ours = np.array([draws(EpisodeContext("a", 0, seed)) for seed in range(300)])
    theirs = np.array([np.random.default_rng(seed).random(8) for seed in range(300)])
    both = np.array([np.random.default_rng([seed, 0]).random(8) for seed in range(300)])
    assert abs(np.corrcoef(ours.ravel(), theirs.ravel())[0, 1]) < 0.06
    assert abs(np.corrcoef(ours.ravel(), both.ravel())[0, 1]) < 0.06
    assert not np.isin(ours, np.concatenate([theirs, both])).any()


def test_numbers_of_neighbouring_episodes_are_independent() -> None:
    ours = np.array([draws(EpisodeContext("a", index, 7 + index)) for index in range(400)])
    assert abs(np.corrcoef(ours[:-1].ravel(), ours[1:].ravel())[0, 1]) < 0.06


@pytest.mark.parametrize("kind", [np.int64, np.uint32])
def test_a_numpy_seed_draws_what_the_same_number_draws(kind: type) -> None:
    assert draws(EpisodeContext("a", 3, kind(5))) == draws(EpisodeContext("a", 3, 5))


def test_an_unseeded_episode_still_draws_from_its_index() -> None:
    assert draws(EpisodeContext("a", 1, None)) == draws(EpisodeContext("b", 1, None))
    assert draws(EpisodeContext("a", 1, None)) != draws(EpisodeContext("a", 2, None))


def test_a_context_prints_what_a_policy_may_know() -> None:
    assert repr(EpisodeContext("ep-000001", 0, 7)) == "EpisodeContext(ep-000001, seed=7, step=0)"
