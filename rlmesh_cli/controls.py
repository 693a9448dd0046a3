"""Controls: the built-in policies on the same episodes, for a task that doing nothing solves makes scores void."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from rlmesh_adapters.advisories import AdvisoryBook

from .control_results import ControlResult, PairedDifference
from .episodes import Episode, EpisodeResult
from .estimating import Estimator, paired_rate
from .glances import Glance, Standings
from .judgement.intervals import Interval
from .margins import RETURN, SUCCESS
from .pairing import Pair, measure, repeats_among
from .repeats import effective_count
from .rollout import Rollout
from .schema import PolicyRoute, Route
from .stage import staged
from .watching import Watcher
from .wording import counted, number


def play_control(
    name: str,
    route: Route,
    episodes: Sequence[Episode],
    *,
    source: dict[str, Any],
    watcher: Watcher,
    watch: Callable[[Rollout], None],
) -> list[EpisodeResult]:
    """Play episodes with a built-in policy, on lanes of their own, and return the rows in index order.

    source: see evaluate. watch: is told of the loop before it begins, so that it can be stopped.
    The policy acts in the environment's own spaces, whatever the route converts.

    Raises HarnessError where the environment cannot be built, or has no such policy.
    """
    plain = msgspec.structs.replace(
        route,
        policy=PolicyRoute(source=name),
        horizon=1,
        ensemble=None,
        batch_rows=None,
        instances="auto",
        env_tags=None,
        model_spec=None,
    )
    rows: list[EpisodeResult] = []
    with staged(plain, source=source) as stage:
        standings = Standings(msgspec.structs.replace(plain, gates=(), until=None), f"control {name}")

        def look() -> Glance:
            return standings.glance(rows, rollout.company())

        rollout: Rollout = stage.rollout(episodes, on_tick=lambda tally: watcher.tick(tally, len(rows), look))
        watch(rollout)
        watcher.begin(len(episodes))
        try:
            for results in rollout.run():
                rows.extend(results)
        finally:
            watcher.end()
    return sorted(rows, key=lambda row: row.index)


def judge_control(
    name: str, rows: Sequence[EpisodeResult], control: Sequence[EpisodeResult], *, confidence: float
) -> ControlResult:
    """Hold a policy's rows against those of a control, episode by episode.

    What the policy did not finish is no success of it; of returns it is left out, and so are episodes that the
    control did not finish.
    """
    known = {row.index: row for row in control}
    pairs = [Pair(known[row.index], row) for row in rows if row.index in known]
    return ControlResult(
        name=name,
        episodes=len(control),
        errors=sum(row.is_error for row in control),
        success=_difference(SUCCESS, pairs, confidence),
        returns=_difference(RETURN, pairs, confidence),
    )


def _difference(metric: str, pairs: Sequence[Pair], confidence: float) -> PairedDifference | None:
    measured = measure(metric, pairs)
    values, kept = measured.values, measured.pairs
    if not values:
        return None
    if metric == SUCCESS:
        lost = [pair for pair in pairs if pair.new.is_error and not pair.base.is_error]
        lost = [pair for pair in lost if pair.base.success is not None]
        values = values + [(float(pair.base.success or False), 0.0) for pair in lost]
        kept = kept + lost
    differences = [new - base for base, new in values]
    starts = [pair.start for pair in kept] if repeats_among(pairs) else None
    interval: Interval | None
    if metric == SUCCESS:
        gained, lost_count = differences.count(1.0), differences.count(-1.0)
        effective = None if starts is None else effective_count(starts)
        interval = paired_rate(gained, lost_count, len(values), confidence=confidence, effective=effective)
    else:
        interval = Estimator(confidence=confidence).mean(differences, starts)
    return PairedDifference(
        pairs=len(values),
        policy=sum(new for _, new in values) / len(values),
        control=sum(base for base, _ in values) / len(values),
        difference=sum(differences) / len(values),
        interval=interval,
        left_out=len(pairs) - len(values),
    )


def note_control(book: AdvisoryBook, result: ControlResult) -> None:
    """Note a control that the policy is not told apart from, or is below."""
    judged = result.judged
    if judged is not None and not judged.is_ahead:
        book.add("control-not-beaten", "caution", _standing_words(result), subject=result.name)


def _standing_words(result: ControlResult) -> str:
    """Return how a policy stands that is not ahead of a control: what the rows show, and no more."""
    success, returns = result.success, result.returns
    of_control = f"that of the built-in policy `{result.name}` on the same episodes"
    if success is None:
        return "" if returns is None else f"the return is {_standing(returns)} {of_control} ({_means(returns)})"
    text = f"success is {_standing(success)} {of_control} ({_counts(success)})"
    if returns is None or _standing(returns) == _standing(success):
        return text
    return f"{text}; the return is {_standing(returns)} that policy's ({_means(returns)})"


def _standing(found: PairedDifference) -> str:
    if found.is_ahead:
        return "above"
    return "below" if found.is_behind else "not told apart from"


def _counts(found: PairedDifference) -> str:
    won, by_control = (round(rate * found.pairs) for rate in (found.policy, found.control))
    return f"{won} of {found.pairs} against {by_control} of {found.pairs}"


def _means(found: PairedDifference) -> str:
    return f"mean {number(found.policy)} against {number(found.control)} over {counted(found.pairs, 'episode')}"
