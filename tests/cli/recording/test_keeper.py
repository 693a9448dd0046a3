"""Keeper: which files are there in the end, whatever happened before."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
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


@pytest.mark.parametrize("order", [range(6), (5, 4, 3, 2, 1, 0), (3, 0, 5, 1, 4, 2)])
def test_the_worst_of_a_run_that_ends_early_are_of_those_that_count(store: RunStore, order: Iterable[int]) -> None:
    """The rule looks in the order of the plan, and ends the run after four; the last two paid the least."""
    keeper = Keeper(parse_selection("worst:2", "--video"), range(6), is_open_ended=True)
    keeper.open(store)
    ended: set[int] = set()
    for index in order:
        take(keeper, index, return_=10.0 - index)
        ended.add(index)
        keeper.count(min(4, next(one for one in range(7) if one not in ended)))
    keeper.finish(4)
    assert store.files("videos/*") == ["videos/ep-000003.mp4", "videos/ep-000004.mp4"]


def test_the_worst_of_a_run_that_did_not_end_early_are_of_all(store: RunStore) -> None:
    keeper = Keeper(parse_selection("worst:2", "--video"), range(4), is_open_ended=True)
    keeper.open(store)
    for index in (3, 2, 0):  # of 1 it is not known what became
        take(keeper, index, return_=10.0 - index)
        keeper.count(int(index == 0))
    keeper.finish(math.inf)
    assert store.files("videos/*") == ["videos/ep-000003.mp4", "videos/ep-000004.mp4"]


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
