"""Faulty policies. `VERDICTS` says what each must be called."""

from __future__ import annotations

import functools
import random
import threading
import time

import numpy as np

START = time.perf_counter()
WEIGHTS = np.random.default_rng(7).normal(size=(4, 3))


def act(obs):
    return np.asarray(obs, float) @ WEIGHTS


class Counter:
    def __init__(self):
        self.calls = 0

    def reset(self):
        self.calls = 0

    def predict(self, obs):
        self.calls += 1
        return act(obs) + self.calls


class CounterWithoutReset:
    def __init__(self):
        self.calls = 0

    def predict(self, obs):
        self.calls += 1
        return act(obs) + 0.1 * self.calls


class RunningMean:
    def __init__(self):
        self.reset()

    def reset(self):
        self.count, self.mean = 0, np.zeros(4)

    def predict(self, obs):
        self.count += 1
        self.mean = self.mean + (obs - self.mean) / self.count
        return act(obs - self.mean)


class MovingAverage:
    def __init__(self):
        self.kept = None

    def reset(self):
        self.kept = None

    def predict_batch(self, obs):
        mean = obs.mean(0)
        self.kept = mean if self.kept is None else 0.9 * self.kept + 0.1 * mean
        return act(obs) + 0.01 * self.kept[:3]


class Recurrent:
    def __init__(self):
        self.reset()

    def reset(self):
        self.hidden = np.zeros(3)

    def predict(self, obs):
        self.hidden = np.tanh(act(obs) + 0.5 * self.hidden)
        return self.hidden


class OwnQueue:
    """Plans eight actions and plays them back by itself."""

    def __init__(self):
        self.queue = []

    def reset(self):
        self.queue = []

    def predict(self, obs):
        if not self.queue:
            self.queue = [act(obs)] * 8
        return self.queue.pop(0)


class OwnFrames:
    def __init__(self):
        self.frames = []

    def reset(self):
        self.frames = []

    def predict(self, obs):
        self.frames = [*(self.frames or [obs] * 3)[-2:], obs]
        return act(np.mean(self.frames, axis=0))


class Latch:
    """Goes by the first thing it saw."""

    def __init__(self):
        self.first = None

    def reset(self):
        self.first = None

    def predict(self, obs):
        self.first = np.array(obs) if self.first is None else self.first
        return act(self.first)


class DifferenceFromZero:
    def __init__(self):
        self.last = np.zeros(4)

    def reset(self):
        self.last = np.zeros(4)

    def predict(self, obs):
        last, self.last = self.last, np.array(obs)
        return act(obs - last)


class DifferenceFromNone:
    def __init__(self):
        self.last = None

    def reset(self):
        self.last = None

    def predict(self, obs):
        last, self.last = self.last, np.array(obs)
        return act(obs - (obs if last is None else last))


class SwitchAfter50:
    limit = 50

    def __init__(self):
        self.calls = 0

    def predict(self, obs):
        self.calls += 1
        return act(obs) * (1 if self.calls < self.limit else -1)


class SwitchAfter150(SwitchAfter50):
    limit = 150


class PeriodThree:
    def __init__(self):
        self.calls = 0

    def reset(self):
        self.calls = 0

    def predict(self, obs):
        self.calls += 1
        return act(obs) + (self.calls % 3 == 0)


class OnTheClass:
    calls = 0

    def predict(self, obs):
        type(self).calls += 1
        return act(obs) + self.calls


TOTAL = {"calls": 0}


class InTheModule:
    def predict(self, obs):
        TOTAL["calls"] += 1
        return act(obs) + TOTAL["calls"]


class OnlyInTheBatch:
    def __init__(self):
        self.calls = 0

    def reset(self):
        self.calls = 0

    def predict(self, obs):
        return act(obs)

    def predict_batch(self, obs):
        self.calls += 1
        return act(obs) + self.calls


class OnlyInTheChunk:
    horizon = 4

    def __init__(self):
        self.calls = 0

    def reset(self):
        self.calls = 0

    def predict(self, obs):
        return act(obs)

    def predict_chunk(self, obs):
        self.calls += 1
        return np.repeat(act(obs)[None], 4, 0) + self.calls


class OnlyThroughArgmax:
    """Its scores drift a little at each call; the choice changes now and then."""

    is_discrete = True

    def __init__(self):
        self.drift = 0.0

    def reset(self):
        self.drift = 0.0

    def predict(self, obs):
        self.drift += 0.05
        return int(np.argmax(act(obs) + np.array([0, self.drift, 0])))


class ForgetsOneField:
    """Its reset clears one of two things it keeps."""

    def __init__(self):
        self.calls, self.sum = 0, 0.0

    def reset(self):
        self.calls = 0

    def predict(self, obs):
        self.calls += 1
        self.sum += 0.1
        return act(obs) + self.sum + self.calls


class BatchMean:
    def predict_batch(self, obs):
        return act(obs - obs.mean(0))


class NoisyBatchMean:
    """The same, below noise that is drawn for the whole batch."""

    def predict_batch(self, obs):
        return act(obs - obs.mean(0)) + np.random.normal(0, 0.05, (len(obs), 3))


class RowOrder:
    def predict_batch(self, obs):
        return act(obs) + np.arange(len(obs))[:, None]


class BatchNorm:
    """As in training: by the statistics of the batch it is given."""

    def predict_batch(self, obs):
        return act((obs - obs.mean(0)) / (obs.std(0) + 1e-5))


class EditsItsInput:
    def predict_batch(self, obs):
        obs *= 2
        return act(obs)


class ReturnsItsBuffer:
    def __init__(self):
        self.buffer = None

    def predict_batch(self, obs):
        if self.buffer is None or len(self.buffer) != len(obs):
            self.buffer = np.zeros((len(obs), 3))
        self.buffer[:] = act(obs)
        return self.buffer


class Reseeds:
    def predict(self, obs):
        random.seed(3)
        np.random.seed(3)
        return act(obs) + random.random()


class WallClock:
    def predict(self, obs):
        return act(obs) + 1000 * (time.perf_counter() - START)


class NotANumberSometimes:
    def predict(self, obs):
        return act(obs) * (np.nan if obs[0] > 0.3 else 1)


class ChangesItsShape:
    def __init__(self):
        self.calls = 0

    def predict(self, obs):
        self.calls += 1
        return act(obs) if self.calls < 6 else act(obs)[:2]


class Learns:
    """A normaliser that takes in what it is evaluated on."""

    def __init__(self):
        self.count, self.mean, self.square = 100, np.zeros(4), np.ones(4)

    def predict_batch(self, obs):
        for row in obs:
            self.count += 1
            self.mean = self.mean + (row - self.mean) / self.count
            self.square = self.square + (row**2 - self.square) / self.count
        return act((obs - self.mean) / np.sqrt(self.square))


class NoisyCounter:
    """Counts, under noise of its own."""

    def __init__(self):
        self.calls = 0

    def reset(self):
        self.calls = 0

    def predict(self, obs):
        self.calls += 1
        return act(obs) + 0.2 * self.calls + random.gauss(0, 0.5)


LEAN = [np.zeros(3)]


class InAListThatResetClears:
    def reset(self):
        LEAN[0] = np.zeros(3)

    def predict(self, obs):
        LEAN[0] = 0.8 * LEAN[0] + act(obs)
        return LEAN[0]


class OnTheClassThatResetClears:
    hidden = np.zeros(3)

    def reset(self):
        self.hidden[:] = 0

    def predict_batch(self, obs):
        self.hidden[:] = np.tanh(act(obs).mean(0) + 0.5 * self.hidden)
        return act(obs) + self.hidden


class InADefault:
    def reset(self):
        self.predict.__func__.__defaults__[0].clear()

    def predict(self, obs, frames=[]):  # noqa: B006 - that is the fault
        frames.append(np.array(obs))
        return act(np.mean(frames[-4:], axis=0))


THREAD = threading.local()


class InTheThread:
    def reset(self):
        THREAD.last = None

    def predict(self, obs):
        last, THREAD.last = THREAD.last, np.array(obs)
        return act(obs - (obs if last is None else last))


@functools.lru_cache(maxsize=1)
def only_one():
    return Recurrent()


class OneInside:
    def __init__(self):
        self.inner = only_one()

    def reset(self):
        self.inner.reset()

    def predict(self, obs):
        return self.inner.predict(obs)


GOAL = {}


class GoalInTheModule:
    """Chosen when an episode begins: no answer within one shows it."""

    def reset(self, context):
        GOAL["now"] = np.array([context.seed % 3 - 1.0, 1, 1])

    def predict(self, obs):
        return act(obs) * GOAL["now"]


class PlanInTheModule:
    """Cleared by the step, without a reset."""

    def predict(self, obs, context):
        if context.step % 8 == 0:
            GOAL["plan"] = act(obs)
        return GOAL["plan"] + context.step


class ClearedByItsConstructor:
    hidden = np.zeros(3)

    def __init__(self):
        self.hidden[:] = 0

    def predict(self, obs):
        self.hidden[:] = np.tanh(act(obs) + 0.5 * self.hidden)
        return self.hidden


class OwnNumbersOfAnEpisode:
    """Its reset seeds what it draws from, so episodes are alike wherever they are played."""

    def reset(self):
        self.rng = np.random.default_rng(0)

    def predict(self, obs):
        return act(obs) + self.rng.normal(0, 0.5, 3)


class ClearsAtStepZero:
    """Needs no reset: what it keeps is cleared at an episode's first step."""

    def predict(self, obs, context):
        if context.step == 0:
            self.lean = 0.0
        self.lean = 0.8 * self.lean + obs[2] + obs[3]
        return act(obs) + self.lean


class PlansByStep:
    """Plans eight steps ahead, and goes by the step which of them it is at."""

    def predict(self, obs, context):
        if context.step % 8 == 0:
            self.plan = np.outer(np.arange(1, 9), act(obs))
        return self.plan[context.step % 8]


class PlansChunksByStep:
    horizon = 4

    def predict_chunk(self, obs, context):
        if context.step % 8 == 0:
            self.plan = np.outer(np.arange(1, 9), act(obs))
        return self.plan[context.step % 8 :][:4]


class RecurrentByStep:
    def predict_batch(self, obs, context):
        if context[0].step == 0:
            self.hidden = np.zeros((len(obs), 3))
        self.hidden = np.tanh(act(obs) + 0.5 * self.hidden)
        return self.hidden


class KeepsBesidesTheStep:
    """Clears one of two things at an episode's first step."""

    def __init__(self):
        self.last = np.zeros(3)

    def predict(self, obs, context):
        if context.step == 0:
            self.lean = 0.0
        self.lean += obs[2]
        last, self.last = self.last, act(obs)
        return last + self.lean


VERDICTS = {
    Counter: {"episode_clean"},
    CounterWithoutReset: {"leaks"},
    RunningMean: {"episode_clean"},
    MovingAverage: {"episode_clean", "couples"},
    Recurrent: {"episode_clean"},
    OwnQueue: {"episode_clean"},
    OwnFrames: {"episode_clean"},
    Latch: {"episode_clean"},
    DifferenceFromZero: {"episode_clean"},
    DifferenceFromNone: {"episode_clean"},
    SwitchAfter50: {"leaks"},
    SwitchAfter150: {"leaks"},
    PeriodThree: {"episode_clean"},
    OnTheClass: {"leaks"},
    InTheModule: {"leaks"},
    OnlyInTheBatch: {"episode_clean"},
    OnlyInTheChunk: {"episode_clean"},
    OnlyThroughArgmax: {"episode_clean"},
    ForgetsOneField: {"leaks"},
    BatchMean: {"couples"},
    NoisyBatchMean: {"couples"},
    RowOrder: {"couples"},
    BatchNorm: {"couples"},
    EditsItsInput: {"broken"},
    ReturnsItsBuffer: {"broken"},
    Reseeds: {"broken"},
    WallClock: {"leaks"},
    NotANumberSometimes: {"broken"},
    ChangesItsShape: {"broken"},
    Learns: {"leaks", "couples"},
    NoisyCounter: {"episode_clean"},
    InAListThatResetClears: {"couples"},
    OnTheClassThatResetClears: {"couples"},
    InADefault: {"couples"},
    InTheThread: {"couples"},
    OneInside: {"couples"},
    GoalInTheModule: {"couples"},
    PlanInTheModule: {"couples"},
    ClearedByItsConstructor: {"leaks"},
    OwnNumbersOfAnEpisode: {"episode_clean"},
    ClearsAtStepZero: {"episode_clean"},
    PlansByStep: {"episode_clean"},
    PlansChunksByStep: {"episode_clean"},
    RecurrentByStep: {"episode_clean"},
    KeepsBesidesTheStep: {"leaks"},
}
