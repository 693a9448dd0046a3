"""A pixel policy that plans chunks: it finds the block in the image and pushes it towards the middle."""

import numpy as np

#: The image is cut into so many steps from edge to edge, of which the middle is 0.
EDGE = 1.0
BLOCK = np.array([0.47, 0.53, 0.6], np.float32)
REACH = 0.28


class Policy:
    """Goes behind the block, then pushes it towards the goal in the middle; eight steps are planned at a time."""

    spec = {  # noqa: RUF012 - plain data
        "input": {
            "image": {
                "type": "image",
                "role": "image/primary",
                "height": 64,
                "width": 64,
                "layout": "chw",
                "dtype": "float32",
                "normalize": True,
                "resample": "bilinear_aa",
            },
            "agent": {"type": "state", "components": [{"role": "x/agent", "range": [-1.0, 1.0]}]},
        },
        "output": {"components": [{"role": "x/target", "dim": 2, "range": [-1.0, 1.0]}]},
    }

    def predict_chunk_batch(self, obs: dict, horizon: int) -> np.ndarray:
        """Return (M, horizon, 2) targets in [-1, 1] for images (M, 3, 64, 64) and positions (M, 2)."""
        pairs = zip(obs["image"], obs["agent"], strict=True)
        return np.stack([self.plan(image, agent, horizon) for image, agent in pairs])

    def plan(self, image: np.ndarray, agent: np.ndarray, horizon: int) -> np.ndarray:
        """Return the next targets of one lane."""
        block = self.find_block(image)
        towards = -block
        distance = float(np.linalg.norm(towards))
        if distance < 0.03:
            return np.repeat(agent[None], horizon, 0)
        towards = towards / distance
        behind = block - REACH * towards
        if np.linalg.norm(agent - behind) < 0.12 or self.is_behind(agent, block, towards):
            goal = block + towards * 0.1
        elif (agent - block) @ towards > -0.1:
            # On the wrong side: round the block first.
            side = np.array([-towards[1], towards[0]])
            side = side if (agent - block) @ side > 0 else -side
            goal = block + REACH * 1.3 * side - 0.1 * towards
        else:
            goal = behind
        steps = np.linspace(0.25, 1, horizon)[:, None]
        return np.clip(agent + steps * (goal - agent), -1, 1)

    def is_behind(self, agent: np.ndarray, block: np.ndarray, towards: np.ndarray) -> bool:
        """Tell whether a straight push from here moves the block where it should go."""
        offset = agent - block
        along = offset @ towards
        return bool(along < -0.1 and np.linalg.norm(offset - along * towards) < 0.1)

    def find_block(self, image: np.ndarray) -> np.ndarray:
        """Return the middle of the grey block, x and y in [-1, 1]."""
        mask = np.abs(image - BLOCK[:, None, None]).sum(0) < 0.25
        if not mask.any():
            return np.zeros(2)
        rows, columns = np.nonzero(mask)
        size = image.shape[1]
        return np.array([columns.mean(), rows.mean()]) / (size - 1) * 2 - 1
