"""Clean policies: what they do may look like memory or coupling, and is none. `VERDICTS` says what each is."""

from __future__ import annotations

import os
import random

import numpy as np

WEIGHTS = np.random.default_rng(7).normal(size=(4, 3))
HIDDEN = np.random.default_rng(8).normal(size=(4, 16))
OUT = np.random.default_rng(9).normal(size=(16, 3))


def act(obs):
    return np.asarray(obs, float) @ WEIGHTS


class Linear:
    def predict_batch(self, obs):
        return act(obs)


class Perceptron:
    def predict_batch(self, obs):
        return np.tanh(obs @ HIDDEN) @ OUT


class Memo:
    """Remembers what it computed, and answers the same as without."""

    def __init__(self):
        self.known = {}

    def predict(self, obs):
        return self.known.setdefault(obs.tobytes(), act(obs))


class Lazy:
    """Makes its weights when it is first asked."""

    def __init__(self):
        self.weights = None

    def predict(self, obs):
        if self.weights is None:
            self.weights = np.array(WEIGHTS)
        return obs @ self.weights


class Counts:
    """Keeps statistics of its calls that nothing comes of."""

    def __init__(self):
        self.calls, self.seen = 0, []

    def predict(self, obs):
        self.calls += 1
        self.seen.append(float(obs[0]))
        return act(obs)


class GlobalNoise:
    def predict(self, obs):
        return act(obs) + np.random.normal(0, 0.5, 3) + random.gauss(0, 0.1)


class OwnNoise:
    def __init__(self):
        self.rng = np.random.default_rng()

    def predict(self, obs):
        return act(obs) + self.rng.normal(0, 0.5, 3)


class ClosedOverNoise:
    def __init__(self):
        rng = np.random.default_rng()
        self.predict = lambda obs: act(obs) + rng.normal(0, 0.5, 3)


class EpisodeNoise:
    def predict(self, obs, context):
        return act(obs) + context.rng.normal(0, 0.5, 3)


class EpisodeNoiseByBatch:
    """Noise of each row's own episode, whatever place the row has."""

    def predict_batch(self, obs, context):
        return act(obs) + np.stack([one.rng.normal(0, 0.5, 3) for one in context])


class NoiseByBatch:
    """Draws for the whole batch at once, as samplers do: the numbers go by place."""

    def predict_batch(self, obs):
        return act(obs) + np.random.normal(0, 0.5, (len(obs), 3)) + random.gauss(0, 0.1)


class OwnNoiseByBatch:
    def __init__(self):
        self.rng = np.random.default_rng()

    def predict_batch(self, obs):
        return act(obs) + self.rng.normal(0, 0.5, (len(obs), 3))


class TwoDrawsByBatch:
    """What a row's second draw is depends on how many rows there are."""

    def predict_batch(self, obs):
        return act(obs) + np.random.normal(0, 0.5, (len(obs), 3)) * np.random.uniform(1, 2, (len(obs), 1))


class HiddenNoiseByBatch:
    def predict_batch(self, obs):
        drawn = np.frombuffer(os.urandom(8 * obs.shape[0] * 3), np.uint64).reshape(-1, 3) / 2.0**64
        return act(obs) + drawn - 0.5


class SamplesByBatch:
    """Chooses by chance, by scores and noise of Gumbel's."""

    is_discrete = True

    def predict_batch(self, obs):
        return (act(obs) + np.random.gumbel(size=(len(obs), 3))).argmax(1)


class HiddenNoise:
    """Draws from the operating system, which nobody can seed."""

    def predict(self, obs):
        drawn = np.frombuffer(os.urandom(24), np.uint64) / 2.0**64
        return act(obs) + drawn - 0.5


class Jitter:
    """As an accelerator that adds in another order each time."""

    def predict_batch(self, obs):
        drawn = np.frombuffer(os.urandom(8 * obs.shape[0] * 3), np.uint64).reshape(-1, 3) / 2.0**64
        return act(obs) * (1 + 1e-6 * (drawn - 0.5))


class Large:
    def predict_batch(self, obs):
        return act(obs) * 1e7


class Small:
    def predict_batch(self, obs):
        return act(obs) * 1e-9


class Scores:
    is_discrete = True

    def predict_batch(self, obs):
        return act(obs).argmax(1)


class Chunks:
    horizon = 4

    def predict_chunk_batch(self, obs):
        return np.repeat(act(obs)[:, None], 4, axis=1) * np.arange(1, 5)[None, :, None]


class PassesState:
    """Recurrent, and hands its state back."""

    def predict(self, obs, state=None):
        hidden = np.tanh(act(obs) + 0.5 * (np.zeros(3) if state is None else state))
        return hidden, hidden


class SwitchedOff:
    """Dropout that its eval mode switches off."""

    def __init__(self):
        self.training = True

    def eval(self):
        self.training = False

    def train(self, mode=True):
        self.training = mode

    def predict(self, obs):
        keep = np.random.random(4) > 0.5 if self.training else np.ones(4)
        return act(obs * keep)


class HasReset:
    """Is told to reset, and has nothing to forget."""

    def reset(self):
        pass

    def predict_batch(self, obs):
        return act(obs)


class TellsTime:
    """Goes by the step it is told, not by one it counts."""

    def predict(self, obs, context):
        return act(obs) + context.step


class ChangesByStep:
    """Stands still at first, then acts the other way at every second step."""

    def predict_batch(self, obs, context):
        return np.array(
            [act(row) * (one.step > 2) * (-1) ** one.step for row, one in zip(obs, context, strict=True)]
        )


class PreparesAtStepZero:
    def predict(self, obs, context):
        if context.step == 0:
            self.weights = np.array(WEIGHTS)
        return obs @ self.weights


class DrawsInReset:
    def reset(self):
        self.latent = np.random.normal(0, 0.5, 3)

    def predict(self, obs):
        return act(obs) + self.latent


class DrawsOnInReset:
    def __init__(self):
        self.rng = np.random.default_rng(0)

    def reset(self):
        self.latent = self.rng.normal(0, 0.5, 3)

    def predict_batch(self, obs):
        return act(obs) + self.latent


RNG = random.Random(0)


class DrawsAtFirst:
    def reset(self):
        self.latent = None

    def predict(self, obs):
        if self.latent is None:
            self.latent = RNG.gauss(0, 0.5)
        return act(obs) + self.latent


class DrawsOnceForGood:
    latent = None

    def predict(self, obs):
        if self.latent is None:
            self.latent = np.random.normal(0, 0.5, 3)
        return act(obs) + self.latent


class DrawsInResetAndAlways:
    """What its reset draws shifts what its first call draws."""

    def reset(self):
        self.latent = np.random.normal(0, 0.5, 3)

    def predict(self, obs):
        return act(obs) + self.latent + np.random.normal(0, 0.5, 3)


class SeedsInResetAndDraws:
    def reset(self):
        np.random.seed(0)

    def predict(self, obs):
        return act(obs) + np.random.normal(0, 0.5, 3)


class SeedsByEpisode:
    """Its latent is that of the episode's seed, wherever it is played."""

    def reset(self, context):
        np.random.seed(context.seed)
        self.latent = np.random.normal(0, 0.5, 3)

    def predict(self, obs):
        return act(obs) + self.latent


class EpisodeLatent:
    def reset(self, context):
        self.latent = context.rng.normal(0, 0.5, 3)

    def predict(self, obs, context):
        return act(obs) + self.latent + context.rng.normal(0, 0.5, 3)


class Chooses:
    is_discrete = True

    def predict(self, obs):
        return int(np.argmax(act(obs)))


class Named:
    """Gives an action of several parts."""

    is_named = True

    def predict_batch(self, obs):
        scores = act(obs)
        return {"arm": scores, "hand": scores.argmax(1)}


VERDICTS = {
    Linear: {"stateless"},
    Perceptron: {"stateless"},
    Memo: {"stateless"},
    Lazy: {"stateless"},
    Counts: {"stateless"},
    GlobalNoise: {"stochastic"},
    OwnNoise: {"stochastic"},
    ClosedOverNoise: {"stochastic"},
    EpisodeNoise: {"stateless", "stochastic"},
    EpisodeNoiseByBatch: {"stateless", "stochastic"},
    HiddenNoise: {"stochastic"},
    NoiseByBatch: {"stochastic"},
    OwnNoiseByBatch: {"stochastic"},
    TwoDrawsByBatch: {"stochastic"},
    HiddenNoiseByBatch: {"stochastic"},
    SamplesByBatch: {"stochastic"},
    Jitter: {"stateless"},
    Large: {"stateless"},
    Small: {"stateless"},
    Scores: {"stateless"},
    Chunks: {"stateless"},
    PassesState: {"stateless"},
    SwitchedOff: {"stateless"},
    HasReset: {"stateless"},
    TellsTime: {"stateless"},
    ChangesByStep: {"stateless"},
    PreparesAtStepZero: {"stateless"},
    DrawsInReset: {"stochastic"},
    DrawsOnInReset: {"stochastic"},
    DrawsAtFirst: {"stochastic"},
    DrawsOnceForGood: {"stochastic"},
    DrawsInResetAndAlways: {"stochastic"},
    SeedsInResetAndDraws: {"stochastic"},
    SeedsByEpisode: {"stateless"},
    EpisodeLatent: {"stateless", "stochastic"},
    Chooses: {"stateless"},
    Named: {"stateless"},
}
