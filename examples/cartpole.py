"""A linear policy that keeps CartPole-v1 up for all of its 500 steps."""

import numpy as np


class Policy:
    """Pushes towards where the pole is falling."""

    weights_of = np.array([0.1, 0.5, 1.0, 1.0], np.float32)

    def predict_batch(self, obs):
        return (obs @ self.weights_of > 0).astype(np.int64)
