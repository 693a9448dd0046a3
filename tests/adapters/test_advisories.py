from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest

from rlmesh_adapters.advisories import Advisory, AdvisoryBook


def test_a_code_is_kept_once_with_its_first_message_and_the_sum_of_its_counts() -> None:
    book = AdvisoryBook()
    book.add("short-chunks", "info", "first", count=2)
    book.add("short-chunks", "info", "second", count=5)
    book.add("short-chunks", "info", "third")
    assert list(book) == [Advisory(code="short-chunks", severity="info", message="first", count=8)]
    assert len(book) == 1


def test_advisories_of_one_code_are_told_apart_by_their_subject() -> None:
    book = AdvisoryBook()
    book.add("unreadable", "info", "speed is 'high'", subject="speed")
    book.add("unreadable", "info", "score is nan", subject="score")
    book.add("unreadable", "info", "speed is 'low'", subject="speed", count=2)
    assert list(book) == [
        Advisory(code="unreadable", severity="info", message="speed is 'high'", count=3, subject="speed"),
        Advisory(code="unreadable", severity="info", message="score is nan", subject="score"),
    ]


def test_cautions_come_before_infos_each_in_order_of_appearance() -> None:
    book = AdvisoryBook()
    for code, severity in [("a", "info"), ("b", "caution"), ("c", "info"), ("d", "caution")]:
        book.add(code, severity, "")
    book.add("a", "info", "")
    assert [advisory.code for advisory in book] == ["b", "d", "a", "c"]
    assert [advisory.code for advisory in book.cautions] == ["b", "d"]


def test_an_empty_book_is_empty() -> None:
    assert (list(AdvisoryBook()), len(AdvisoryBook()), AdvisoryBook().cautions) == ([], 0, ())


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    """Let threads change places as often as they can, so that a lost update is no matter of luck."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("hasty_threads")
def test_no_count_is_lost_when_routes_advise_at_once() -> None:
    book, barrier = AdvisoryBook(), threading.Barrier(4)

    def advise() -> None:
        for code in "abcdefgh":
            barrier.wait()
            for _ in range(1000):
                book.add(code, "caution", "")

    threads = [threading.Thread(target=advise) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(advisory.code, advisory.count) for advisory in book] == [(code, 4000) for code in "abcdefgh"]
