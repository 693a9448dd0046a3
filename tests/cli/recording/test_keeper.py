"""Keeper: which files are there in the end, whatever happened before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_toys import row

from rlmesh_adapters.errors import HarnessError
from rlmesh_cli.recording.keeper import Keeper
from rlmesh_cli.recording.selection import parse_selection
from rlmesh_cli.store import RunStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    made = RunStore(tmp_path, env="env", policy="policy")
    yield made
    made.close()


def take(keeper: Keeper, index: int, **facts: float) -> None:
    one = row(index, **facts)
    keeper.take(one, {f"videos/{one.episode_id}.mp4": b"film"})


@pytest.mark.parametrize("again", [1.0, 9.0])
def test_an_episode_that_is_delivered_twice_counts_once(store: RunStore, again: float) -> None:
    """A worker may die between an episode's files and its row; then another plays it."""
    keeper = Keeper(parse_selection("worst:2", "--video"), range(4))
    keeper.open(store)
    for index, paid in [(0, 1.0), (1, 2.0), (0, again), (2, 3.0)]:
        take(keeper, index, return_=paid)
    kept = [0, 1] if again == 1.0 else [1, 2]
    assert store.files("videos/*") == [f"videos/ep-00000{index + 1}.mp4" for index in kept]


def test_what_a_killed_sitting_had_half_written_is_gone_when_the_run_goes_on(store: RunStore) -> None:
    for folder in ("videos", "steps"):
        (store.path / folder).mkdir()
        (store.path / folder / ".ep-000003.x.partial").write_bytes(b"ha")
    Keeper(parse_selection("first:1", "--video"), range(4)).open(store)
    assert store.files("videos/.*") == store.files("steps/.*") == []


def test_a_file_that_cannot_be_finished_leaves_nothing(store: RunStore, monkeypatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rlmesh_cli.store.os.replace", fail)
    with pytest.raises(HarnessError, match=r"run\.json cannot be written: No space left on device"):
        store.write("run.json", {})
    with pytest.raises(HarnessError, match=r"ep-000001\.mp4 cannot be written: No space left on device"):
        store.write_file("videos/ep-000001.mp4", b"film")
    assert [path for path in store.path.rglob("*") if path.is_file()] == [store.path / "episodes.jsonl"]
