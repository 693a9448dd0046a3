"""Policies that plan chunks from what they see."""

import time

import numpy as np


class Clock:
    """Plans eight actions from [t, seed]."""

    def predict_chunk_batch(self, obs):
        return ((obs.sum(-1)[:, None] + np.arange(8)) % 32).astype(np.int64)


class Ragged:
    """Plans 8 actions at the start of an episode, and later 3 to 8 by the step that it sees."""

    def predict_chunk(self, obs):
        t, seed = obs
        length = 8 if t == 0 else 3 + int(t + seed) % 6
        return ((t + seed + np.arange(length)) % 32).astype(np.int64)


class Parting:
    """Plans eight actions, but five of seed 0 at step 8."""

    def predict_chunk_batch(self, obs):
        return [np.arange(5 if tuple(seen) == (8, 0) else 8) for seen in obs]


class Seeing:
    """Plans eight actions from the frame alone; garbage is refused."""

    def predict_chunk_batch(self, obs):
        seen = obs["pixels"].reshape(len(obs["pixels"]), -1)
        assert (seen.max(-1) == seen.min(-1)).all()
        assert (seen < 254).all(), "read a frame that was left out"
        return ((seen[:, :1].astype(np.int64) + np.arange(8)) % 32).astype(np.int64)


class Glancing:
    """Plans eight actions from the first frame of an episode, and one to eight from later ones."""

    def predict_chunk(self, obs):
        seen = int(obs["pixels"][0, 0, 0])
        assert seen < 254, "read a frame that was left out"
        length = 8 if obs["state"][0] == 0 else 1 + seen % 8
        return (seen + np.arange(length)) % 32


class Slow(Seeing):
    """Takes `seconds` for a call."""

    def __init__(self, seconds):
        self.seconds = seconds

    def predict_chunk_batch(self, obs):
        time.sleep(self.seconds)
        return super().predict_chunk_batch(obs)


class Single(Seeing):
    """Plans eight, and offers one action by itself."""

    def predict_batch(self, obs):
        return self.predict_chunk_batch(obs)[:, 0]
