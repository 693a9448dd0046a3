"""Verdicts: what each test found, and what they come to together."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

#: `pass`, `fail`, `noted` (worth knowing, no reason to refuse) or `not checked`.
Outcome = Literal["pass", "fail", "noted", "not checked"]

#: What the tests come to, from the best to the worst.
OVERALL = ("stateless", "stochastic", "episode_clean", "unchecked", "leaks", "couples", "broken")

#: Overall verdict -> what it means, and what to do.
MEANINGS = {
    "stateless": "Its answers depend on the observation alone: lanes may share one instance.",
    "stochastic": "Its answers vary by chance, not by what came before: lanes may share one instance.",
    "episode_clean": "It keeps something between calls, and reset() clears it: give each lane an instance.",
    "unchecked": "It could not be found out whether it keeps something between calls.",
    "leaks": "It keeps something between calls that the next episode still sees.",
    "couples": "What it does on one lane depends on the other lanes.",
    "broken": "Its answers cannot be used as they are.",
}


class TestResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one test found.

    name: of the test. numbers: what was measured. sentence: what it means, in words.
    """

    name: str
    outcome: Outcome
    sentence: str
    numbers: dict[str, Any] = {}


class ProbeVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What all tests come to.

    verdict: one of OVERALL. recommended: `shared`, `lane`, `episode` (a new instance an episode), `state`,
    `one lane` or `nothing`. is_unsure: whether answers differed,
    and there was no call left to say why, or whether a reset clears it. is_put_back: whether its attributes
    changed, and all of them were as at first when a new episode began. is_lone: whether there is only one object
    of the policy, which no fresh one can be held against.
    calls: of the policy. instances: that were built. seconds: it took.
    """

    verdict: str
    recommended: str
    tests: tuple[TestResult, ...]
    is_unsure: bool
    is_put_back: bool
    is_lone: bool
    corner: str
    calls: int
    instances: int
    seconds: float

    @property
    def is_safe(self) -> bool:
        """Whether lanes can be played as recommended and mean what one lane means."""
        return self.verdict in ("stateless", "stochastic", "episode_clean")

    @property
    def meaning(self) -> str:
        """The overall verdict in words."""
        return MEANINGS[self.verdict]
