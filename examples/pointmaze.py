"""A maze policy: position, velocity and goal in one flat state, a force out."""

import numpy as np

#: The corner that joins the two arms of the U.
CORNER_X = 1.0


class Policy:
    """Goes round the corner if the goal lies in the other arm, then straight to it."""

    spec = {  # noqa: RUF012 - plain data
        "input": {"type": "state", "components": ["x/point", "x/goal"]},
        "output": {"components": [{"role": "x/force", "dim": 2, "range": [-1.0, 1.0]}]},
    }

    def predict_batch(self, obs: np.ndarray) -> np.ndarray:
        """Return (M, 2) forces for (M, 6) states: x, y, their velocities, x and y of the goal."""
        place, speed, goal = obs[:, :2], obs[:, 2:4], obs[:, 4:]
        elsewhere = np.abs(goal[:, 1] - place[:, 1]) > 0.7
        at_corner = place[:, 0] > CORNER_X - 0.35
        # Along the arm to its end, then along the short side.
        height = np.where(at_corner, goal[:, 1], place[:, 1])
        round_the_corner = np.stack([np.full(len(obs), CORNER_X), height], 1)
        target = np.where(elsewhere[:, None], round_the_corner, goal)
        return np.clip(10 * (target - place) - 2 * speed, -1, 1)
