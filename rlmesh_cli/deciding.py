"""Deciding: may lanes share a policy, and if not, how is it run? The probe says, before the run."""

from __future__ import annotations

from typing import Any

import msgspec

from rlmesh_adapters.advisories import AdvisoryBook
from rlmesh_adapters.contract import RouteContract
from rlmesh_adapters.errors import HarnessError, LoadError
from rlmesh_adapters.looks import named
from rlmesh_adapters.probe.battery import verdict_record
from rlmesh_adapters.probe.lab import SecondInstanceError
from rlmesh_adapters.probe.verdicts import ProbeVerdict, TestResult
from rlmesh_adapters.spaces import is_choice

from .loading import PolicySource
from .probing import probe_shortly
from .schema import Route

#: Recommended way to run -> what a refused run is told to do instead.
_MENDS = {
    "lane": "use --instances lane: one instance a lane",
    "episode": "use --instances episode: a new instance for every episode; or clear everything in reset()",
    "one lane": "use --num-envs 1, or make each row's answer depend on that row alone",
    "nothing": "keep nothing on the class or in the module",
}


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """How a policy is run.

    sharing: as in RouteContract. is_cleared: whether it was shown to keep nothing.
    record: of the probe, None if none was made.
    """

    sharing: str
    is_cleared: bool = False
    record: dict[str, Any] | None = None


def decide(
    policy: PolicySource,
    contract: RouteContract,
    route: Route,
    book: AdvisoryBook,
    *,
    is_forced: bool,
) -> Decision:
    """Probe a policy that several lanes are to share, and return how it is run.

    is_forced: run it although the probe refuses, and say so in the advisories.

    Raises LoadError, with the verdict and what to do instead, for a policy that cannot be run right as asked.
    """
    try:
        verdict = probe_shortly(policy, contract, route)
    except SecondInstanceError:
        raise
    except HarnessError:
        # What cannot be built or resolved is told where the route is configured, in better words.
        return Decision(sharing=contract.sharing)
    record = {**verdict_record(verdict), "forced": False}
    refusal = _refusal(verdict, contract.sharing)
    if refusal is not None:
        if not is_forced:
            raise LoadError(
                f"{contract.num_lanes} lanes would not mean what one lane means: {refusal}",
                where=f"{verdict.corner} of {policy.label}, verdict {verdict.verdict.replace('_', '-')}",
                mend=f"{_mend(verdict)} (--force runs it all the same)",
            )
        record["forced"] = True
        book.add("probe-forced", "caution", f"the probe refused this policy: {refusal}")
    sharing = contract.sharing
    is_shown = verdict.verdict in ("stateless", "stochastic")
    # Single answers that choose between few actions hide most of what is kept, and no answers show all of it where
    # attributes change. There the engine's own rule stays: what is told of episodes gets an instance a lane.
    is_single = is_choice(contract.action) and not verdict.corner.endswith("_batch")
    is_hiding = is_single or verdict.recommended == "lane"
    if sharing == "auto" and is_shown and not is_hiding:
        sharing = "shared"
    elif sharing == "auto" and _is_cleared_by_reset(verdict):
        sharing = "lane"
    elif sharing == "auto" and verdict.is_unsure:
        sharing = "episode"  # right for all but what outlives an instance
    if any(test.name == "noise" and test.outcome == "noted" for test in verdict.tests):
        book.add(
            "policy-stochastic",
            "info",
            "the policy draws random numbers of its own: its rows change with the number of lanes and workers; "
            "`context.rng` gives every episode the same ones anywhere",
        )
    _note_outliving(book, verdict)
    if verdict.verdict == "unchecked":
        _note_unchecked(book, verdict, sharing)
    return Decision(
        sharing=sharing,
        is_cleared=is_shown,
        record=record,
    )


def _is_cleared_by_reset(verdict: ProbeVerdict) -> bool:
    """Tell whether an instance a lane is right: what it keeps was seen to be cleared by a new episode."""
    if verdict.verdict in ("stateless", "stochastic"):
        return verdict.recommended == "lane"
    return verdict.verdict == "episode_clean" or (verdict.is_unsure and verdict.is_put_back)


def _note_outliving(book: AdvisoryBook, verdict: ProbeVerdict) -> None:
    names = next((test.numbers.get("outliving") for test in verdict.tests if test.name == "attributes"), None)
    if names:
        book.add(
            "state-kept",
            "info",
            f"{named(names)} of the policy goes on from episode to episode, reset or not: what one leaves may "
            "reach the next (`rlmesh probe` tells; --instances episode plays each with a new one)",
        )


def _note_unchecked(book: AdvisoryBook, verdict: ProbeVerdict, sharing: str) -> None:
    if verdict.is_unsure and verdict.is_put_back and sharing == "lane":
        book.add(
            "probe-unfinished",
            "info",
            f"answers differed with what came before, and {verdict.calls} calls were too few to find out why; a "
            "new episode puts every attribute back, so each lane gets an instance; `rlmesh probe` can tell",
        )
    elif verdict.is_unsure:
        book.add(
            "probe-unsure",
            "caution",
            f"answers differed with what came before, and {verdict.calls} calls were too few to find out why: "
            + ("every episode gets a new instance; " if sharing == "episode" else "")
            + "`rlmesh probe` can tell",
        )
    elif verdict.is_lone:
        book.add(
            "policy-lone",
            "caution",
            "there is only one object of this policy, which all lanes and episodes share, and no fresh one that "
            "could show what it keeps for good: name its class, or a make_policy()",
        )
    else:
        book.add(
            "probe-unfinished",
            "info",
            f"{verdict.calls} calls in {verdict.seconds:.1f} s were too few to say whether the policy keeps "
            "anything: `rlmesh probe --budget` gives it more time",
        )


def _refusal(verdict: ProbeVerdict, sharing: str) -> str | None:
    """Return why a policy cannot be run as asked, None if it can."""
    failed = next((test for test in verdict.tests if test.outcome == "fail"), None)
    if failed is None or verdict.verdict == "broken":
        # What is broken shows in the run itself, episode by episode.
        return None
    if verdict.verdict == "couples":
        coupled = _coupled(verdict)
        return f"{verdict.meaning} {coupled.sentence}"
    allowed = {"lane": ("auto", "lane", "episode"), "episode": ("episode",), "nothing": ()}
    if sharing in allowed.get(verdict.recommended, (sharing,)):
        return None
    return f"{verdict.meaning} {failed.sentence}"


def _coupled(verdict: ProbeVerdict) -> TestResult:
    """Return the test that says how lanes depend on one another."""
    return next(
        test for test in verdict.tests if test.name in ("apart", "lane-coupling") and test.outcome == "fail"
    )


def _mend(verdict: ProbeVerdict) -> str:
    if verdict.verdict == "couples" and _coupled(verdict).name == "apart":
        return f"use --num-envs 1, or {_MENDS['nothing']}"
    return _MENDS[verdict.recommended]
