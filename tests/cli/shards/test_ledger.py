"""Which episodes a worker gets, how many at once, and who plays what a dead one had."""

from __future__ import annotations

import pytest

from rlmesh_cli.episodes import Episode
from rlmesh_cli.shards.ledger import ShardLedger


class Clock:
    """Seconds that pass when they are told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def episodes(count: int) -> list[Episode]:
    return [Episode(index, index) for index in range(count)]


@pytest.mark.parametrize(("count", "workers", "lanes"), [(1000, 2, 8), (10, 3, 4), (1, 1, 1), (64, 2, 8)])
def test_shards_become_smaller_and_hold_every_episode_once(count: int, workers: int, lanes: int) -> None:
    ledger = ShardLedger(episodes(count), workers=workers, lanes=lanes)
    sizes, seen = [], []
    turn = 0
    while (grant := ledger.grant(turn % workers)) is not None:
        sizes.append(len(grant.episodes))
        seen += [episode.index for episode in grant.episodes]
        turn += 1
    assert seen == list(range(count))
    assert sizes[workers:] == sorted(sizes[workers:], reverse=True)
    assert max(sizes) <= max(16, lanes)
    assert count <= workers * lanes or sizes[-1] == 1


@pytest.mark.parametrize(
    ("seconds", "most", "least"),
    # What is played in 50 ms and in 5 ms; at least 16 episodes, and one.
    [(0.0001, 500, 50), (0.001, 50, 5), (0.01, 16, 1), (60.0, 16, 1)],
)
def test_shards_of_short_episodes_last_a_moment(seconds: float, most: int, least: int) -> None:
    clock = Clock()
    ledger = ShardLedger(episodes(100_000), workers=1, lanes=8, clock=clock)
    sizes = []
    while (grant := ledger.grant(0)) is not None:
        sizes.append(len(grant.episodes))
        for episode in grant.episodes:
            clock.now += seconds
            ledger.settle(0, episode.index)
    assert sum(sizes) == 100_000
    assert sizes[0] == 16  # nothing is known of their length yet
    assert max(sizes) == pytest.approx(most, abs=1)
    assert min(sizes[1:-1]) == pytest.approx(least, abs=1)


def test_a_worker_that_asks_before_anything_has_ended_is_not_taken_for_a_fast_one() -> None:
    ledger = ShardLedger(episodes(100_000), workers=2, lanes=8, clock=Clock())
    assert [len(grant.episodes) for _ in range(5) if (grant := ledger.grant(0))] == [16] * 5


def test_what_a_dead_worker_had_is_played_alone_and_once() -> None:
    ledger = ShardLedger(episodes(6), workers=2, lanes=3)
    ledger.grant(0)
    ledger.grant(1)
    assert ledger.lose(0) == []
    first = ledger.grant(0)
    assert first is not None
    assert ([episode.index for episode in first.episodes], first.is_last) == ([0], True)
    assert [episode.index for episode in ledger.lose(0)] == [0]
    ledger.hand_over(0, 1)
    again = ledger.grant(1)
    assert again is not None
    assert [episode.index for episode in again.episodes] == [1]
    assert not ledger.is_over
