"""The example routes on their real environments: better than chance, and the same on one lane as on eight."""

import json
from pathlib import Path
from typing import Any

import pytest

from rlmesh_cli.episodes import row_without_arrangement
from rlmesh_cli.evaluation_command import Request, run
from rlmesh_cli.exits import Exit

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore")]

EXAMPLES = Path(__file__).parents[2] / "examples"
# route, what the policy must at least score on average, by how much it must beat chance
ROUTES = [("minigrid", 0.9, 0.5), ("pointmaze", 150, 100), ("pusht", 5, 3)]
# Two fresh environments with one seed and the same actions differ in the last bits.
LAST_BITS_VARY = ("pusht",)


def played(out: Path, route: Path, **options: Any) -> tuple[float, list[dict[str, Any]]]:
    out.mkdir()
    assert run(Request(route=route, episodes=8, out=out, quiet=True, **options)) is Exit.DONE
    (folder,) = out.iterdir()
    rows = [json.loads(line) for line in (folder / "episodes.jsonl").read_text().splitlines()]
    rows = [row_without_arrangement(row) for row in sorted(rows, key=lambda row: row["index"])]
    return json.loads((folder / "summary.json").read_text())["mean_return"], rows


@pytest.mark.parametrize(("name", "least", "more"), ROUTES, ids=[name for name, *_ in ROUTES])
def test_route_scores_better_than_chance_and_alike_on_any_lanes(tmp_path, name, least, more):
    route = EXAMPLES / f"{name}.yaml"
    score, many = played(tmp_path / "many", route, num_envs=8)
    _, one = played(tmp_path / "one", route, num_envs=1)
    if name not in LAST_BITS_VARY:
        assert many == one
    chance, _ = played(tmp_path / "chance", route, num_envs=8, policy="random", horizon=1)
    assert score >= least
    assert score >= chance + more
