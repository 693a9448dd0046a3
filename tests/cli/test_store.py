"""Store: run folders, the only place that writes."""

from __future__ import annotations

import itertools
import json
import re
import threading
from pathlib import Path

import pytest
from cli_toys import errored, mended, row
from hypothesis import given, settings
from hypothesis import strategies as st

from rlmesh_adapters.errors import HarnessError
from rlmesh_cli import store
from rlmesh_cli.episodes import EpisodeResult
from rlmesh_cli.row_reader import read_lines
from rlmesh_cli.store import RunStore


def read_episodes(folder: Path) -> list[EpisodeResult]:
    """Return the rows of a folder in index order."""
    rows = [one for _, one in read_lines(folder / "episodes.jsonl").rows]
    return sorted(rows, key=lambda one: one.index)


def opened(parent: Path, env: str = "CartPole-v1", policy: str = "policy") -> RunStore:
    made = RunStore(parent, env=env, policy=policy)
    made.close()
    return made


def test_name_tells_time_environment_and_policy(tmp_path):
    name = opened(tmp_path / "a" / "runs").path.name
    assert re.fullmatch(r"\d{8}T\d{6}Z-CartPole-v1-policy-[0-9a-f]{4}", name)


def test_runs_at_once_never_share_a_folder(tmp_path):
    barrier, paths = threading.Barrier(16), []

    def make() -> None:
        barrier.wait()
        paths.append(opened(tmp_path).path)

    threads = [threading.Thread(target=make) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(paths)) == 16
    assert all((path / "episodes.jsonl").is_file() for path in paths)


def test_name_that_is_taken_is_never_taken_again(tmp_path, monkeypatch):
    digits = itertools.chain(["aaaa", "aaaa", "aaaa", "bbbb"], itertools.repeat("aaaa"))
    monkeypatch.setattr(store.secrets, "token_hex", lambda size: next(digits))
    monkeypatch.setattr(store, "datetime", _Noon)
    names = [opened(tmp_path).path.name[-4:] for _ in range(2)]
    assert names == ["aaaa", "bbbb"]
    with pytest.raises(HarnessError, match="no free name") as caught:
        opened(tmp_path)
    mended(caught.value)


class _Noon:
    """A `datetime` module whose time stands still."""

    UTC = None

    class datetime:  # noqa: N801 - stands in for a class of that name
        @staticmethod
        def now(zone):
            return _Noon.datetime()

        def strftime(self, form):
            return "20260101T120000Z"


@settings(max_examples=60, deadline=None)
@given(env=st.text(max_size=80), policy=st.text(max_size=80))
def test_names_are_safe_on_any_file_system(env, policy, tmp_path_factory):
    made = opened(tmp_path_factory.getbasetemp() / "safe", env, policy)
    name = made.path.name
    assert re.fullmatch(r"[A-Za-z0-9._-]+", name)
    assert len(name) < 200
    assert made.path.parent.name == "safe"
    assert name[-1] not in ". "


@pytest.mark.parametrize(
    ("env", "policy", "middle"),
    [
        ("ALE/Pong-v5", "policy", "ALE-Pong-v5-policy"),
        ("toys:Echo-v0", "a b", "toys-Echo-v0-a-b"),
        ("../../etc", "..", "etc-unnamed"),
        ("", "", "unnamed-unnamed"),
        ("ünï", "\0", "n-unnamed"),
    ],
)
def test_what_no_name_may_hold_becomes_a_dash(env, policy, middle, tmp_path):
    name = opened(tmp_path, env, policy).path.name
    assert name[17:-5] == middle
    assert list(tmp_path.iterdir()) == [tmp_path / name]


def test_every_row_is_on_disk_as_soon_as_it_is_appended(tmp_path):
    made = RunStore(tmp_path, env="E", policy="p")
    for index in range(3):
        made.append(row(index))
        lines = (made.path / "episodes.jsonl").read_text().splitlines()
        assert [json.loads(line)["index"] for line in lines] == list(range(index + 1))
    made.close()
    made.close()


def test_rows_come_back_as_they_were_in_order_of_the_plan(tmp_path):
    rows = [row(2, metrics={"v": None, "w": 0.1}), errored(0, 'a "quoted"\nmessage é'), row(1, return_=1e-300)]
    made = RunStore(tmp_path, env="E", policy="p")
    for one in rows:
        made.append(one)
    made.close()
    assert read_episodes(made.path) == sorted(rows, key=lambda one: one.index)


@pytest.mark.parametrize("torn", [b'{"index":7,"se', b"{", b"\xff\xfe", b'{"index": 7}'])
def test_torn_last_line_is_left_out(torn, tmp_path):
    made = RunStore(tmp_path, env="E", policy="p")
    made.append(row(0))
    made.close()
    with (made.path / "episodes.jsonl").open("ab") as file:
        file.write(torn)
    assert read_episodes(made.path) == [row(0)]


def test_run_without_episodes_has_no_rows(tmp_path):
    assert read_episodes(opened(tmp_path).path) == []


def test_file_is_there_whole_or_as_it_was_before(tmp_path):
    made = opened(tmp_path)
    made.write("run.json", {"status": "running"})
    with pytest.raises(ValueError, match="written alike"):
        made.write("run.json", {"status": "finished", 0: 1, "0": 2})
    assert json.loads((made.path / "run.json").read_text()) == {"status": "running"}
    made.write("run.json", {"status": "finished"})
    assert json.loads((made.path / "run.json").read_text()) == {"status": "finished"}
    assert sorted(path.name for path in made.path.iterdir()) == ["episodes.jsonl", "run.json"]


def test_json_files_are_indented_utf8_with_one_line_end(tmp_path):
    made = opened(tmp_path)
    made.write("run.json", {"name": "é", "list": [1]})
    assert (made.path / "run.json").read_bytes().decode("utf-8").startswith('{\n  "name": "é"')
    assert (made.path / "run.json").read_bytes().endswith(b"}\n")


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("file", "is a file"),
        ("file/below", "Not a directory"),
        ("x" * 300, "too long"),
        ("/proc/nowhere", "/proc/nowhere"),
    ],
)
def test_folder_that_cannot_be_made_is_named(place, words, tmp_path):
    (tmp_path / "file").write_text("kept")
    with pytest.raises(HarnessError) as caught:
        opened(tmp_path / place)
    assert words in mended(caught.value).cause
    assert caught.value.where == "--out"
    assert (tmp_path / "file").read_text() == "kept"


def test_a_row_that_the_disk_takes_in_parts_is_whole(tmp_path):
    made = RunStore(tmp_path, env="e", policy="p")

    class Narrow:
        def write(self, data: bytes) -> int:
            return file.write(data[:7])

        def close(self) -> None:
            file.close()

    file, made._episodes = made._episodes, Narrow()
    made.append(row(0), row(1))
    made.close()
    assert read_episodes(made.path) == [row(0), row(1)]
