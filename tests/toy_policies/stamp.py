"""For Stamped: actions say in which episode, at which t and at which place of the chunk they were planned."""

import numpy as np


def _stamps(obs, length):
    return np.array([[obs[1], obs[0], place] for place in range(length)], np.int64)


class Policy:
    def predict_chunk(self, obs):
        return _stamps(obs, 8)


class Batched:
    def predict_chunk_batch(self, obs):
        return np.stack([_stamps(row, 8) for row in obs])


class Uneven:
    """Chunks of 6 and more in the first call, of 1 to 4 actions afterwards, by seed and t."""

    def predict_chunk(self, obs):
        return _stamps(obs, 6 if obs[0] == 0 else 1 + int(obs[0] + obs[1]) % 4)


class Faulty:
    """Plans chunks of 8, but raises at t = 4 of every third seed."""

    def predict_chunk_batch(self, obs):
        if ((obs[:, 0] == 4) & (obs[:, 1] % 3 == 0)).any():
            raise ValueError("cannot plan from here")
        return np.stack([_stamps(row, 8) for row in obs])
