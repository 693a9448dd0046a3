"""A replay of a real environment as a video: its frames are those that the environment draws."""

from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from films import decoded

from rlmesh_cli import replay_command
from rlmesh_cli.evaluation_command import Request, run
from rlmesh_cli.exits import Exit

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore")]

ROUTE = Path(__file__).parents[2] / "examples" / "minigrid.yaml"


def test_video_shows_what_the_environment_draws(tmp_path):
    assert run(Request(route=ROUTE, episodes=3, num_envs=2, out=tmp_path, quiet=True)) is Exit.DONE
    path = tmp_path / "seen.mp4"
    asked = replay_command.ReplayRequest(run="latest", episode="2", out=tmp_path, render="video", video=path)
    assert replay_command.run(asked) is Exit.DONE
    frames = [frame.astype(float) for frame in decoded(path).frames]
    stored = replay_command.read_run(replay_command.find_run("latest", tmp_path))
    row, env_id = stored.rows[2], stored.record["route"]["env"]["id"]
    assert len(frames) == row.length + 1
    with gym.make(env_id, render_mode="rgb_array") as env:
        env.reset(seed=row.seed)
        drawn = env.render()
    assert np.abs(frames[0] - drawn).mean() < 6
