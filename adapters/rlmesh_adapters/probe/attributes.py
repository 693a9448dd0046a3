"""Attributes: does the policy change, although its answers do not show it?"""

from __future__ import annotations

from rlmesh_adapters.instances import episode_hooks
from rlmesh_adapters.looks import changed, looks_of, named

from .findings import Findings
from .lab import Moved, Session
from .randomness import are_drawn_from
from .verdicts import TestResult


def see_another_episode(findings: Findings, session: Session) -> None:
    """Note which attributes of a policy that is told of episodes are others in another episode.

    Between the two, the first session is asked again, whose answer that must not change.

    What is chosen for an episode when it begins - a goal, a latent - shows in no answer within one. Who is
    told the step knows as well where an episode begins.
    """
    if not episode_hooks(session.policy) and "step" not in findings.lab.read:
        return
    findings.is_told_of_episodes = True
    findings.lab.budget.extend(2)
    first = findings.first
    assert first is not None
    before, left_alone = looks_of(session.policy), looks_of(first.policy)
    session.play_another(findings.lab.batches[1])
    other, asked = looks_of(session.policy), session.moved
    is_apart = looks_of(first.policy) == left_alone
    findings.between = first.ask(findings.lab.batches[0])
    session.next_episode()
    session.begin()
    begun = looks_of(session.policy)
    session.ask(findings.lab.batches[0])
    again = looks_of(session.policy)
    _note_draws(findings, session, asked)
    if before is None or other is None or again is None:
        findings.changed_by_episode = None
        return
    findings.changed_by_episode = changed(before, other)
    # Where a generator is made anew each time, that it is another object says nothing.
    findings.outliving = [name for name in changed(before, again) if not session.has_made(name)]
    # Before a call, for a call may overwrite what was not cleared. What another instance changes is no lane's own.
    findings.is_put_back = bool(findings.changed_by_episode) and begun == findings.begun and is_apart


def _note_draws(findings: Findings, session: Session, asked: Moved) -> None:
    """Note whether an episode's beginning draws random numbers, such as a latent that no call draws again.

    asked: of the first call of the episode before, which had other random numbers.
    """
    begun, first = session.begun, session.moved
    session.next_episode()
    session.begin(noise=1)
    findings.draws = are_drawn_from([begun, session.begun])
    # That episode had another seed, which may have been set.
    findings.draws |= "seed" not in findings.lab.read and are_drawn_from([asked, first])


def check_attributes(findings: Findings) -> TestResult:
    """What the first instance is like after its first call, and after all that it was asked.

    What changes is not shown to be harmless by answers that do not change: a clock may strike later than it was
    waited for, and a choice between few actions hides most. Where the policy is told of episodes, each lane is
    given an instance then.
    """
    assert findings.first is not None
    before, after, by_episode = findings.looks, looks_of(findings.first.policy), findings.changed_by_episode
    if before is None or after is None or by_episode is None:
        findings.is_hiding = findings.is_told_of_episodes
        return TestResult(name="attributes", outcome="not checked", sentence="They cannot be looked at.")
    names = sorted({*changed(before, after), *by_episode})
    if not names:
        return TestResult(
            name="attributes", outcome="pass", sentence="None of its attributes changed with its calls."
        )
    findings.is_hiding = findings.is_told_of_episodes
    shown = "" if findings.remembers else "; no answer that was compared shows it"
    kept = findings.outliving
    stays = f" {named(kept)} {'is' if len(kept) == 1 else 'are'} not as before in a new episode." if kept else ""
    return TestResult(
        name="attributes",
        outcome="noted",
        sentence=f"{named(names)} of it changed with its calls{shown}.{stays}",
        numbers={"changed": names, "outliving": kept},
    )
