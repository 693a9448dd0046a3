"""Advisories: what is degraded yet runnable, stated once with a count."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

Severity = Literal["info", "caution"]


class Advisory(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that the reader of the number should know.

    code: stable name, such as `actions-clipped`.
    severity: `caution` where what the policy saw, or the number itself, was substituted, made up or
        cannot be taken at face value; else `info`.
    message: one sentence with the values.
    count: how often it happened; 1 for what is true of the whole run.
    subject: what tells it from others of its code, such as a key of the infos; or empty.
    """

    code: str
    severity: Severity
    message: str
    count: int = 1
    subject: str = ""


def advisory_key(code: str, subject: str = "") -> str:
    """Return what an AdvisoryBook keeps once."""
    return f"{code} {subject}" if subject else code


class AdvisoryBook:
    """Collects advisories; code and subject are kept once, with the first message and the summed count."""

    def __init__(self) -> None:
        self._by_code: dict[str, Advisory] = {}
        self._lock = threading.Lock()

    def add(self, code: str, severity: Severity, message: str, *, count: int = 1, subject: str = "") -> None:
        """Note an advisory, or raise the count of one that is known.

        subject: what tells advisories of one code apart, where several of them may be kept.
        """
        key = advisory_key(code, subject)
        with self._lock:
            if subject and key not in self._by_code:
                # What another sitting of the run noted without its subject is known by what it says.
                alike = ((old, one) for old, one in self._by_code.items() if one.code == code)
                key = next((old for old, one in alike if one.message == message), key)
            known = self._by_code.get(key)
            if known is None:
                self._by_code[key] = Advisory(
                    code=code, severity=severity, message=message, count=count, subject=subject
                )
            else:
                self._by_code[key] = msgspec.structs.replace(known, count=known.count + count)

    def entries(self) -> dict[str, Advisory]:
        """Return what is noted, by a key that tells code and subject apart."""
        with self._lock:
            return dict(self._by_code)

    def merge(self, entries: Mapping[str, Advisory]) -> None:
        """Take over what another book noted; counts of what both know are added up."""
        with self._lock:
            for key, advisory in entries.items():
                known = self._by_code.get(key)
                if known is not None:
                    advisory = msgspec.structs.replace(known, count=known.count + advisory.count)
                self._by_code[key] = advisory

    def __contains__(self, code: str) -> bool:
        return code in self._by_code

    def __iter__(self) -> Iterator[Advisory]:
        """Yield cautions first, then infos, each in order of appearance."""
        return iter(sorted(self._by_code.values(), key=lambda advisory: advisory.severity == "info"))

    def __len__(self) -> int:
        return len(self._by_code)

    @property
    def cautions(self) -> tuple[Advisory, ...]:
        """The advisories of severity `caution`."""
        return tuple(advisory for advisory in self if advisory.severity == "caution")
