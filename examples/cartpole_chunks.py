"""A policy that plans four actions a call; try it with --horizon 1, 2 and 4."""

import numpy as np


class Policy:
    """Pushes towards where the pole is falling, and keeps pushing for as long as the chunk is executed."""

    weights_of = np.array([0.1, 0.5, 1.0, 1.0], np.float32)
    length = 4

    def predict_chunk_batch(self, obs):
        now = (obs @ self.weights_of > 0).astype(np.int64)
        return np.repeat(now[:, None], self.length, axis=1)
