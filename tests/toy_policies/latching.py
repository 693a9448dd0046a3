"""Policies whose first observation decides every answer: kept on the class, in the module, on the one object."""

import numpy as np

first = None


def difference(obs, kept):
    return np.array([np.clip(obs[0] - kept[0], -2, 2)], np.float32)


class OnTheClass:
    first = None

    def predict(self, obs):
        if OnTheClass.first is None:
            OnTheClass.first = obs.copy()
        return difference(obs, OnTheClass.first)


class InTheModule:
    def predict(self, obs):
        global first
        if first is None:
            first = obs.copy()
        return difference(obs, first)


class Own:
    first = None

    def predict(self, obs):
        if self.first is None:
            self.first = obs.copy()
        return difference(obs, self.first)


agent = Own()


class Harmless:
    def predict(self, obs):
        return np.array([np.clip(-obs[1], -2, 2)], np.float32)


harmless = Harmless()
