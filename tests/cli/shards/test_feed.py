"""When a worker asks for more, and what it does while the answer is on its way."""

from __future__ import annotations

from queue import SimpleQueue

from rlmesh_cli.episodes import Episode
from rlmesh_cli.shards.feed import Feed
from rlmesh_cli.shards.messages import Close, Grant, Order, Stop


class Keeper:
    """Hands out what it was given, and notes at how many episodes left it was asked."""

    def __init__(self, *answers: Order) -> None:
        self.answers = list(answers)
        self.orders: SimpleQueue[Order] = SimpleQueue()
        self.asked: list[bool] = []
        self.feed = Feed(self.ask, self.orders)

    def ask(self, is_idle: bool) -> None:
        self.asked.append(is_idle)
        self.orders.put(self.answers.pop(0))

    def take(self) -> int:
        assert len(self.feed) > 0
        return self.feed.popleft().index


def grant(*indices: int, is_last: bool = False) -> Grant:
    return Grant(tuple(Episode(index, index) for index in indices), is_last)


def test_more_is_asked_for_once_when_half_is_gone() -> None:
    keeper = Keeper(grant(0, 1, 2, 3), grant(4, 5), grant(6), Close())
    assert keeper.feed.open()
    taken, asked = [], []
    for _ in range(7):
        taken.append(keeper.take())
        asked.append(len(keeper.asked))
    assert taken == list(range(7))
    # Two of the first four are left when the third is taken; of a single one nothing is ever left.
    assert asked == [1, 1, 2, 2, 2, 3, 3]
    assert not len(keeper.feed)
    assert keeper.feed.is_closed
    assert keeper.asked == [True, False, False, False]


def test_after_the_last_nothing_is_asked_for_until_all_lanes_are_through() -> None:
    keeper = Keeper(grant(0, 1, is_last=True), grant(2), Close())
    assert keeper.feed.open()
    assert [keeper.take(), keeper.take(), len(keeper.feed)] == [0, 1, 0]
    assert keeper.asked == [True]
    assert keeper.feed.open()
    assert keeper.take() == 2


def test_nothing_more_is_heard_in_an_answer_that_was_asked_for_early() -> None:
    keeper = Keeper(grant(0, 1), grant(is_last=True), Close())
    assert keeper.feed.open()
    assert [keeper.take(), keeper.take(), len(keeper.feed)] == [0, 1, 0]
    assert not keeper.feed.is_closed
    assert not keeper.feed.open()
    assert keeper.asked == [True, False, True]


def test_an_order_to_stop_empties_it() -> None:
    keeper = Keeper(grant(0, 1), Stop())
    assert keeper.feed.open()
    assert [keeper.take(), keeper.take()] == [0, 1]
    assert not len(keeper.feed)
    assert keeper.feed.is_closed
