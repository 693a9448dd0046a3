"""What an episode's infos say: success by the declared rule, and the metrics that the route names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite, isnan, nan
from typing import Any

import msgspec

from rlmesh_adapters.advisories import AdvisoryBook
from rlmesh_adapters.errors import shortened
from rlmesh_envs.info_forms import FormedInfos, InfoForm
from rlmesh_envs.infos import SUCCESS_KEYS, read_flag, read_number

from .wording import exact

_LONGEST = 60
#: Reports in a row that "held" means where a route does not say.
HELD_STEPS = 10


class SuccessRule(msgspec.Struct, frozen=True, kw_only=True):
    """When an episode counts as a success.

    keys: info keys it is read from, the first that reports wins.
    when: `final` (the last value reported), `any` (true at some step) or `held` (true at `steps` reports running).
    return_at_least: instead of an info, a bound on the return.
    """

    keys: tuple[str, ...] = SUCCESS_KEYS
    when: str = "final"
    steps: int = HELD_STEPS
    return_at_least: float | None = None

    def describe(self) -> str:
        """Return the rule in words, such as `is_success or success, last value`."""
        if self.return_at_least is not None:
            return f"return >= {exact(self.return_at_least)}"
        moments = {"final": "last value", "any": "any step", "held": f"held for {self.steps} steps"}
        return f"{' or '.join(self.keys)}, {moments[self.when]}"


class InfoReader:
    """Reads what a route wants to know from infos.

    rule: where success is read.
    metrics: info keys of numbers; dots lead into nested dicts.
    advisories: where it is noted what is reported and cannot be read.
    """

    def __init__(self, rule: SuccessRule, metrics: Sequence[str], advisories: AdvisoryBook | None = None) -> None:
        self.rule = rule
        self._advisories = advisories
        # Key -> what is said of what cannot be read there.
        self._unread: dict[str, str] = {}
        self.metrics = tuple(metrics)
        # A nested key can only be there if its first part is.
        self._keys = tuple((key, key.split(".", 1)[0]) for key in rule.keys)
        self._roots = tuple((name, name.split(".", 1)[0]) for name in self.metrics)
        self._names = frozenset(name for pair in (*self._keys, *self._roots) for name in pair)
        # The form that was looked at last, and whether it has nothing to say.
        self._form: InfoForm | None = None
        self._ignores_form = False

    def ignores(self, infos: Sequence[Mapping[str, Any]]) -> bool:
        """Tell whether the form of some infos shows that they report nothing."""
        if infos.__class__ is not FormedInfos:
            return False
        if infos.form is not self._form:
            self._form, self._ignores_form = infos.form, self._names.isdisjoint(infos.form.keys)
        return self._ignores_form

    def read(self, info: Mapping[str, Any], outcome: Outcome) -> None:
        """Take over what one step's info reports."""
        for key, root in self._keys:
            if key in info or root in info:
                flag = read_flag(info, key)
                if flag is not None:
                    outcome.final, outcome.source = flag, key
                    outcome.any = flag or bool(outcome.any)
                    outcome.holding = outcome.holding + 1 if flag else 0
                    outcome.held = max(outcome.held, outcome.holding)
                    break
                self._note_unread_flag(info, key)
        for name, root in self._roots:
            if name in info or root in info:
                number = info.get(name)
                # Most environments report plain floats; whatever else it is takes the longer way.
                if number.__class__ is not float:
                    number = read_number(info, name)
                if number is not None:
                    # Of nan one object, so that episodes that report it at one place are alike.
                    outcome.reported[name] = nan if isnan(number) else number
                if number is None or not isfinite(number):
                    self._note_unread_number(info, name, number)

    def _note_unread_flag(self, info: Mapping[str, Any], key: str) -> None:
        """Note a report of success that says nothing; a key with nothing behind it is none."""
        if info.get(key) is not None and self._advisories is not None:
            message = self._said(key, info[key], "neither true nor false: it does not count")
            self._advisories.add("success-unreadable", "caution", message, subject=key)

    def _note_unread_number(self, info: Mapping[str, Any], name: str, number: float | None) -> None:
        """Note a report of a metric that says nothing, or is a number that no bar can be held against."""
        value = info.get(name) if number is None else number
        if value is not None and self._advisories is not None:
            comes_to = "it does not count" if number is None else "where an episode ends with it, no gate passes"
            message = self._said(name, value, f"no finite number: {comes_to}")
            self._advisories.add("metric-unreadable", "caution", message, subject=name)

    def _said(self, key: str, value: Any, what: str) -> str:
        """Return what is said of a report; of a key it is made once, for it may come at every step."""
        if key not in self._unread:
            self._unread[key] = f"`{key}` of the infos is {_shown(value)}, which is {what}"
        return self._unread[key]

    def read_reset(self, info: Mapping[str, Any], outcome: Outcome) -> None:
        """Take over what a reset's info reports: only whether the goal holds already."""
        for key, root in self._keys:
            if (key in info or root in info) and (flag := read_flag(info, key)) is not None:
                outcome.at_reset = flag
                return


def _shown(value: Any) -> str:
    """Return a plain value as it stands, of anything else the type: it may be large, or raise when it is shown."""
    if isinstance(value, (str, bytes)):
        return shortened(repr(value[:_LONGEST]), _LONGEST)
    return repr(value) if isinstance(value, (int, float)) else f"of type {type(value).__name__}"


class Outcome(msgspec.Struct):
    """What one running episode has reported so far.

    final, any, at_reset, held: see EpisodeResult. holding: reports in a row, up to now, that were true.
    source: the key of `final`. reported: metric -> the last number that was reported.
    """

    final: bool | None = None
    any: bool | None = None
    at_reset: bool | None = None
    held: int = 0
    holding: int = 0
    source: str | None = None
    reported: dict[str, float] = {}

    def judge(self, rule: SuccessRule, total: float) -> tuple[bool | None, str | None]:
        """Return (success, where it was read) of a finished episode with return `total`."""
        if rule.return_at_least is not None:
            return total >= rule.return_at_least, "return_at_least"
        if rule.when == "held":
            return (None if self.final is None else self.held >= rule.steps), self.source
        return (self.final if rule.when == "final" else self.any), self.source

    def numbers(self, metrics: Sequence[str]) -> dict[str, float | None]:
        """Return each metric's last reported value, None if there was none."""
        return {name: self.reported.get(name) for name in metrics}
