"""Odd spaces, names, infos and answers are recorded like any other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import odd_toys
import pytest
from films import decoded
from running import play, unarranged

from rlmesh_cli.step_files import read_steps

pytest.importorskip("av")
pq = pytest.importorskip("pyarrow.parquet")


def first(played: Any) -> dict[str, Any]:
    assert played.code == 0
    return read_steps(played.folder / "steps" / "ep-000001.parquet")


def drawn(toy: type[odd_toys.Drawn]) -> list[Any]:
    """Return what the toy shows in its episode with seed 0."""
    env = toy()
    return [env.reset(seed=0)[0], *(env.step(env.action_space.sample())[0] for _ in range(3))]


def test_arrays_without_a_number_keep_their_shape(tmp_path: Path) -> None:
    steps = first(play(tmp_path, "random", "odd_toys:Flat", episodes=2, num_envs=2, record="steps"))
    assert steps["observation.none"].shape == (4, 0)
    assert steps["observation.wide"].shape == (4, 0, 3)
    assert steps["observation.one"].tolist() == [seen["one"] for seen in drawn(odd_toys.Flat)]
    assert steps["action"].shape == (3, 0)


def test_pictures_are_written_few_at_a_time(tmp_path: Path) -> None:
    """What Parquet holds at once is many times their size: two of 2.1 million bytes are more than 4 million."""
    played = play(tmp_path, "random", "odd_toys:Wide", episodes=1, record="steps")
    seen = first(played)["observation.large"]
    env = odd_toys.Wide()
    expected = [env.reset(seed=0)[0]["large"], *(env.step(0)[0]["large"] for _ in range(4))]
    np.testing.assert_array_equal(seen, expected)
    assert pq.ParquetFile(played.folder / "steps" / "ep-000001.parquet").metadata.num_row_groups == 5


def test_numbers_of_the_other_byte_order_come_back(tmp_path: Path) -> None:
    steps = first(play(tmp_path, "random", "odd_toys:Swapped", episodes=1, record="steps"))
    assert steps["observation"].dtype == np.dtype(">f4")
    np.testing.assert_array_equal(steps["observation"], drawn(odd_toys.Swapped))


def test_leaves_that_are_written_alike_have_a_column_each(tmp_path: Path) -> None:
    """Gymnasium sorts keys: `a` comes before `a.b`."""
    steps = first(play(tmp_path, "random", "odd_toys:Alike", episodes=1, record="steps"))
    seen = drawn(odd_toys.Alike)
    np.testing.assert_array_equal(steps["observation.a.b"], [one["a"]["b"] for one in seen])
    assert steps["observation.a.b-2"].tolist() == [one["a.b"] for one in seen]
    assert (steps["action.a.b"].shape, steps["action.a.b-2"].shape) == ((3, 2), (3,))


def test_text_that_is_no_utf8_is_shown_as_escapes(tmp_path: Path) -> None:
    steps = first(play(tmp_path, "random", "odd_toys:Surrogate", episodes=1, record="steps"))
    assert steps["observation"] == ["\\ud800" * 4] * 4


def test_infos_that_cannot_be_written_are_described(tmp_path: Path) -> None:
    played = play(tmp_path, "zero", "odd_toys:OddInfos", episodes=2, record="steps")
    plain = play(tmp_path, "zero", "odd_toys:OddInfos", episodes=2)
    assert unarranged(played.rows) == unarranged(plain.rows)
    info = first(played)["info"][1]
    assert (info["1"], info["1 (str)"], info["rlmesh.frame"]) == ("a", "b", "mine")
    assert info["mute"] == "Mute, which cannot be written: RuntimeError: no words"
    assert info["set"] == "set, which cannot be written: RuntimeError: no words"
    assert info["huge"].startswith("int, which cannot be written: ValueError: Exceeds the limit")
    assert info["ring"].startswith("dict, which cannot be written: RecursionError")
    assert (info["large"], info["half"]) == (2**200, "\\ud800")


def test_large_arrays_in_lists_are_described_too(tmp_path: Path, monkeypatch) -> None:
    step = odd_toys.Clock.step
    info = {"frames": [np.zeros(5000)], "pair": (np.arange(2), {"x": np.zeros((99, 99), np.uint8)})}
    monkeypatch.setattr(odd_toys.Clock, "step", lambda self, action: (*step(self, action)[:4], info))
    steps = first(play(tmp_path, "zero", "film_toys:Clock", episodes=1, record="steps"))
    assert steps["info"][1] == {"frames": ["float64[5000]"], "pair": [[0, 1], {"x": "uint8[99, 99]"}]}


@pytest.mark.parametrize("env", ["Lists", "Wordless"])
@pytest.mark.parametrize("flags", [{}, {"num_envs": 2, "vectorization": "async"}], ids=str)
def test_environments_that_answer_with_lists_or_without_infos_are_filmed(
    tmp_path: Path, env: str, flags: dict[str, Any]
) -> None:
    played = play(tmp_path, "zero", f"odd_toys:{env}", episodes=2, record="video", **flags)
    assert [decoded(path).levels for path in sorted((played.folder / "videos").iterdir())] == [[0, 1, 2, 3]] * 2


def test_pictures_have_a_file_each_whatever_they_are_called(tmp_path: Path) -> None:
    """Gymnasium sorts keys: A, a, a!, a-2, xxx, カメラ. The render has no name."""
    played = play(tmp_path, "zero", "odd_toys:Cameras", episodes=1, record="video")
    levels = {path.name: decoded(path).levels for path in (played.folder / "videos").iterdir()}
    brightness = {"A": 80, "a-2": 120, "a-3": 160, "a-2-2": 200, "x" * 48: 240, "image": 40}
    assert levels.pop("ep-000001.mp4") == [0, 1, 2, 3]
    assert levels.keys() == {f"ep-000001.{name}.mp4" for name in brightness}
    for name, level in brightness.items():
        assert levels[f"ep-000001.{name}.mp4"] == pytest.approx([level] * 4, abs=2)  # as H.264 rounds


@pytest.mark.parametrize(
    "flags", [{}, {"num_envs": 3}, {"num_envs": 2, "vectorization": "async"}, {"workers": 2}], ids=str
)
def test_an_episode_that_has_no_second_start_has_nothing_of_its_first(tmp_path: Path, flags: Any) -> None:
    """Its row says zero steps and an error in the reset."""
    (tmp_path / "mark").mkdir()
    arguments = (f"mark={tmp_path / 'mark'}",)
    played = play(
        tmp_path, "zero", "odd_toys:NoSecondStart", episodes=4, record="video,steps", env_args=arguments, **flags
    )
    assert (played.rows[1]["error"]["phase"], played.column("length")) == ("reset", [3, 0, 3, 3])
    for folder, ending in (("videos", "mp4"), ("steps", "parquet")):
        names = {path.name for path in (played.folder / folder).iterdir()}
        assert names == {f"ep-00000{number}.{ending}" for number in (1, 3, 4)}


def test_objects_are_kept_as_they_were_whoever_writes_into_them(tmp_path: Path) -> None:
    source = tmp_path / "policy.py"
    source.write_text("class Policy:\n    def predict(self, obs):\n        obs.nodes[:] = -7\n        return 0\n")
    steps = first(play(tmp_path, str(source), "odd_toys:Points", episodes=1, record="steps", is_probed=False))
    assert steps["observation"] == [f"[[[{t}.0]],null,null]" for t in range(4)]


def test_a_last_observation_that_is_none_of_its_space_is_null(tmp_path: Path) -> None:
    """It stands in an info, so the run itself never looks at it."""
    steps = first(play(tmp_path, "zero", "odd_toys:Slanted", episodes=4, num_envs=2, record="steps"))
    assert steps["observation"].tolist() == [[0, 0], [1, 1], [2, 2]]
    assert steps["t"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("flags", [{}, {"num_envs": 4}, {"num_envs": 2, "vectorization": "async"}], ids=str)
def test_a_step_that_failed_has_no_frame(tmp_path: Path, flags: dict[str, Any]) -> None:
    """Frames are one more than the steps that the row counts, whatever ended the episode."""
    played = play(tmp_path, "zero", "odd_toys:Spoilt", episodes=4, record="video", **flags)
    assert played.column("length") == [3, 1, 1, 3]
    videos = sorted((played.folder / "videos").iterdir())
    assert [decoded(path).levels for path in videos] == [[0, 1, 2, 3], [0, 1], [0, 1], [0, 1, 2, 3]]


def test_pictures_without_a_pixel_are_told_before_anything_is_played(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(odd_toys.Clock, "side", (0, 4))
    played = play(tmp_path, "zero", "film_toys:Clock", episodes=1, record="video")
    assert (played.code, played.folder) == (2, None)
    assert "render gave uint8[0, 4, 3], not a frame" in capsys.readouterr().err
