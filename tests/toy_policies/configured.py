"""A dataclass with string annotations, which looks itself up in `sys.modules` while the file runs."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Settings:
    gain: float = 1.0
    joints: list[str] = field(default_factory=list)


class Policy:
    def __init__(self):
        self.settings = Settings(joints=["wrist"])

    def predict(self, obs):
        return int(obs[0] * self.settings.gain)
