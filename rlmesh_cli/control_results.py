"""ControlResult: what a built-in policy made of the same episodes, beside the policy that is judged."""

from __future__ import annotations

import msgspec

from .judgement.intervals import Interval


class PairedDifference(msgspec.Struct, frozen=True, kw_only=True):
    """One metric of the policy and of a control, over the episodes that have it in both.

    difference: policy - control; interval: of it, None where there is none.
    left_out: pairs that have no value on one side.
    """

    pairs: int
    policy: float
    control: float
    difference: float
    interval: Interval | None
    left_out: int = 0

    @property
    def is_ahead(self) -> bool:
        """Whether the policy is told apart from the control, and above it."""
        return self.interval is not None and self.interval.low > 0

    @property
    def is_behind(self) -> bool:
        """Whether the policy is told apart from the control, and below it."""
        return self.interval is not None and self.interval.high < 0


class ControlResult(msgspec.Struct, frozen=True, kw_only=True):
    """A control: `random`, `zero` or `hold`.

    episodes: played; errors: of them, not finished. success, returns: None where nothing was measured in both.
    """

    name: str
    episodes: int
    errors: int
    success: PairedDifference | None
    returns: PairedDifference | None

    @property
    def judged(self) -> PairedDifference | None:
        """What tells the policy apart: success where it was measured, else the return."""
        return self.success or self.returns
