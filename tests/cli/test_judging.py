"""Judging: what a reader of the number should know."""

from __future__ import annotations

import numpy as np
import pytest
from cli_toys import errored, row
from gymnasium import spaces

from rlmesh_adapters.advisories import AdvisoryBook
from rlmesh_adapters.contract import RouteContract
from rlmesh_cli.judging import keep_advisories, note_results
from rlmesh_cli.outcomes import SuccessRule
from rlmesh_cli.stats import summarise
from rlmesh_envs.request import EnvInfo
from rlmesh_envs.spaces import view_of


def noted(rows, *, guard=None, casts="", is_seeded=True, autoreset="disabled"):
    """Return code -> advisory of a run of such rows."""
    box = view_of(spaces.Box(-1, 1, (2,), np.float32))
    env = EnvInfo(id="X", layers=("X",), max_episode_steps=9, autoreset=autoreset, is_seeded=is_seeded)
    book = AdvisoryBook()
    summary = summarise(rows, planned=len(rows), rule=SuccessRule(), metrics=())
    note_results(book, summary, env, RouteContract(observation=box, action=box), guard=guard, casts=casts)
    return {advisory.code: advisory for advisory in book}


def test_run_without_blemish_is_not_commented():
    assert noted([row(0, success=True), row(1, success=False)]) == {}
    assert noted([row(0)]) == {}


@pytest.mark.parametrize(
    ("rows", "more", "code", "severity", "count", "words"),
    [
        (
            [row(0)],
            {"casts": "float64 is stored as float32"},
            "observation-cast",
            "caution",
            1,
            "float64 is stored as",
        ),
        (
            [row(0)],
            {"is_seeded": False, "autoreset": "same_step"},
            "unseeded",
            "caution",
            1,
            "same_step autoreset",
        ),
        (
            [row(0, success_at_reset=True), errored(1, success_at_reset=True), row(2, success_at_reset=False)],
            {},
            "success-at-reset",
            "caution",
            2,
            "2 of 3 episodes report success before the first action",
        ),
        (
            [row(0, success=True), row(1), row(2)],
            {},
            "success-unknown",
            "caution",
            2,
            "2 of 3 episodes reported no success",
        ),
        (
            [row(0, clipped_actions=4), row(1, clipped_actions=1), row(2)],
            {},
            "actions-clipped",
            "info",
            5,
            "clipped into float32[2] in 2 episodes",
        ),
        ([row(0)], {"guard": 100_000}, "no-time-limit", "info", 1, "ended after 100,000 steps (0 were)"),
        (
            [row(0, end="step_cap"), row(1)],
            {"guard": 50},
            "no-time-limit",
            "caution",
            1,
            "ended after 50 steps (1 were)",
        ),
    ],
)
def test_what_is_degraded_is_said_with_its_count(rows, more, code, severity, count, words):
    found = noted(rows, **more)
    assert list(found) == [code]
    assert (found[code].severity, found[code].count) == (severity, count)
    assert words in found[code].message


def test_everything_at_once_is_said_with_cautions_first():
    rows = [row(0, success=True, success_at_reset=True, clipped_actions=1), row(1)]
    found = noted(rows, guard=9, casts="a is stored as b", is_seeded=False)
    severities = [advisory.severity for advisory in found.values()]
    assert len(found) == 6
    assert severities == sorted(severities)


def unread(value, count, **more):
    return {
        "code": "success-unreadable",
        "severity": "caution",
        "message": f"`won` is {value}",
        "count": count,
        **more,
    }


def test_what_was_noted_of_a_subject_is_gone_on_with_whatever_its_words():
    book = AdvisoryBook()
    keep_advisories(book, [unread(0.3, 2, subject="won"), unread(7, 1, subject="best")])
    book.add("success-unreadable", "caution", "`won` is 0.5", count=3, subject="won")
    assert [(one.subject, one.message, one.count) for one in book] == [
        ("won", "`won` is 0.3", 5),
        ("best", "`won` is 7", 1),
    ]


def test_older_records_without_subjects_are_told_apart_by_their_words():
    book = AdvisoryBook()
    keep_advisories(book, [unread(0.3, 2), unread(0.5, 1)])
    book.add("success-unreadable", "caution", "`won` is 0.5", count=3, subject="won")
    assert [(one.message, one.count) for one in book] == [("`won` is 0.3", 2), ("`won` is 0.5", 4)]


def test_what_this_sitting_noted_before_it_played_is_not_counted_again():
    book = AdvisoryBook()
    book.add("success-unreadable", "caution", "`won` is 0.5", subject="won")
    keep_advisories(book, [unread(0.3, 2, subject="won")])
    assert [(one.message, one.count) for one in book] == [("`won` is 0.5", 1)]
