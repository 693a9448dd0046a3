"""Policies for CartPole, one for each verdict of the probe."""

from __future__ import annotations

import contextlib
import random
import threading
import time

import numpy as np


def lean(obs):
    return (np.atleast_2d(obs)[:, 2] + np.atleast_2d(obs)[:, 3] > 0).astype(int)


class Clean:
    def predict_batch(self, obs):
        return lean(obs)


class Noisy:
    def predict(self, obs):
        return int(random.random() < 0.5)


class Recurrent:
    def __init__(self):
        self.steps = 0

    def reset(self):
        self.steps = 0

    def predict(self, obs):
        self.steps += 1
        return self.steps % 2


class Leaking(Recurrent):
    def reset(self):
        pass


class OnTheClass:
    steps = 0

    def predict(self, obs):
        type(self).steps += 1
        return self.steps % 2


class Coupled:
    def predict_batch(self, obs):
        return (obs[:, 2] > np.median(obs[:, 2])).astype(int)


class Wrong:
    def predict(self, obs):
        return 7


class Normalising:
    """Its first answers are those of a fresh one; after what it has seen they are not."""

    def __init__(self):
        self.count, self.mean = 0, 0.0

    def predict(self, obs):
        self.count += 1
        self.mean += (float(obs[3]) - self.mean) / self.count
        return int(obs[3] >= self.mean)


class Net:
    def __init__(self):
        self.training = True

    def eval(self):
        self.training = False

    def train(self, mode=True):
        self.training = mode


class InTraining:
    def __init__(self):
        self.net = Net()

    def predict(self, obs):
        return random.randrange(2) if self.net.training else int(lean(obs)[0])


class CountingChunks:
    def __init__(self):
        self.calls = 0

    def predict(self, obs):
        return int(lean(obs)[0])

    def predict_chunk(self, obs):
        self.calls += 1
        return [self.calls % 2] * 4


class Unbuildable:
    def __init__(self):
        raise RuntimeError("no weights here")


class Loud:
    def predict(self, obs):
        print("thinking")  # noqa: T201
        return int(lean(obs)[0])


class Deadlocked:
    """Waits, from its third call on, for a lock that it holds."""

    def __init__(self):
        self.lock, self.calls = threading.Lock(), 0

    def predict(self, obs):
        self.calls += 1
        if self.calls > 2:
            self.lock.acquire()
            with contextlib.suppress(Exception):
                self.lock.acquire()  # this line
        return int(lean(obs)[0])


class Slow:
    def predict(self, obs):
        time.sleep(0.01)
        return int(lean(obs)[0])
