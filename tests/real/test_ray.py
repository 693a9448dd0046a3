"""`--cluster`: workers on the nodes of a real Ray cluster on this machine, one of which is lost on the way."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from running import TESTS, finish, play, read_run, start, unarranged

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore")]
pytest.importorskip("ray", reason="Ray is not installed: pip install 'rlmesh-cli[ray]'")

DRAWS = "durable_toys:Draws"
DIARY = "durable_toys:Diary"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head without processors, and two nodes with two each."""
    from ray.cluster_utils import Cluster  # noqa: PLC0415 - only there with Ray

    with pytest.MonkeyPatch.context() as patch:  # nodes know the toys, also for a driver that is no test
        patch.setenv("PYTHONPATH", str(TESTS), prepend=os.pathsep)
        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
        made.nodes = [made.add_node(num_cpus=2, resources={"arm": 1}) for _ in range(2)]
        made.wait_for_nodes()
    yield made
    made.shutdown()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: Any) -> Path:
    """A small working folder: that of a policy named by its module is shipped."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_run_on_a_cluster_is_a_run_on_this_machine(folder: Path, cluster: Any) -> None:
    flags = {"episodes": 17, "num_envs": 2, "horizon": 2}
    here = play(folder, "ragged:Chunks", "Ragged-v0", **flags)
    there = play(folder, "ragged:Chunks", "Ragged-v0", **flags, workers=2, cluster=cluster.address)
    assert there.code == here.code
    assert unarranged(there.rows) == unarranged(here.rows)
    assert sorted(there.written) == list(range(17))
    assert there.record["route"]["cluster"] == cluster.address


def test_a_cluster_is_started_for_the_run(folder: Path) -> None:
    """The policy's neighbours and weights are shipped, those that git ignores too."""
    (folder / "neighbour.py").write_text("OFFSET = 3\n")
    (folder / ".gitignore").write_text("*.bin\n")
    (folder / "weights.bin").write_bytes(b"\x02")
    (folder / "shipped_policy.py").write_text(
        "from pathlib import Path\n"
        "import neighbour\n"
        "class Policy:\n"
        "    def __init__(self):\n"
        "        self.weight = Path(__file__).with_name('weights.bin').read_bytes()[0]\n"
        "    def predict(self, obs):\n"
        "        return (int(obs[0]) * self.weight + neighbour.OFFSET) % 8\n"
    )
    here = play(folder, "shipped_policy.py", DIARY, episodes=6)
    command = ["shipped_policy.py", "--env", DIARY, "-n", "6", "--workers", "2", "--cluster", "ray"]
    code, _, err = finish(start(*command, "--out", "results", cwd=folder), seconds=120)
    assert code == 0, err
    assert unarranged(read_run(folder / "results", code).rows) == unarranged(here.rows)


def test_an_interrupted_run_leaves_no_actor(folder: Path, cluster: Any) -> None:
    process = begun(folder, cluster)
    process.terminate()
    code, said, _ = finish(process, seconds=60)
    assert code == 130
    rows = read_run(folder / "results", code).rows
    assert f"interrupted: {len(rows)} of 150 episodes are saved".encode() in said
    assert len(rows) >= 1


def begun(folder: Path, cluster: Any) -> Any:
    """Start a slow run on the cluster, and wait for its first rows."""
    command = [DRAWS, "--env", DIARY, "--env-arg", "nap=0.01", "-n", "150", "--cluster", cluster.address]
    process = start(*command, "--workers", "2", "--out", "results", cwd=folder)
    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        if any(path.stat().st_size for path in (folder / "results").glob("*/episodes.jsonl")):
            break
        time.sleep(0.05)
    return process


@pytest.mark.parametrize(
    ("name", "words"),
    [("numpy", "numpy is 0.1 here and "), ("policy", "the policy's file is 0.1 here and ")],
)
def test_another_version_on_a_node_is_refused(
    folder: Path, cluster: Any, name: str, words: str, monkeypatch: Any, capsys: Any
) -> None:
    from rlmesh_cli.shards import ray_executor  # noqa: PLC0415 - only there with Ray
    from rlmesh_cli.shards.relay import Node, look_around  # noqa: PLC0415

    def other(file: str | None, where: Path) -> Node:
        known = look_around(file, where)
        return Node(name=known.name, folder=known.folder, versions={**known.versions, name: "0.1"})

    monkeypatch.setattr(ray_executor, "look_around", other)
    (folder / "one_policy.py").write_text("def predict(obs):\n    return 1\n")
    played = play(folder, "one_policy.py", DIARY, episodes=4, workers=2, cluster=cluster.address)
    assert (played.code, played.folder) == (2, None)
    assert words in capsys.readouterr().err


def test_too_little_room_is_one_message(folder: Path, cluster: Any, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr("rlmesh_cli.shards.ray_executor.PLACE_SECONDS", 2.0)
    flags = {"workers": 3, "cluster": cluster.address, "ray_resources": "arm=1"}
    played = play(folder, DRAWS, DIARY, episodes=6, **flags)
    assert (played.code, played.folder) == (2, None)
    said = " ".join(capsys.readouterr().err.split())
    assert "no node has had room for worker" in said
    assert "(cpu=1, arm=1)" in said
    assert "the cluster has cpu=4, arm=2 in all" in said


def test_a_cluster_that_is_not_there_is_one_message(folder: Path, capsys: Any) -> None:
    played = play(folder, DRAWS, DIARY, episodes=4, workers=2, cluster="127.0.0.1:1")
    assert (played.code, played.folder) == (2, None)
    assert "the cluster `127.0.0.1:1` cannot be used" in capsys.readouterr().err


def test_a_worker_that_dies_on_a_node_is_replaced(folder: Path, cluster: Any) -> None:
    mark = folder / "mark"
    mark.mkdir()
    flags = {"episodes": 8, "num_envs": 2, "workers": 2, "cluster": cluster.address}
    arguments = (f"mark={mark}", "dies=true")
    played = play(folder, DRAWS, "durable_toys:Stumbles", env_args=arguments, **flags)
    sound = play(folder, DRAWS, DIARY, episodes=8)
    assert played.code == 0
    assert played.column("trace_hash") == sound.column("trace_hash")
    assert played.rows[2]["attempts"] == 1


def test_a_lost_node_loses_no_episode(folder: Path, cluster: Any) -> None:
    """The last of these tests: afterwards the cluster has one node."""
    process = begun(folder, cluster)
    cluster.remove_node(cluster.nodes[0], allow_graceful=False)
    code, said, err = finish(process, seconds=180)
    assert code == 0, err
    assert b"died" in said
    rows = unarranged(read_run(folder / "results", code).rows)
    assert rows == unarranged(play(folder, DRAWS, DIARY, episodes=150).rows)
