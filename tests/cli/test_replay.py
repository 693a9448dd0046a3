"""`rlmesh replay`: an episode of a run played again, held against its row, and why the two differ."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from cli_toys import Boxed, Steps, play, policy_file
from films import decoded
from gymnasium import spaces
from running import strict_loads
from typer.testing import CliRunner

from rlmesh_cli.app import app

HERE = __name__


class Walk(Steps):
    """Five steps from a start that the seed gives; pays what the action says."""

    observation_space = spaces.Box(-1e9, 1e9, (2,), np.float64)
    action_space = spaces.Box(-1, 1, (2,), np.float32)

    def __init__(self, render_mode: str | None = None, **kwargs: Any) -> None:
        super().__init__(length=5)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.standard_normal(2), {"is_success": False}

    def step(self, action):
        self.t += 1
        return self.np_random.standard_normal(2), float(action.sum()), self.is_over, False, {"is_success": True}


class Loose(Walk):
    """Observations from step 2 on come from whatever random numbers the process has at hand."""

    def step(self, action):
        _, *rest = super().step(action)
        return np.array([self.t, np.random.random() if self.t >= 2 else 0.0]), *rest


class Restless(Walk):
    """Starts wherever the process's random numbers say."""

    def reset(self, *, seed=None, options=None):
        _, info = super().reset(seed=seed)
        return np.random.random(2), info


class Worn(Walk):
    """Pays by how often this very environment was reset."""

    resets = 0

    def reset(self, **kwargs):
        self.resets += 1
        return super().reset(**kwargs)

    def step(self, action):
        observation, _, *rest = super().step(action)
        return observation, float(self.resets), *rest


class Breaking(Walk):
    """Raises in the third step of seed 3, for good."""

    def step(self, action):
        if (self.seed, self.t) == (3, 2):
            raise RuntimeError("the gear of seed 3 is broken")
        return super().step(action)


class Drawn(Walk):
    """Draws a white bar as wide as t, on a picture with an odd side."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 12}  # noqa: RUF012 - as gymnasium's are

    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__()
        self.render_mode = render_mode

    def render(self):
        frame = np.zeros((47, 64, 3), np.uint8)
        frame[:, : 12 * self.t] = 255
        return frame


class Shaky(Drawn):
    """Is another environment when it is looked at."""

    def render(self):
        self.np_random.random()
        return super().render()


class Shown(Drawn):
    """Counts what is asked of it, in a window that is none."""

    metadata = {"render_modes": ["human"], "render_fps": 12}  # noqa: RUF012
    built: list[str | None] = []  # noqa: RUF012

    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__(render_mode)
        self.built.append(render_mode)


class Darkened(Shown):
    """Has no window to draw in."""

    def reset(self, **kwargs):
        if self.render_mode == "human":
            raise OSError("no display")
        return super().reset(**kwargs)


RNG = """
class Policy:
    def predict(self, obs, context):
        return context.rng.uniform(-1, 1, 2)
"""
RECURRENT = """
import numpy as np
class Policy:
    def predict(self, obs, state):
        state = 0.5 * (0.0 if state is None else state) + 0.01 * obs[0]
        return np.clip([state, 0.1], -1, 1), state
"""
RESETTING = """
import numpy as np
class Policy:
    def reset(self):
        self.sum = 0.0
    def predict(self, obs):
        self.sum = 0.5 * self.sum + 0.01 * obs[0]
        return np.clip([self.sum, 0.1], -1, 1)
"""
CHUNKED = """
import numpy as np
class Policy:
    def predict_chunk(self, obs):
        return np.clip(np.arange(12).reshape(6, 2) / 20 + 0.01 * obs[0], -1, 1)
"""
STILL = "class Policy:\n    def predict(self, obs):\n        return [0.25, 0.5]\n"


def made(tmp_path: Path, text: str, env: str = "Walk", **flags: Any) -> Path:
    """Return the folder of a run of ten episodes."""
    asked = {"episodes": 10, "quiet": True, "is_probed": False, **flags}
    _, folder = play(tmp_path, policy_file(tmp_path, text), f"{HERE}:{env}", **asked)
    assert folder is not None
    return folder


def replay(folder: Path, episode: str | int, *words: str) -> Any:
    """Run the command as a process of its own would: the policy's file is not loaded yet."""
    for name in [name for name in sys.modules if name.startswith("rlmesh_policy_policy")]:
        del sys.modules[name]
    return CliRunner(env={"COLUMNS": "160"}).invoke(app, ["replay", str(folder), str(episode), *words])


def told(folder: Path, episode: str | int, *words: str) -> tuple[int, dict[str, Any]]:
    result = replay(folder, episode, "--json", *words)
    return result.exit_code, strict_loads(result.stdout)


@pytest.fixture(autouse=True)
def _display(monkeypatch):
    """Have a display, so that windows are not refused."""
    monkeypatch.setenv("DISPLAY", ":0")


@pytest.mark.parametrize("num_envs", [1, 8])
@pytest.mark.parametrize(
    ("text", "flags"),
    [
        (RNG, {}),
        (RECURRENT, {}),
        (RESETTING, {"instances": "lane"}),
        (RESETTING, {"instances": "episode"}),
        (CHUNKED, {"horizon": 4}),
        (STILL, {"success": "return>=3", "metrics": ("is_success",), "max_episode_steps": 3}),
    ],
    ids=["rng", "state", "lane", "episode", "chunks", "limit"],
)
def test_episode_is_what_it_was_on_any_number_of_lanes(tmp_path, text, flags, num_envs):
    folder = made(tmp_path, text, num_envs=num_envs, **flags)
    for episode in (0, "ep-000008", 9):
        code, record = told(folder, episode)
        assert (code, record["verdict"], record["fields"]) == (0, "identical", [])
    assert record["schema"] == "rlmesh.replay.v1"
    assert (record["index"], record["episode_id"], record["seed"]) == (9, "ep-000010", 9)


def test_episode_of_worker_processes_and_latest_run(tmp_path):
    folder = made(tmp_path, STILL, num_envs=2, vectorization="async", start_method="fork")
    result = CliRunner().invoke(app, ["replay", "latest", "7", "--out", str(folder.parent)])
    assert (result.exit_code, "identical: ep-000008 is what it was in the run (5 steps" in result.stdout) == (
        0,
        True,
    )


def test_gymnasiums_own_vector_environment_is_replayed_where_its_lanes_take_seeds(tmp_path):
    folder = made(tmp_path, STILL, autoreset="disabled", num_envs=2)
    code, record = told(folder, 7)
    assert (code, record["fields"]) == (0, [])


def test_replay_writes_nothing(tmp_path):
    folder = made(tmp_path, STILL)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    replay(folder, 3)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_error_that_comes_again_is_identical(tmp_path):
    """Its policy's first call succeeds; the environment breaks twice, as it did."""
    folder = made(tmp_path, STILL, "Breaking")
    code, record = told(folder, 3)
    assert (code, record["verdict"], record["row"]["end"]) == (0, "identical", "error")


class Enormous(Walk):
    """Pays more than a float64 can add up."""

    def step(self, action):
        observation, _, *rest = super().step(action)
        return observation, 1e308, *rest


class Nameless(Walk):
    """Raises with the place of an object in memory."""

    def step(self, action):
        raise RuntimeError(f"cannot move {object()!r}")


@pytest.mark.parametrize("env", ["Enormous", "Nameless"])
def test_what_no_row_can_hold_exactly_is_no_difference(tmp_path, env):
    code, record = told(made(tmp_path, STILL, env), 3)
    assert (code, record["fields"]) == (0, [])


def test_policy_that_fails_on_its_first_call_is_a_failure_of_its_episode(tmp_path):
    """In the run it was not the first call; alone it is, and is scored all the same."""
    text = STILL.replace(
        "        return", "        if context.seed == 3: raise ValueError('not 3')\n        return"
    )
    folder = made(tmp_path, text.replace("obs)", "obs, context)"))
    code, record = told(folder, 3)
    assert (code, record["verdict"]) == (0, "identical")
    assert "not 3" in record["replay"]["error"]["message"]


def test_policy_that_was_edited_is_said_first_and_given_as_the_cause(tmp_path):
    folder = made(tmp_path, STILL)
    policy_file(tmp_path, STILL.replace("0.5", "0.75"))
    result = replay(folder, 7)
    assert result.exit_code == 1
    assert result.stderr.startswith("rlmesh: policy: was ")
    assert result.stderr.endswith("..; what is played is the policy as it is now\n")
    said = result.stdout
    assert "differs: it starts alike, but other actions are executed or other rewards paid" in said
    assert "two replays agree with one another, but not with the run" in said
    code, record = told(folder, 7)
    assert (code, record["cause"], record["changes"]) == (
        1,
        "something else changed",
        [record["changed_policy"]],
    )
    assert [field["name"] for field in record["fields"]] == ["trace_hash", "return"]
    assert record["fields"][1] == {"name": "return", "run": 3.75, "replay": 5.0}


def test_weights_that_changed_are_named(tmp_path):
    weights = tmp_path / "gain.txt"
    weights.write_text("0.25", encoding="utf-8")
    text = (
        "from pathlib import Path\nclass Policy:\n"
        "    def __init__(self, weights):\n        self.gain = float(Path(weights).read_text())\n"
        "    def predict(self, obs):\n        return [self.gain, 0.5]\n"
    )
    folder = made(tmp_path, text, policy_args=(f"weights={weights}",))
    assert told(folder, 0)[0] == 0
    weights.write_text("0.5", encoding="utf-8")
    code, record = told(folder, 0)
    assert (code, record["cause"], record["changed_policy"]) == (1, "something else changed", None)
    assert [line.partition(":")[0] for line in record["changes"]] == ["weights[gain.txt]"]


def test_environment_that_draws_from_the_process_is_no_function_of_its_seed(tmp_path):
    text = STILL.replace("[0.25, 0.5]", "[obs[1] if obs[0] == 2 else 0.0, 0.5]")
    code, record = told(made(tmp_path, text, "Loose"), 4)
    assert (code, record["cause"]) == (1, "not a function of its seed")
    first = record["first"]
    assert (first["step"], first["what"], first["leaf"], first["dimension"], first["owner"]) == (
        2,
        "observation",
        "observation",
        [1],
        "environment",
    )
    assert record["words"][1].endswith("differ from one another: the environment is not a function of its seed")
    assert record["words"][2].startswith("first at step 2: observation[1] is 0.")


def test_start_that_is_no_function_of_its_seed(tmp_path):
    code, record = told(made(tmp_path, STILL, "Restless"), 4)
    assert (code, record["cause"], record["first"]["step"]) == (1, "not a function of its seed", 0)
    assert record["words"][0] == ("differs: the environment gives another first observation or info for seed 4")


def test_policy_that_draws_from_the_process_is_no_function_of_its_seed(tmp_path):
    text = "import numpy as np\nclass Policy:\n    def predict(self, obs):\n        return np.random.random(2)\n"
    code, record = told(made(tmp_path, text), 4)
    assert (code, record["cause"], record["first"]["owner"]) == (1, "not a function of its seed", "policy")
    assert "the policy is not a function of its seed" in record["words"][1]


@pytest.mark.parametrize(
    "text",
    [
        "COUNT = []\nclass Policy:\n    def predict(self, obs):\n"
        "        COUNT.append(1)\n        return [len(COUNT) / 1e3, 0]\n",
        "COUNT = []\ndef predict(obs):\n    COUNT.append(1)\n    return [len(COUNT) / 1e3, 0]\n",
    ],
    ids=["class", "module"],
)
def test_what_a_policy_kept_from_other_episodes_is_no_chance(tmp_path, text):
    """The first episode is the same again; a later one had others before it, which no replay has."""
    folder = made(tmp_path, text)
    assert told(folder, 0)[0] == 0
    code, record = told(folder, 4)
    assert (code, record["cause"], record["changes"]) == (1, "something else changed", [])
    assert "kept from episodes that were played before this one" in record["words"][2]


def test_environment_that_wears_out_differs_in_its_rewards(tmp_path):
    code, record = told(made(tmp_path, STILL, "Worn"), 4)
    assert (code, record["cause"]) == (1, "something else changed")
    assert record["fields"][1] == {"name": "return", "run": 25.0, "replay": 5.0}


def test_run_whose_environment_resets_itself_is_refused(tmp_path):
    folder = made(tmp_path, STILL, autoreset="next_step", num_envs=2)
    result = replay(folder, 0)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "have no seeds of their own: its environment resets itself (next_step)" in result.stderr
    assert "  mend  run it without --autoreset" in result.stderr


@pytest.mark.parametrize(
    ("episode", "words"),
    [
        ("12", "has no episode 12: its plan is 0 to 9; played were 0 to 2, 4 to 9"),
        ("3", "episode 3 (ep-000004) of {run} was not played; played were 0 to 2, 4 to 9"),
        ("ep-000004", "episode 3 (ep-000004) of {run} was not played"),
        ("ep-000000", "has no episode ep-000000"),
        ("-1", "No such option"),
        ("last", "`last` is no episode"),
        ("1.5", "`1.5` is no episode"),
    ],
)
def test_episode_that_is_not_there_names_those_that_are(tmp_path, episode, words):
    folder = made(tmp_path, STILL)
    lines = (folder / "episodes.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "episodes.jsonl").write_text("".join(lines[:3] + lines[4:]), encoding="utf-8")
    result = replay(folder, episode)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words.format(run=folder.name) in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


def test_policy_that_is_gone_is_an_error(tmp_path):
    folder = made(tmp_path, STILL)
    (tmp_path / "policy.py").unlink()
    result = replay(folder, 0)
    assert (result.exit_code, "no such policy file" in result.stderr, "Traceback" in result.stderr) == (
        2,
        True,
        False,
    )


def test_run_that_is_not_there_is_an_error(tmp_path):
    result = replay(tmp_path / "nothing", 0)
    assert (result.exit_code, "there is no run" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("env", "words", "said"),
    [
        (
            "Walk",
            ["--render", "vidoe"],
            "`vidoe` is no way to render\n  at    --render\n  mend  did you mean video?",
        ),
        ("Walk", ["--video", "a.mp4"], "nothing is rendered for it\n  at    --video\n  mend  add --render video"),
        ("Walk", ["--render", "human"], "does not offer render_mode `human`: its render_modes are none"),
        (
            "Drawn",
            ["--render", "human"],
            "its render_modes are rgb_array\n  at    --render\n  mend  use --render video",
        ),
    ],
)
def test_rendering_that_cannot_be_had_is_an_error(tmp_path, env, words, said):
    result = replay(made(tmp_path, STILL, env), 0, *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


def test_window_is_asked_for_when_the_environment_is_built(tmp_path):
    folder = made(tmp_path, STILL, "Shown")
    Shown.built.clear()
    code, record = told(folder, 2, "--render", "human")
    assert (code, record["verdict"], record["video"]) == (0, "identical", None)
    assert set(Shown.built) == {"human"}


def test_window_without_a_display_is_refused_before_anything_is_built(tmp_path, monkeypatch):
    folder = made(tmp_path, STILL, "Shown")
    Shown.built.clear()
    (tmp_path / "policy.py").unlink()  # nor is the policy looked for
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.delenv("DISPLAY")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.delenv("SDL_VIDEODRIVER", raising=False)
    result = replay(folder, 2, "--render", "human")
    assert (result.exit_code, result.stdout, Shown.built) == (2, "", [])
    assert result.stderr == (
        "rlmesh: there is no display for a window: neither DISPLAY nor WAYLAND_DISPLAY is set\n"
        "  at    --render human\n"
        "  mend  use --render video, or give it a display that nobody sees: xvfb-run -a rlmesh replay ...\n"
    )


@pytest.mark.parametrize("name", ["WAYLAND_DISPLAY", "SDL_VIDEODRIVER"])
def test_window_is_drawn_where_another_setting_says_how(tmp_path, monkeypatch, name):
    monkeypatch.delenv("DISPLAY")
    for other in ("WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, "here")
    assert told(made(tmp_path, STILL, "Shown"), 2, "--render", "human")[0] == 0


def test_environment_that_cannot_draw_is_an_error(tmp_path):
    result = replay(made(tmp_path, STILL, "Darkened"), 2, "--render", "human")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "it fails where it is rendered, and only there: OSError: no display" in result.stderr


def test_video_without_its_library_names_the_extra(tmp_path, monkeypatch):
    folder = made(tmp_path, STILL, "Drawn")
    monkeypatch.setattr("rlmesh_cli.reports.video.find_spec", lambda name: None)
    result = replay(folder, 0, "--render", "video")
    assert (result.exit_code, "pip install 'rlmesh-cli[video]'" in result.stderr) == (2, True)
    assert not (folder / "videos").exists()


class TestVideo:
    """What needs PyAV."""

    @pytest.fixture(autouse=True)
    def _av(self):
        pytest.importorskip("av")

    def test_without_a_display_is_drawn_as_when_a_run_is_filmed(self, tmp_path, monkeypatch):
        """The setting is there before the policy is loaded, and one that is there already stays."""
        text = "import os\nif os.environ.get('WANTED', None) != os.environ.get('MUJOCO_GL'):\n    raise OSError\n"
        for name in ("MUJOCO_GL", "WAYLAND_DISPLAY", "WANTED"):
            monkeypatch.setenv(name, "put back afterwards")
            monkeypatch.delenv(name)
        folder = made(tmp_path, text + STILL, "Drawn")
        monkeypatch.delenv("DISPLAY")
        monkeypatch.setattr("sys.platform", "linux")
        monkeypatch.setenv("WANTED", "egl")
        assert told(folder, 1, "--render", "video")[0] == 0
        for name in ("MUJOCO_GL", "WANTED"):
            monkeypatch.setenv(name, "osmesa")
        assert told(folder, 2, "--render", "video")[0] == 0

    def test_frames_are_the_environments(self, tmp_path):
        """One frame at the start and one a step, at the environment's own pace."""
        folder = made(tmp_path, STILL, "Drawn")
        code, record = told(folder, "ep-000003", "--render", "video")
        assert (code, record["verdict"]) == (0, "identical")
        path = folder / "videos" / "ep-000003.mp4"
        assert record["video"] == str(path)
        assert [known.name for known in path.parent.iterdir()] == [path.name]
        video = decoded(path)
        frames = video.frames
        assert video.fps == 12
        assert [frame.shape for frame in frames] == [(48, 64, 3)] * 6
        for t, frame in enumerate(frames):
            expected = np.zeros((48, 64, 3))
            expected[:, : 12 * t] = 255
            assert np.abs(frame - expected).mean() < 6, t

    def test_file_is_where_it_is_asked_for(self, tmp_path):
        path = tmp_path / "seen.mkv"
        result = replay(made(tmp_path, STILL, "Drawn"), 0, "--render", "video", "--video", str(path))
        assert (result.exit_code, f"video {path}" in result.stdout, path.stat().st_size > 0) == (0, True, True)

    @pytest.mark.parametrize(
        ("name", "said"), [("seen.txt", "name it seen.mp4"), ("no/seen.mp4", "mkdir -p"), (".mp4", "name it")]
    )
    def test_file_that_cannot_be_written_is_an_error_before_anything_is_played(self, tmp_path, name, said):
        folder = made(tmp_path, STILL, "Drawn")
        result = replay(folder, 0, "--render", "video", "--video", str(tmp_path / name))
        assert (result.exit_code, said in result.stderr, result.stdout) == (2, True, "")

    def test_rendering_that_changes_the_episode_is_found(self, tmp_path):
        text = (
            "import numpy as np\nclass Policy:\n    def predict(self, obs):\n        return np.clip(obs, -1, 1)\n"
        )
        folder = made(tmp_path, text, "Shaky")
        code, record = told(folder, 0, "--render", "video")
        assert (code, record["cause"], record["first"]["step"]) == (1, "rendering", 1)
        assert "rendering changes the episode" in record["words"][1]

    def test_frame_that_is_none_leaves_no_file(self, tmp_path):
        folder = made(tmp_path, STILL, "Blind")
        result = replay(folder, 0, "--render", "video")
        assert (result.exit_code, "gave NoneType, not a frame" in result.stderr) == (2, True)
        assert list((folder / "videos").iterdir()) == []


class Blind(Drawn):
    def render(self):
        return None


def test_run_may_be_somewhere_else_by_now(tmp_path):
    folder = made(tmp_path, STILL)
    moved = tmp_path / "elsewhere" / folder.name
    shutil.copytree(folder, moved)
    assert told(moved, 5)[0] == 0


def test_gymnasium_environment_and_built_in_policy(tmp_path):
    _, folder = play(tmp_path, "random", "CartPole-v1", episodes=4, num_envs=4, quiet=True)
    assert folder is not None
    code, record = told(folder, 3)
    assert (code, record["verdict"], record["row"]["length"] > 5) == (0, "identical", True)
    assert "CartPole-v1" in gym.registry


def test_boxed_actions_that_are_clipped_count_again(tmp_path):
    assert Boxed.action_space.shape == (2,)
    folder = made(tmp_path, "class Policy:\n    def predict(self, obs):\n        return [3.0, 0.0]\n")
    code, record = told(folder, 1)
    assert (code, record["replay"]["clipped_actions"]) == (0, 5)
