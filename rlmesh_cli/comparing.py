"""Comparing: is a new run worse than a base, not worse, or is that not to be told from these pairs?

Pure: from rows and records to a judgement. A difference is always NEW - BASE.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rlmesh_adapters.errors import HarnessError, nearest

from .changes import Change
from .distinctions import distinctions
from .judgement.multiple import holm
from .margins import RETURN, SUCCESS, MarginError, Margins, full_name
from .metric_judging import MetricComparison, Verdict, judge_metric, p_worse_of
from .pairing import Pair, PairingError, Pairs, info_metrics_of, measure, pair_runs, silence_of
from .protocols import Difference, agree
from .run_reader import StoredRun
from .wording import exact


class MetricError(HarnessError):
    """A metric was asked for that the runs do not have."""


class Judging(msgspec.Struct, frozen=True, kw_only=True):
    """What is judged, and how strictly.

    metrics: names as typed; none is the success rate, or the mean return where success was not reported.
    alpha: chance of a false verdict, one-sided, in (0, 0.5). allowed: fields of the protocol that may differ.
    """

    margins: Margins = Margins()
    alpha: float = 0.05
    metrics: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two runs held against one another.

    is_identical: every pair was finished, with the same start, actions, rewards, length and success.
    metrics: the judged ones first.
    allowed: differences of the protocol that were let pass. distinctions: what else differs, by field.
    is_sequential: whether interval and verdict come from a rule that may stop at any episode.
    """

    base: StoredRun
    new: StoredRun
    judging: Judging
    pairs: Pairs
    is_identical: bool
    metrics: list[MetricComparison]
    allowed: list[Difference]
    distinctions: dict[str, list[Change]]
    verdict: Verdict
    is_sequential: bool = False

    @property
    def judged(self) -> list[MetricComparison]:
        """The metrics that the verdict is made of."""
        return [metric for metric in self.metrics if metric.verdict is not None]


def compare(base: StoredRun, new: StoredRun, judging: Judging) -> Comparison:
    """Pair two runs by seed and judge the new one.

    Raises HarnessError: protocols that differ, no common seed, no episode that both finished, a metric that was
    not measured, a margin or an alpha that cannot be meant.
    """
    # A chance so small that there is no float beside 1 for it leaves no interval.
    if not 0 < judging.alpha < 0.5 or 1 - 2 * judging.alpha == 1:
        raise HarnessError(
            f"alpha is {exact(judging.alpha)}", where="--alpha", mend="give a chance above 0 and below 0.5: 0.05"
        )
    for run in (base, new):
        if run.record["status"] == "failed":
            raise PairingError(
                f"run {run.name} failed: {run.record.get('failure') or 'it is not said why'}",
                where=str(run.folder),
                mend="mend that, and run it again",
            )
    allowed = agree(base, new, judging.allowed)
    pairs = pair_runs(base, new)
    names = _judged_names(pairs.pairs, judging.metrics)
    _check_margins(judging.margins, names)
    is_identical = all(pair.is_identical for pair in pairs.pairs)
    shown = list(dict.fromkeys([*names, SUCCESS, RETURN]))
    are_repeats = pairs.repeats > 0
    measured = [found for name in shown if (found := measure(name, pairs.pairs, are_repeats=are_repeats)).values]
    worse = [p_worse_of(found) for found in measured]
    adjusted = holm(worse[: len(names)])
    metrics = [
        judge_metric(
            found,
            judging.margins,
            judging.alpha,
            p_worse=p,
            adjusted=adjusted[at] if at < len(names) else None,
            same=is_identical,
        )
        for at, (found, p) in enumerate(zip(measured, worse, strict=True))
    ]
    return Comparison(
        base=base,
        new=new,
        judging=judging,
        pairs=pairs,
        is_identical=is_identical,
        metrics=metrics,
        allowed=allowed,
        distinctions=distinctions(base.record, new.record),
        verdict=_overall([metric.verdict for metric in metrics if metric.verdict is not None]),
    )


def _judged_names(pairs: Sequence[Pair], asked: Sequence[str]) -> list[str]:
    """Return the metrics to judge; each is measured in at least one pair."""
    known = [name for name in (SUCCESS, RETURN, *info_metrics_of(pairs)) if measure(name, pairs).values]
    if not known:
        errored = sum(pair.is_error for pair in pairs)
        raise PairingError(
            f"in none of the {len(pairs)} pairs both episodes have a result: {errored} of them errored",
            where="episodes.jsonl",
            mend="mend what the errors say (`rlmesh show`), and run it again",
        )
    usual = SUCCESS if any(pair.base.success is not None for pair in pairs) else known[0]
    names = list(dict.fromkeys(full_name(name) for name in asked)) or [usual]
    for name in names:
        if name == SUCCESS and name not in known:
            raise MetricError(
                f"success was not measured: {silence_of(pairs)}",
                where="--metric",
                mend=f"judge {' or '.join(known)}, or run with --success KEY or --success 'return >= X'",
            )
        if name not in known:
            near = nearest(name, known, limit=1)
            raise MetricError(
                f"there is no metric `{name}` in both runs{f'; did you mean {near[0]}?' if near else ''}",
                where="--metric",
                mend=f"name one of {', '.join(known)}; `rlmesh eval --metric KEY` keeps another",
            )
    return names


def _check_margins(margins: Margins, judged: Sequence[str]) -> None:
    for name in margins.own:
        if name not in judged:
            raise MarginError(f"a margin of `{name}`, but judged is {', '.join(judged)}; --metric says what")


def _overall(verdicts: Sequence[Verdict]) -> Verdict:
    if "worse" in verdicts:
        return "worse"
    return "not_worse" if all(verdict == "not_worse" for verdict in verdicts) else "inconclusive"
