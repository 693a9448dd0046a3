"""A grid-world policy: the view, the direction and the mission in, one of seven actions out."""

import numpy as np

GOAL = 8
LEFT, RIGHT, FORWARD = 0, 1, 2
#: Where the agent stands in its own view, which reaches seven cells ahead and three to each side.
COLUMN, ROW = 3, 6


class Policy:
    """Walks to the goal as soon as it sees it; turns on the spot until then."""

    spec = {  # noqa: RUF012 - plain data
        "input": {
            "view": {"type": "image", "role": "image/primary"},
            "heading": {"type": "state", "components": ["x/direction"], "dtype": "int64"},
            "mission": {"type": "text", "role": "text/instruction"},
        },
        "output": {"components": [{"role": "x/move", "dim": 1, "select": "index"}]},
    }

    def predict_batch(self, obs: dict) -> np.ndarray:
        """Return (M, 1) actions for views (M, 7, 7, 3), headings (M, 1) and M missions."""
        rows = zip(obs["view"], obs["mission"], strict=True)
        return np.array([[self.move(view) if "goal" in mission else RIGHT] for view, mission in rows])

    def move(self, view: np.ndarray) -> int:
        """Return the action for one view."""
        found = np.argwhere(view[:, :, 0] == GOAL)
        if not len(found):
            return RIGHT
        column, row = found[0]
        if row < ROW:
            return FORWARD
        return LEFT if column < COLUMN else RIGHT
