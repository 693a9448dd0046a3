"""Answers that do not fit a discrete action space, one class a fault."""

import numpy as np


class OneForAll:
    def predict_batch(self, obs):
        return np.array([0])


class Column:
    def predict_batch(self, obs):
        return np.zeros((len(obs), 1), np.int64)


class Fractions:
    def predict_batch(self, obs):
        return np.full(len(obs), 0.5)


class WholeFloats:
    def predict_batch(self, obs):
        return np.full(len(obs), 2.0)


class TooLarge:
    def predict_batch(self, obs):
        return np.full(len(obs), 99)


class Nothing:
    def predict(self, obs):
        return None


class Words:
    def predict(self, obs):
        return "left"
