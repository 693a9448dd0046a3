"""A newcomer's first commands, on environments that people use."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import pytest
import yaml
from typer.testing import CliRunner

from rlmesh_cli.app import app
from rlmesh_envs.listing import ids_of

# gymnasium and its plugins warn about their own versions and renderers
pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore")]

ENVIRONMENTS = {
    "gym_pusht/PushT-v0": ("gym_pusht", ["--env-arg", "obs_type=pixels_agent_pos"]),
    "MiniGrid-Empty-5x5-v0": ("minigrid", []),
    "PointMaze_UMaze-v3": ("gymnasium_robotics", []),
    "Ant-v5": ("mujoco", []),
}


@pytest.mark.parametrize("tags", [[], ["--tags"]], ids=["plain", "tags"])
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_what_init_writes_is_played_probed_and_explained(tmp_path, monkeypatch, name, tags):
    module, arguments = ENVIRONMENTS[name]
    pytest.importorskip(module)
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    done = runner.invoke(app, ["init", "--env", name, *arguments, *tags])
    assert done.exit_code == 0, done.output
    for command in (["eval", "--episodes", "4"], ["probe"], ["explain"]):
        done = runner.invoke(app, [command[0], "--route", "route.yaml", *command[1:]])
        assert done.exit_code == 0, done.output
    route = yaml.safe_load(Path("route.yaml").read_text(encoding="utf-8"))
    assert route["env"]["imports"] == ([] if module == "mujoco" else [module])
    assert ("env_tags" in route) == bool(tags)


def test_the_camera_and_the_target_of_pusht_are_recognised(tmp_path):
    pytest.importorskip("gym_pusht")
    name, (_, arguments) = next(iter(ENVIRONMENTS.items()))
    CliRunner().invoke(app, ["init", "--env", name, *arguments, "--tags", "--dir", str(tmp_path)])
    route = yaml.safe_load((tmp_path / "route.yaml").read_text(encoding="utf-8"))
    assert route["env_tags"] == {
        "observation": {
            "agent_pos": {"type": "state", "role": "x/agent"},
            "pixels": {"type": "image", "role": "image/primary", "layout": "hwc"},
        },
        "action": {"components": [{"role": "x/target", "dim": 2}]},
    }
    assert route["success"] == {"key": "is_success", "when": "final"}


@pytest.mark.parametrize("module", ["gym_pusht", "minigrid", "gymnasium_robotics"])
def test_ids_that_are_completed_are_registered_by_their_packages(module):
    gymnasium.register_envs(pytest.importorskip(module))
    listed = set(ids_of(module))
    assert listed
    assert listed <= set(gymnasium.registry)
