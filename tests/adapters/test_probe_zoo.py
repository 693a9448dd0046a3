"""The battery on the zoo: no faulty policy is missed, no clean one is accused."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from zoo import clean, faulty
from zoo.asking import probe

EVERY = {**faulty.VERDICTS, **clean.VERDICTS}

# Few calls cannot show what needs many, a rare branch, or what only a fresh process shows.
HIDDEN_FROM_FEW = {
    faulty.SwitchAfter50,
    faulty.SwitchAfter150,
    faulty.OnTheClass,
    faulty.InTheModule,
    faulty.OnlyThroughArgmax,
    faulty.EditsItsInput,
    faulty.ReturnsItsBuffer,
    faulty.Reseeds,
    faulty.WallClock,
    faulty.NotANumberSometimes,
}


def name(policy: type) -> str:
    return policy.__name__


def test_zoo_is_large_enough():
    assert len(faulty.VERDICTS) >= 24
    assert len(clean.VERDICTS) >= 16


@pytest.mark.parametrize("policy", EVERY, ids=name)
def test_each_is_called_what_it_is(policy):
    verdict = probe(policy, seed=1)
    assert verdict.verdict in EVERY[policy], [(test.name, test.outcome, test.numbers) for test in verdict.tests]


@pytest.mark.parametrize("policy", clean.VERDICTS, ids=name)
@pytest.mark.parametrize("seed", range(3))
def test_few_calls_accuse_no_clean_policy(policy, seed):
    verdict = probe(policy, seed=seed, is_short=True)
    assert verdict.verdict in clean.VERDICTS[policy]
    assert verdict.calls <= 27


@pytest.mark.parametrize("policy", [known for known in faulty.VERDICTS if known not in HIDDEN_FROM_FEW], ids=name)
def test_few_calls_find_what_shows_at_once(policy):
    verdict = probe(policy, seed=2, is_short=True)
    assert verdict.verdict in faulty.VERDICTS[policy]
    assert verdict.calls <= 27


def choosing(policy: type) -> type:
    """Return the policy as one that chooses between three actions, which shows little of what it keeps."""

    class Choosing(policy):
        is_discrete = True

        def predict(self, obs):
            return int(np.argmax(super().predict(obs)))

    return Choosing


SHOWS_IN_A_CHOICE = [
    faulty.RunningMean,
    faulty.OwnQueue,
    faulty.OwnFrames,
    faulty.Latch,
    faulty.DifferenceFromZero,
    faulty.DifferenceFromNone,
]


@pytest.mark.parametrize("policy", SHOWS_IN_A_CHOICE, ids=name)
@pytest.mark.parametrize("seed", range(3))
def test_memory_is_found_through_a_choice(policy, seed):
    assert probe(choosing(policy), seed=seed).verdict == "episode_clean"


@pytest.mark.parametrize(
    "policy", [clean.HiddenNoise, clean.GlobalNoise, clean.OwnNoise, clean.Memo, clean.Lazy], ids=name
)
@pytest.mark.parametrize("seed", range(6))
def test_chance_in_a_choice_is_no_memory(policy, seed):
    """Two fresh instances often choose alike by chance, and then it looks as if the third call had a reason."""
    assert probe(choosing(policy), seed=seed).verdict in ("stateless", "stochastic")
    few = probe(choosing(policy), seed=seed, is_short=True)
    assert few.verdict not in ("leaks", "couples", "broken")
    assert few.calls <= 27


DRAWS = {
    faulty.NoisyCounter: True,
    faulty.Counter: False,
    faulty.OwnNumbersOfAnEpisode: False,
    clean.DrawsInReset: True,
    clean.SeedsByEpisode: False,
    clean.EpisodeLatent: False,
}


@pytest.mark.parametrize("policy", DRAWS, ids=name)
@pytest.mark.parametrize("is_short", [True, False])
def test_what_it_draws_is_told_whatever_it_keeps(policy, is_short):
    tests = probe(policy, seed=4, is_short=is_short).tests
    assert [test.outcome for test in tests if test.name == "noise"] == ["noted" if DRAWS[policy] else "pass"]


class Stack:
    """The mean of the last observations, through a choice that shows it late."""

    is_discrete = True

    def __init__(self):
        self.frames = []

    def reset(self):
        self.frames.clear()

    def predict(self, obs):
        self.frames.append(np.array(obs))
        return int(faulty.act(np.mean(self.frames[-4:], axis=0))[0] > 0)


class ForgetfulStack(Stack):
    """Its first call overwrites what its reset left, so afterwards nothing is to be seen of it."""

    def reset(self):
        del self.frames[:-1]

    def predict(self, obs):
        del self.frames[:-3]
        return super().predict(obs)


class OneStack(Stack):
    """All instances have one list, which each puts back."""

    def __init__(self, frames=[]):  # noqa: B006 - that is the fault
        self.frames = frames


@pytest.mark.parametrize("policy", [Stack, ForgetfulStack, OneStack], ids=name)
def test_what_a_reset_puts_back_is_seen_where_calls_were_too_few(policy):
    unsure = [found for seed in range(20) if (found := probe(policy, seed=seed, is_short=True)).is_unsure]
    assert unsure
    assert {verdict.is_put_back for verdict in unsure} == {policy is Stack}


@pytest.mark.slow
@pytest.mark.parametrize("policy", EVERY, ids=name)
def test_each_is_called_what_it_is_over_twelve_seeds(policy):
    wrong = {seed: found for seed in range(12) if (found := probe(policy, seed=seed).verdict) not in EVERY[policy]}
    assert wrong == {}


def test_global_random_sources_are_as_before():
    np.random.seed(5)
    expected = np.random.random(3).tolist()
    np.random.seed(5)
    probe(clean.GlobalNoise, seed=0)
    assert np.random.random(3).tolist() == expected


def test_budget_is_kept_and_what_was_not_checked_is_listed():
    class Slow:
        def predict(self, obs: Any) -> Any:
            time.sleep(0.02)
            return faulty.act(obs)

    began = time.perf_counter()
    verdict = probe(Slow, seed=0, most_seconds=0.5)
    assert time.perf_counter() - began < 1.5
    outcomes = {test.name: test.outcome for test in verdict.tests}
    assert outcomes["repeat"] == "pass"
    assert "not checked" in outcomes.values()


def test_a_policy_that_is_too_slow_for_one_answer_more_is_unchecked():
    class Heavy:
        def __init__(self) -> None:
            time.sleep(0.3)

        def predict(self, obs: Any) -> Any:
            return faulty.act(obs)

    verdict = probe(Heavy, seed=0, most_seconds=0.2)
    assert verdict.verdict == "unchecked"
    assert not verdict.is_safe


@pytest.mark.parametrize("is_short", [True, False])
@pytest.mark.parametrize("base", [clean.Linear, faulty.Latch, faulty.BatchMean], ids=name)
def test_every_instance_is_closed(base, is_short):
    living = []

    class Watched(base):
        def __init__(self):
            super().__init__()
            living.append(self)

        def close(self):
            living.remove(self)

    verdict = probe(Watched, seed=0, is_short=is_short)
    assert verdict.instances > 1
    assert living == []


@pytest.mark.parametrize("policy", SHOWS_IN_A_CHOICE, ids=name)
def test_memory_that_no_call_was_left_to_look_into_is_no_reason_to_share(policy):
    """With every number of calls: what was seen to differ is never just `unchecked`."""
    for most_calls in range(4, 40):
        verdict = probe(choosing(policy), seed=most_calls, is_short=True, most_calls=most_calls)
        has_failed = any(test.outcome == "fail" for test in verdict.tests)
        assert verdict.verdict != "unchecked" or verdict.is_unsure or not has_failed, (most_calls, verdict)
