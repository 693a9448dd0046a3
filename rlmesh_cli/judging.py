"""Advisories that only show when a run's rows are added up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rlmesh_adapters.advisories import AdvisoryBook, advisory_key
from rlmesh_adapters.contract import RouteContract
from rlmesh_envs.request import EnvInfo

from .stats import Summary
from .tallies import Tally

#: What rows add up to is noted anew by every sitting of a run; other advisories are kept from one to the next.
RESULT_CODES = frozenset(
    {
        *("unseeded", "success-at-reset", "success-unknown", "actions-clipped", "no-time-limit"),
        *("repeated-starts", "few-starts", "episodes-retried", "stopped-early", "early-rows"),
        "until-unmeasured",
        *("control-not-beaten", "followup-broken-off", "lanes-not-verified", "fewer-verified"),
        *("workers", "workers-exceed-cores", "workers-memory", "frames-skipped", "video-selection"),
    }
)


def keep_advisories(book: AdvisoryBook, earlier: Iterable[Mapping[str, Any]]) -> None:
    """Note what an earlier sitting noted, but for what this one notes itself; earlier: as `run.json` has them."""
    noted = {(advisory.code, advisory.message) for advisory in book}
    keys = set(book.entries())
    for advisory in earlier:
        code, message, subject = advisory["code"], advisory["message"], advisory.get("subject", "")
        is_known = code in keys or advisory_key(code, subject) in keys or (code, message) in noted
        if code in RESULT_CODES or is_known:
            continue
        # Without a subject, several of one code are told apart by what they say.
        is_one_of_several = code in book or any(code == known for known, _ in noted)
        book.add(
            code,
            advisory["severity"],
            message,
            count=advisory.get("count", 1),
            subject=subject or (message if is_one_of_several else ""),
        )


def note_results(
    book: AdvisoryBook, summary: Summary, env: EnvInfo, contract: RouteContract, *, guard: int | None, casts: str
) -> None:
    """Note what a reader of the number should know.

    guard: steps after which we ended episodes of an environment without a limit, None if it has one.
    casts: what lost precision when observations were stored, or empty.
    """
    success = summary.success
    if casts and "observation-cast" not in book:
        book.add("observation-cast", "caution", f"observations lose precision: {casts}, the dtype of their space")
    starts = summary.starts
    if starts.are_repeats:
        book.add(
            "repeated-starts",
            "caution",
            f"{starts.known} episodes, {starts.distinct} distinct starts: the others repeat them step by step "
            "and say nothing new",
            count=starts.known - starts.distinct,
        )
    elif starts.distinct * 2 <= starts.known and starts.known > 1:
        book.add(
            "few-starts",
            "info",
            f"{starts.known} episodes, {starts.distinct} distinct first observations: what differs between "
            "episodes is chance after the start",
        )
    if summary.retried:
        book.add(
            "episodes-retried",
            "info",
            "episodes were played again, once, after their environment or their worker had failed",
            count=summary.retried,
        )
    if not env.is_seeded:
        book.add(
            "unseeded",
            "caution",
            f"single episodes cannot be seeded ({env.autoreset} autoreset): this run cannot be replayed by "
            "episode, and depends on the number of lanes",
        )
    if success.at_reset:
        book.add(
            "success-at-reset",
            "caution",
            f"{success.at_reset} of {summary.episodes} episodes report success before the first action",
            count=success.at_reset,
        )
    if success.unknown and success.rate is not None:
        book.add(
            "success-unknown",
            "caution",
            f"{success.unknown} of {summary.episodes} episodes reported no success: they are not in the rate",
            count=success.unknown,
        )
    if summary.clipped_actions:
        book.add(
            "actions-clipped",
            "info",
            f"actions were clipped into {contract.action} in {summary.clipped_episodes} episodes",
            count=summary.clipped_actions,
        )
    if guard is not None:
        capped = summary.ends.get("step_cap", 0)
        book.add(
            "no-time-limit",
            "caution" if capped else "info",
            f"the environment registers no time limit: episodes are ended after {guard:,} steps ({capped} were)",
        )


def note_frames(book: AdvisoryBook, tally: Tally) -> None:
    """Note how many frames were not rendered, because the policy executed what it had planned."""
    if tally.frames_skipped:
        book.add(
            "frames-skipped",
            "info",
            f"{tally.frames_skipped:,} of {tally.steps:,} observations came without new pixels: the policy's next "
            "action was planned already",
            count=tally.frames_skipped,
        )
