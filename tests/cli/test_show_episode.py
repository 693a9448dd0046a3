"""`rlmesh show --episode`: one episode's facts, and its rewards and actions, from the run or played again."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from cli_toys import Steps, play, policy_file
from gymnasium import spaces
from rich.cells import cell_len
from typer.testing import CliRunner

from rlmesh_adapters.errors import HarnessError
from rlmesh_cli.app import app
from rlmesh_cli.episode_traces import bounds_in

HERE = __name__


class Walk(Steps):
    """Eight steps that pay their number, and ask for two numbers in bounds of their own."""

    action_space = spaces.Box(np.array([-1, -2], np.float32), np.array([1, 3], np.float32))

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(length=8)

    def step(self, action):
        observation, _, *rest = super().step(action)
        return observation, float(self.t), *rest


class Arm(Steps):
    """Actions of two leaves, one of them whole."""

    action_space = spaces.Dict({"arm": spaces.Box(-1, 1, (2,), np.float32), "grip": spaces.Discrete(2)})


class Named(Steps):
    """Actions whose names are wide, or would end a line."""

    action_space = spaces.Dict({name: spaces.Discrete(2) for name in ("腕", "a\nb", "\x1b[31mred")})


WALKING = """
import os
import numpy as np

class Policy:
    def predict(self, obs):
        return np.array([obs[0] - float(os.environ.get("SHIFT", "2")), obs[0] / 4], np.float32)
"""
GRIPPING = """
import numpy as np

class Policy:
    def predict(self, obs):
        return {"arm": np.array([0.5, -1], np.float32), "grip": int(obs[0] > 0)}
"""


@pytest.fixture(autouse=True)
def locale(monkeypatch):
    monkeypatch.setenv("LC_ALL", "C.UTF-8")


@pytest.fixture
def walked(tmp_path) -> Path:
    code, folder = play(tmp_path, policy_file(tmp_path, WALKING), f"{HERE}:Walk", episodes=3, quiet=True)
    assert code == 0
    assert folder is not None
    return folder


def show(folder: Path, episode: object, *arguments: object, code: int = 0, columns: int = 100) -> str:
    words = ["show", str(folder), "--episode", str(episode), *map(str, arguments)]
    result = CliRunner().invoke(app, words, env={"COLUMNS": str(columns)})
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 else result.stdout + "\n---\n" + result.stderr


def squeezed(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_facts_are_those_of_the_row(walked):
    row = json.loads((walked / "episodes.jsonl").read_text().splitlines()[1])
    lines = squeezed(show(walked, 1))
    for line in (
        f"episode 1 of {walked.name}",
        "id ep-000002",
        "seed 1",
        "length 8",
        "return 36",
        "end terminated",
        "success yes (is_success)",
        "policy asked 8 times",
        "clipped 5 of 8 actions",
        f"hashes start {row['start_hash']}, trace {row['trace_hash']}",
    ):
        assert line in lines


def test_episode_is_played_again_and_drawn(walked):
    lines = squeezed(show(walked, "ep-000002"))
    assert "rewards and actions of 8 steps, played again: the trace is the same" in lines
    assert "reward ▂▄▆█ 1 to 8" in lines
    assert "sum ▂▅█ 1 to 36" in lines
    # -2, -1, 0, 1, 2 ... cut into [-1, 1]; t / 4 in [-2, 3].
    assert "action[0] ▁▁▅█████ -1 to 1" in lines
    assert "vv ^^^^^ at a bound 88 %" in lines
    assert "action[1] ▁▂▃▄▅▆▇█ 0 to 1.75" in lines
    assert "^ at the upper bound, v at the lower, x at both" in lines


def test_ascii_where_blocks_cannot_be_shown(walked, monkeypatch):
    monkeypatch.setenv("LC_ALL", "C")
    text = show(walked, 1)
    assert text.isascii()
    assert "action[1] _.-=+*%# 0 to 1.75" in squeezed(text)


def test_json_has_the_numbers(walked):
    record = json.loads(show(walked, 1, "--json"))
    assert (record["schema"], record["index"], record["source"]) == ("rlmesh.episode.v1", 1, "replay")
    assert record["rewards"] == [1, 2, 3, 4, 5, 6, 7, 8]
    first, second = record["actions"]
    assert first == {"name": "action[0]", "low": -1, "high": 1, "values": [-1, -1, 0, 1, 1, 1, 1, 1]}
    assert (second["low"], second["high"]) == (-2, 3)
    assert second["values"] == [0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75]
    assert record["row"]["episode_id"] == "ep-000002"
    assert record["notes"] == []


def test_leaves_of_an_action_have_their_names(tmp_path):
    _, folder = play(tmp_path, policy_file(tmp_path, GRIPPING), f"{HERE}:Arm", episodes=1, quiet=True)
    assert folder is not None
    record = json.loads(show(folder, 0, "--json"))
    assert [(one["name"], one["low"], one["high"], one["values"]) for one in record["actions"]] == [
        ("action.arm[0]", -1, 1, [0.5] * 3),
        ("action.arm[1]", -1, 1, [-1] * 3),
        ("action.grip", None, None, [0, 1, 1]),
    ]
    lines = squeezed(show(folder, 0))
    assert "action.arm[0] ▁▁▁ always 0.50" in lines
    assert "vvv at a bound 100 %" in lines


def test_pictures_stand_below_one_another_whatever_the_names(tmp_path):
    _, folder = play(tmp_path, "random", f"{HERE}:Named", episodes=1, quiet=True)
    assert folder is not None
    lines = show(folder, 0).splitlines()
    begins = {}
    for line in lines:
        name, _, rest = line[1:].partition(" ")
        if name.startswith("action."):
            begins[name] = cell_len(line) - cell_len(rest.lstrip())
    assert set(begins) == {"action.腕", r"action.a\nb", r"action.\x1b[31mred"}
    assert len(set(begins.values())) == 1


def fake_reader(monkeypatch, columns: dict[str, Any] | Exception) -> list[Path]:
    """Put a reader of step files in the place of the real one; return the files it was asked for."""
    asked: list[Path] = []

    def read_steps(path):
        asked.append(Path(path))
        if isinstance(columns, Exception):
            raise columns
        return columns

    module = ModuleType("rlmesh_cli.step_files")
    module.read_steps = read_steps  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "rlmesh_cli.step_files", module)
    return asked


def steps_of_walk(walked: Path, **changes: Any) -> dict[str, Any]:
    file = walked / "steps" / "ep-000002.parquet"
    file.parent.mkdir()
    file.write_bytes(b"")
    columns = {
        "t": np.arange(9, dtype=np.int32),
        "observation": np.zeros((9, 2)),
        "action": np.array([[0.5, at] for at in range(8)], np.float32),
        "reward": np.arange(1.0, 9.0),
        "terminated": np.zeros(9, bool),
    }
    return {**columns, **changes}


def test_steps_that_the_run_kept_are_shown_without_a_replay(walked, tmp_path, monkeypatch):
    asked = fake_reader(monkeypatch, steps_of_walk(walked))
    (tmp_path / "policy.py").unlink()
    lines = squeezed(show(walked, 1))
    assert asked == [walked / "steps" / "ep-000002.parquet"]
    assert "rewards and actions of 8 steps, as the run kept them in steps/" in lines
    assert "action[0] ▁▁▁▁▁▁▁▁ always 0.50" in lines
    assert json.loads(show(walked, 1, "--json"))["source"] == "steps"


def test_null_of_the_last_row_is_no_step(walked, monkeypatch):
    columns = steps_of_walk(walked)
    columns["reward"] = np.append(columns["reward"], np.nan)
    columns["action"] = np.append(columns["action"], [[np.nan, np.nan]], axis=0)
    fake_reader(monkeypatch, columns)
    record = json.loads(show(walked, 1, "--json"))
    assert (record["source"], record["rewards"]) == ("steps", [1, 2, 3, 4, 5, 6, 7, 8])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"reward": np.arange(3.0)}, "it has not the 8 steps of the episode"),
        ({"reward": np.zeros(8)}, "its rewards add up to 0.0, and the episode's return is 36.0"),
        ({"action": np.zeros((2, 2))}, "it has not the 8 steps of the episode"),
        ({"reward": np.array(["x"] * 8)}, "ValueError: could not convert string to float"),
    ],
)
def test_steps_that_are_not_of_the_episode_are_said_to_be_damaged(walked, monkeypatch, changes, words):
    fake_reader(monkeypatch, steps_of_walk(walked, **changes))
    text = " ".join(show(walked, 1, columns=300).split())
    assert "played again: the trace is the same" in text
    assert f"ep-000002.parquet is damaged: {words}" in text
    assert "so the episode was played again" in text


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (HarnessError("pyarrow is not there", where="steps", mend="install it"), "pyarrow is not there"),
        (ModuleNotFoundError("No module named 'pyarrow'"), "cannot be read: ModuleNotFoundError: No module named"),
        (
            PermissionError(13, "Permission denied"),
            "cannot be read: PermissionError: [Errno 13] Permission denied",
        ),
    ],
)
def test_steps_that_cannot_be_read_are_no_reason_to_draw_nothing(walked, monkeypatch, error, words):
    steps_of_walk(walked)
    fake_reader(monkeypatch, error)
    text = show(walked, 1, columns=300)
    assert "played again: the trace is the same" in text
    assert words in text
    assert "; so the episode was played again" in text


def test_replay_that_differs_is_not_drawn(walked, tmp_path, monkeypatch):
    monkeypatch.setenv("SHIFT", "3")
    policy_file(tmp_path, WALKING + "# edited")
    text = show(walked, 1, columns=300)
    assert "nothing is drawn" in text
    assert "reward  " not in text
    assert (
        "played again, ep-000002 is not what it was: 8 steps and return 36 in the run, 8 and 36 now; policy: was"
        in text
    )
    # By its folder: a name alone is looked for in runs/.
    assert f"see why: rlmesh replay {walked} 1" in text
    record = json.loads(show(walked, 1, "--json"))
    assert (record["source"], record["rewards"], record["actions"]) == (None, None, None)
    assert "is not what it was" in record["notes"][0]


def test_policy_that_is_gone_is_told_after_the_facts(walked, tmp_path):
    (tmp_path / "policy.py").unlink()
    out, err = show(walked, 1, code=2).split("---\n")
    assert "return   36" in out
    assert "nothing is drawn" in out
    assert "no such policy file" in err
    assert [err.count(part) for part in ("rlmesh: ", "  at    ", "  mend  ")] == [1, 1, 1]
    record = json.loads(show(walked, 1, "--json", code=2).split("\n---\n")[0])
    assert "no such policy file" in record["notes"][0]


@pytest.mark.parametrize(
    ("episode", "words"),
    [("7", "has no episode 7: its plan is 0 to 2; played were 0 to 2"), ("x", "`x` is no episode")],
)
def test_episode_that_is_not_there_is_refused(walked, episode, words):
    out, err = show(walked, episode, code=2).split("---\n")
    assert out == "\n"
    assert words in err
    assert "at    --episode" in err


def test_one_episode_and_all_of_them_is_a_contradiction(walked):
    out, err = show(walked, 1, "--all", code=2).split("---\n")
    assert out == "\n"
    assert "--all lists every episode, and --episode shows one" in err


def test_videos_of_the_episode_are_named(walked):
    (walked / "videos").mkdir()
    for name in ("ep-000002.mp4", "ep-000002.camera.mp4", "ep-000001.mp4"):
        (walked / "videos" / name).write_bytes(b"")
    lines = squeezed(show(walked, 1))
    at = lines.index("videos videos/ep-000002.camera.mp4")
    assert lines[at + 1] == "videos/ep-000002.mp4"
    assert "videos/ep-000001.mp4" not in lines


def test_episode_that_failed_is_drawn_up_to_there(tmp_path):
    policy = policy_file(tmp_path, WALKING.replace("return", "assert obs[0] < 5, '[b]no[/b]'\n        return"))
    _, folder = play(tmp_path, policy, f"{HERE}:Walk", episodes=2, quiet=True)
    assert folder is not None
    lines = squeezed(show(folder, 1))
    assert "error policy at step 5: AssertionError: [b]no[/b] (in predict, input float64[2])" in lines
    assert any(line.startswith("place ") and "policy.py" in line for line in lines)
    assert "rewards and actions of 5 steps, played again: the trace is the same" in lines


def test_episode_without_a_step_has_nothing_to_draw(tmp_path):
    policy = policy_file(tmp_path, WALKING)
    _, folder = play(tmp_path, policy, "cli_toys:Broken", episodes=1, quiet=True)
    if folder is None:  # actions of a Discrete space
        _, folder = play(tmp_path, "zero", "cli_toys:Broken", episodes=1, quiet=True, out=tmp_path / "other")
    assert folder is not None
    assert "nothing is drawn: it has no finished step" in show(folder, 0)


def test_kept_steps_of_an_episode_without_a_step_have_nothing_to_draw(tmp_path, monkeypatch):
    _, folder = play(tmp_path, "zero", "cli_toys:Broken", episodes=1, quiet=True)
    assert folder is not None
    fake_reader(monkeypatch, {"reward": np.zeros(0), "action": np.zeros((0, 2), np.float32)})
    (folder / "steps").mkdir()
    (folder / "steps" / "ep-000001.parquet").write_bytes(b"")
    assert "nothing is drawn: it has no finished step" in show(folder, 0)


@pytest.mark.parametrize("columns", [60, 80, 140])
def test_nothing_is_wider_than_the_terminal(walked, columns):
    picture = show(walked, 1, columns=columns).split("rewards and actions")[1]
    assert max(map(len, picture.splitlines()[1:])) <= columns


SPACES = [
    spaces.Box(-1, 1, (2,), np.float32),
    spaces.Box(np.array([-1, -np.inf], np.float32), np.array([0.5, 2], np.float32)),
    spaces.Box(-1, 1, (2, 2), np.float32),
    spaces.Dict({"a": spaces.Box(0, 1, (1,), np.float64), "b": spaces.Discrete(3)}),
]


@pytest.mark.parametrize(
    ("space", "bounds"),
    [
        (SPACES[0], [(-1, 1), (-1, 1)]),
        (SPACES[1], [(-1, 0.5), (None, 2)]),
        (SPACES[2], [(-1, 1)] * 4),
        (SPACES[3], [(0, 1), (None, None)]),
        (spaces.Box(-np.arange(2000, dtype=np.float32), np.full(2000, 3000, np.float32)), []),
        (spaces.Text(5), []),
    ],
)
def test_bounds_are_read_from_how_gymnasium_prints_a_space(space, bounds):
    assert bounds_in(str(space)) == bounds
