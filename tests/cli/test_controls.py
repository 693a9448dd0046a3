"""Controls: what is said of a policy that a built-in one keeps up with."""

from __future__ import annotations

import pytest
from cli_toys import row

from rlmesh_adapters.advisories import AdvisoryBook
from rlmesh_cli.controls import judge_control, note_control


def played(won: int | None, count: int, pays: float):
    """Return rows of which the first so many succeed; each is paid a little more than the one before."""
    return [
        row(
            at,
            seed=at,
            success=None if won is None else at < won,
            return_=pays + at / 10,
            start_hash=f"{at}",
            trace_hash=f"{pays} {at}",
        )
        for at in range(count)
    ]


def said(policy, control) -> list[str]:
    book = AdvisoryBook()
    note_control(book, judge_control("random", policy, control, confidence=0.95))
    assert {(found.code, found.severity) for found in book} <= {("control-not-beaten", "caution")}
    return [found.message for found in book]


APART = "that of the built-in policy `random` on the same episodes"


@pytest.mark.parametrize(
    ("policy", "control", "words"),
    [
        ((9, 20, 1.0), (0, 20, 1.0), []),
        (
            (3, 20, 1.0),
            (0, 20, 1.0),
            [f"success is not told apart from {APART} (3 of 20 against 0 of 20)"],
        ),
        (
            (3, 20, 5.0),
            (0, 20, -1.0),
            [
                f"success is not told apart from {APART} (3 of 20 against 0 of 20); "
                "the return is above that policy's (mean 5.95 against -0.05 over 20 episodes)"
            ],
        ),
        (
            (0, 20, 1.0),
            (9, 20, 1.0),
            [
                f"success is below {APART} (0 of 20 against 9 of 20); "
                "the return is not told apart from that policy's (mean 1.95 against 1.95 over 20 episodes)"
            ],
        ),
        (
            (None, 20, 1.0),
            (None, 20, 1.5),
            [f"the return is below {APART} (mean 1.95 against 2.45 over 20 episodes)"],
        ),
        (
            (None, 1, 9.0),
            (None, 1, 1.0),
            [f"the return is not told apart from {APART} (mean 9 against 1 over 1 episode)"],
        ),
        ((None, 20, 2.0), (None, 20, 1.0), []),
    ],
)
def test_what_the_episodes_show_is_said_and_no_more(policy, control, words):
    assert said(played(*policy), played(*control)) == words
