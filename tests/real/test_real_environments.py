"""Real environments, 20 episodes each with the built-in `random`: rows do not depend on the number of lanes."""

import json
from pathlib import Path
from typing import Any

import pytest

from rlmesh_cli.episodes import row_without_arrangement
from rlmesh_cli.evaluation_command import Request, run
from rlmesh_cli.exits import Exit

# gymnasium and its plugins warn about their own versions and renderers
pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore")]

# id, arguments of its constructor, the key under which it reports success
ENVIRONMENTS = [
    ("FrozenLake-v1", (), None),
    ("Blackjack-v1", (), None),
    ("Pendulum-v1", (), None),
    ("MiniGrid-Empty-5x5-v0", (), None),
    ("HalfCheetah-v5", (), None),
    ("PointMaze_UMaze-v3", (), "success"),
    ("AdroitHandDoor-v1", (), "success"),
    ("gym_pusht/PushT-v0", ("obs_type=pixels",), "is_success"),
]


# Every episode of theirs starts alike.
ONE_START = ("FrozenLake-v1", "MiniGrid-Empty-5x5-v0")
# Two fresh environments with one seed and the same actions pay rewards that differ in the last bits.
LAST_BITS_VARY = ("gym_pusht/PushT-v0",)


def play(
    out: Path, env: str, arguments: tuple[str, ...], lanes: int
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    request = Request(
        policy="random", env=env, env_args=arguments, episodes=20, num_envs=lanes, seed=7, out=out, quiet=True
    )
    assert run(request) is Exit.DONE
    (folder,) = out.iterdir()
    lines = (folder / "episodes.jsonl").read_text().splitlines()
    rows = sorted((json.loads(line) for line in lines), key=lambda row: row["index"])
    return json.loads((folder / "summary.json").read_text()), [row_without_arrangement(row) for row in rows]


@pytest.mark.parametrize(("env", "arguments", "success_key"), ENVIRONMENTS, ids=lambda value: str(value))
def test_eight_lanes_give_the_rows_of_one(
    tmp_path: Path, env: str, arguments: tuple[str, ...], success_key: str | None
) -> None:
    summary, many = play(tmp_path / "many", env, arguments, lanes=8)
    _, one = play(tmp_path / "one", env, arguments, lanes=1)
    if env in LAST_BITS_VARY:
        assert [row.pop("return") for row in many] == pytest.approx([row.pop("return") for row in one], abs=1e-9)
        for row in (*many, *one):
            del row["trace_hash"]
    assert many == one
    assert [row["seed"] for row in many] == list(range(7, 27))
    assert (len({row["start_hash"] for row in many}) == 1) == (env in ONE_START)
    assert {row["success_source"] for row in many} == {success_key}
    assert (summary["success_rate"] is None) == (success_key is None)
