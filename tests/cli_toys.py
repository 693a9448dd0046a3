"""Small environments, rows and runs for the tests of the command line.

Named to the command as `cli_toys:Steps` and so on; `tests` itself is on the path.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from rlmesh_adapters.advisories import Advisory
from rlmesh_adapters.errors import HarnessError
from rlmesh_cli.episodes import EpisodeError, EpisodeResult, Seconds
from rlmesh_cli.evaluation import Evaluation
from rlmesh_cli.evaluation_command import Request, run
from rlmesh_cli.gates import GateVerdict
from rlmesh_cli.outcomes import SuccessRule
from rlmesh_cli.stats import summarise
from rlmesh_cli.tallies import Tally

IS_SUCCESS = SuccessRule(keys=("is_success",))
ROOT = Path(__file__).resolve().parent.parent

ZERO = "class Policy:\n    def predict(self, obs):\n        return 0\n"


class Steps(gym.Env):
    """Three steps that pay seed + t each; observations are [t, seed], and so are infos."""

    observation_space: spaces.Space = spaces.Box(-1e9, 1e9, (2,), np.float64)
    action_space: spaces.Space = spaces.Discrete(4)

    def __init__(self, length: int = 3, **kwargs: Any) -> None:
        self.length = length

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seed, self.t = seed, 0
        return np.array([0, seed], np.float64), {}

    def step(self, action):
        self.t += 1
        info = {"seed": self.seed, "is_success": self.t > 1}
        return np.array([self.t, self.seed], np.float64), float(self.seed + self.t), self.is_over, False, info

    @property
    def is_over(self) -> bool:
        return self.t >= self.length


class Boxed(Steps):
    """The same with actions of two floats."""

    action_space = spaces.Box(-1, 1, (2,), np.float32)


class Quads(Steps):
    """The same with actions of four floats."""

    action_space = spaces.Box(-1, 1, (4,), np.float32)


class Broken(Steps):
    """Every step raises; the text looks like markup."""

    def step(self, action):
        raise RuntimeError("[red]gear[/red] is broken")


class Unready(Steps):
    """Cannot be reset with seed 0."""

    def reset(self, *, seed=None, options=None):
        if seed == 0:
            raise RuntimeError("not ready")
        return super().reset(seed=seed, options=options)


class Unbuildable(Steps):
    """Cannot be made."""

    def __init__(self) -> None:
        raise OSError("no display")


class Quitter(Steps):
    """Leaves the process in its second step."""

    def step(self, action):
        if self.t == 1:
            raise SystemExit(0)
        return super().step(action)


class Rich(Steps):
    """Pays more than a float64 can add up."""

    def step(self, action):
        observation, _, *rest = super().step(action)
        return observation, 1e308, *rest


def row(index: int, **changes: Any) -> EpisodeResult:
    """Return a finished row of three steps; its return is index + 0.5 unless it is given."""
    values: dict[str, Any] = {
        "index": index,
        "seed": 100 + index,
        "episode_id": f"ep-{index + 1:06d}",
        "lane": 0,
        "length": 3,
        "return_": index + 0.5,
        "end": "terminated",
        "terminated": True,
        "truncated": False,
        "success": None,
        "success_final": None,
        "success_any": None,
        "success_at_reset": None,
        "success_source": None,
        "start_hash": f"{index:016x}",
        "trace_hash": "1" * 16,
        "policy_calls": 3,
        "clipped_actions": 0,
        "metrics": {},
        "error": None,
        "seconds": Seconds(env=0.1, policy=0.2, adapter=0.3, total=0.7),
    }
    return EpisodeResult(**{**values, **changes})


def errored(index: int, message: str = "RuntimeError: gear is broken", **changes: Any) -> EpisodeResult:
    """Return a row of an episode that broke in its second step."""
    error = EpisodeError(phase="step", step=1, message=message)
    return row(index, length=1, end="error", terminated=False, error=error, **changes)


def evaluation(
    rows: list[EpisodeResult],
    *,
    verdicts: list[GateVerdict] | None = None,
    advisories: tuple[Advisory, ...] = (),
    rule: SuccessRule = IS_SUCCESS,
    metrics: tuple[str, ...] = (),
    **changes: Any,
) -> Evaluation:
    """Return a run of such rows: a second of steps, a tenth of policy, half a second of resets, two in all."""
    values: dict[str, Any] = {
        "folder": Path("/nowhere/runs/the-run"),
        "status": "finished",
        "rows": rows,
        "summary": summarise(rows, planned=len(rows), rule=rule, metrics=metrics),
        "verdicts": verdicts or [],
        "advisories": advisories,
        "tally": Tally(steps=4000, calls=3000, rows=4000, step_seconds=0.5, reset_seconds=0.5, policy_seconds=0.2),
        "seconds": 2.0,
        "in_flight": 0,
        "seeded": True,
    }
    return Evaluation(**{**values, **changes})


def policy_file(folder: Path, text: str, name: str = "policy.py") -> str:
    """Write a policy file and return its path."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def play(folder: Path, policy: str, env: str | None = "cli_toys:Steps", **flags: Any) -> tuple[int, Path | None]:
    """Run `rlmesh eval` in this process; return its exit code and the run's folder, None if it made none."""
    out = flags.pop("out", folder / "runs")
    code = run(Request(policy=policy, env=env, out=out, **flags))
    made = sorted(out.iterdir()) if out.is_dir() else []
    assert len(made) <= 1, made
    return int(code), made[0] if made else None


class Refusals:
    """Asks for runs that cannot be had, and reads what is said about it.

    folder: where `--out` points into.
    """

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys

    def policy(self, text: str, **flags: Any) -> str:
        """Return the message about a policy file of that text."""
        return self.message(policy_file(self.folder, text), **{"episodes": 2, **flags})

    def route(self, text: str | bytes, **flags: Any) -> str:
        """Return the message about a route file of that text."""
        path = self.folder / "route.yaml"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return self.message(None, **{"env": None, "route": path, **flags})

    def message(self, policy: str | None, **flags: Any) -> str:
        """Return the only message of a run; it exits 2, has cause, place and mend, and leaves nothing."""
        self._capsys.readouterr()
        code, made = play(self.folder, policy, **flags)
        said = self._capsys.readouterr()
        assert (code, made, said.out) == (2, None, ""), (code, made, said)
        assert "Traceback" not in said.err, said.err
        assert [said.err.count(part) for part in ("rlmesh: ", "\n  at    ", "\n  mend  ")] == [1, 1, 1], said.err
        return said.err


def mended(error: HarnessError) -> HarnessError:
    """Return an error after having seen that it names cause, place and mend."""
    assert error.cause
    assert error.where
    assert error.mend
    return error
