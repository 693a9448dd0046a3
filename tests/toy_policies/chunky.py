"""Plans five actions at a time, each by the time it will be executed at."""

import numpy as np


class Policy:
    def predict_chunk_batch(self, obs):
        return (obs[:, :1].astype(np.int64) + np.arange(5)) % 32
