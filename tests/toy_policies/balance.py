"""Keeps the pole of CartPole up for all of its 500 steps."""

import numpy as np


class Policy:
    def predict_batch(self, obs):
        return (obs @ np.array([0.1, 0.5, 1, 1], np.float32) > 0).astype(np.int64)
