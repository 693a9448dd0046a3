"""`rlmesh explain`: what will happen to every number, in order, without a step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from typer.testing import CliRunner

from rlmesh_cli.app import app

ROOT = Path(__file__).resolve().parents[2]

TAGS = """
env_tags:
  observation:
    camera: {type: image, role: image/primary, upside_down: true}
    depth: {type: image, role: image/secondary}
    hand: {type: state, role: proprio/eef_rot, encoding: quat_wxyz}
    joints: {type: state, role: proprio/joint_pos, range: [0, 2]}
    task: {type: text, role: text/instruction}
  action:
    clip: [-1, 1]
    components:
      - {role: action/delta_eef_rot, dim: 3, encoding: axis_angle}
      - {role: action/gripper, dim: 1, range: [-1, 1], invert: true}
      - {dim: 1, fill: 0.5}
"""
SPEC = """
model_spec:
  input:
    eye:
      {type: image, role: image/primary, height: 4, width: 4, layout: chw, dtype: float32, normalize: [-1, 1],
       lead_dims: 1, stack: 2, fit: crop}
    body:
      type: state
      pad_to: 9
      components:
        - {role: proprio/eef_rot, encoding: rot6d}
        - {role: proprio/joint_pos, index: 1, range: [-1, 1]}
        - {role: proprio/gripper, dim: 1, optional: true}
    words: {type: text, role: text/instruction, container: list}
  output:
    components:
      - {role: action/delta_eef_rot, dim: 6, encoding: rot6d}
      - {role: action/gripper, dim: 1, range: [0, 1], binary: true, scale: 2}
"""


class Still(gym.Env[Any, Any]):
    """Has spaces, and must not be used."""

    metadata = {"render_modes": []}  # noqa: RUF012
    observation_space = gym.spaces.Dict(
        {
            "camera": gym.spaces.Box(0, 255, (8, 6, 3), np.uint8),
            "depth": gym.spaces.Box(0, 255, (8, 6, 1), np.uint8),
            "hand": gym.spaces.Box(-1, 1, (4,), np.float32),
            "joints": gym.spaces.Box(0, 2, (3,), np.float32),
            "task": gym.spaces.Text(20),
        }
    )
    action_space = gym.spaces.Box(-1, 1, (5,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        raise AssertionError("reset")

    def step(self, action: Any) -> Any:
        raise AssertionError("step")


gym.register("ExplainStill-v0", entry_point=Still, max_episode_steps=10)


@pytest.fixture
def route(tmp_path: Path) -> str:
    pytest.importorskip("cv2")
    (tmp_path / "policy.py").write_text(
        "class Policy:\n    def predict_batch(self, obs):\n        raise AssertionError('asked')\n"
    )
    head = "version: 1\nenv: {id: ExplainStill-v0}\npolicy: {source: policy.py}\n"
    (tmp_path / "route.yaml").write_text(head + TAGS + SPEC)
    return str(tmp_path / "route.yaml")


def rlmesh(*words: str, columns: int = 140) -> Any:
    return CliRunner(env={"COLUMNS": str(columns)}).invoke(app, list(words))


def test_every_transform_has_its_line_in_order(route):
    result = rlmesh("explain", "--route", route, "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["schema"] == "rlmesh.explain.v1"
    inputs = {part["target"]: part for part in told["inputs"]}
    assert inputs["eye"]["shape"] == "float32[2, 1, 3, 4, 4]"
    assert inputs["eye"]["steps"] == [
        "camera, image/primary: 8x6, 3 channels",
        "turned by 180 degrees",
        "resized to 4x4 by bilinear, edges cut off",
        "(0, 255) to (-1, 1)",
        "hwc to chw",
        "an axis of size 1 in front",
        "the last 2 frames, the oldest first",
    ]
    assert inputs["body"]["shape"] == "float32[9]"
    assert inputs["body"]["steps"] == [
        "proprio/eef_rot from hand, quat_wxyz to rot6d",
        "proprio/joint_pos from joints, only number 1, (0, 2) to (-1, 1)",
        "proprio/gripper: 1 zeros, the environment has none",
        "1 zeros, up to 9",
    ]
    assert inputs["words"] == {
        "target": "words",
        "shape": "list of one text",
        "steps": ["task, text/instruction"],
    }
    action = {part["target"]: part["steps"] for part in told["action"]}
    assert action["action/delta_eef_rot"] == ["model[0:6]", "rot6d to axis_angle"]
    assert action["action/gripper"] == [
        "model[6:7]",
        "(0, 1) to (-1, 1)",
        "* 2 (the model's scale)",
        "negated (the environment's invert)",
        "snapped to -1 or +1",
    ]
    assert action["(no role)"] == ["always 0.5: nobody drives it"]
    assert action["the whole action"] == ["clipped to (-1, 1)", "clipped into the space, as float32"]
    assert told["unused"] == ["image/secondary"]
    assert {note["code"] for note in told["advisories"]} == {"camera-cropped", "state-zero-filled"}


@pytest.mark.parametrize("columns", [80, 140])
def test_screen_shows_it_within_its_width(route, columns):
    result = rlmesh("explain", "--route", route, columns=columns)
    assert result.exit_code == 0
    assert max(map(len, result.output.splitlines())) <= columns
    flat = " ".join(result.output.split())
    for words in ("turned by 180 degrees", "the model does not ask for: image/secondary", "caution"):
        assert words in flat


def test_route_without_documents_says_so():
    result = rlmesh(
        "explain", str(ROOT / "examples" / "cartpole_chunks.py"), "--env", "CartPole-v1", "--horizon", "4"
    )
    assert result.exit_code == 0
    assert "The policy sees raw observations" in result.output
    assert "4 actions a call" in result.output


def test_example_route_is_explained_as_its_comment_says():
    result = rlmesh("explain", "--route", str(ROOT / "examples" / "cartpole_tagged.yaml"))
    assert result.exit_code == 0
    assert "the place of the largest of 2" in result.output


def test_what_cannot_be_resolved_is_one_message(route):
    text = Path(route).read_text().replace("rot6d}", "rot9d}")
    Path(route).write_text(text)
    result = rlmesh("explain", "--route", route)
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    assert "rot9d" in result.output
