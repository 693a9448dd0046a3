from __future__ import annotations

import pytest
from adapter_fakes import contexts

from rlmesh_adapters.context import EpisodeContext
from rlmesh_adapters.roster import Roster, check_episode_ids


def test_row_r_belongs_to_lane_r_and_episode_r() -> None:
    episodes = contexts(4, 9)
    roster = Roster([3, 1], list(episodes))
    assert (roster.lanes, roster.episodes, len(roster), roster.count) == ((3, 1), episodes, 2, 2)
    assert roster.lane_index.tolist() == [3, 1]


def test_other_episodes_on_the_same_lanes_are_another_company() -> None:
    roster = Roster((0, 2), contexts(0, 1))
    next_one = roster.playing(contexts(2, 3))
    assert next_one is not roster
    assert next_one.lanes is roster.lanes
    assert [episode.episode_id for episode in next_one.episodes] == ["ep-000003", "ep-000004"]
    assert [episode.episode_id for episode in roster.episodes] == ["ep-000001", "ep-000002"]


def test_lanes_and_episodes_must_be_as_many() -> None:
    with pytest.raises(ValueError, match="2 lanes but 1 episodes"):
        Roster((0, 1), contexts(0))


def named(*ids: str) -> list[EpisodeContext]:
    return [EpisodeContext(known, place, place) for place, known in enumerate(ids)]


@pytest.mark.parametrize("ids", [(), ("a",), ("a", "b", "é")])
def test_distinct_ids_pass(ids: tuple[str, ...]) -> None:
    assert check_episode_ids(named(*ids)) is None


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        (("a", ""), "row 1 has an empty episode id"),
        (("", ""), "row 0 has an empty episode id"),
        (("a", "b", "a"), "episode id a appears twice, again in row 2"),
    ],
)
def test_empty_and_repeated_ids_are_named(ids: tuple[str, ...], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check_episode_ids(named(*ids))
