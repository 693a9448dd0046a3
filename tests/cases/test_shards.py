"""What is sent to a cluster, and what is said where that cannot be."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from running import play

from rlmesh_adapters.errors import HarnessError
from rlmesh_cli.schema import EnvRoute, PolicyRoute, Route
from rlmesh_cli.shards import shipping
from rlmesh_cli.shards.shipping import pack


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="Ray is installed")
def test_a_cluster_without_ray_names_the_extra(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    played = play(tmp_path, "durable_toys:Draws", "durable_toys:Diary", episodes=2, cluster="ray")
    assert (played.code, played.folder) == (2, None)
    assert "pip install 'rlmesh-cli[ray]', here and on the nodes" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"ray_resources": "cpu=2"}, "resources of workers need a cluster"),
        ({"cluster": " "}, "the cluster's address is empty"),
        ({"cluster": "ray", "ray_resources": "cpu"}, "`cpu` is not NAME=VALUE"),
        ({"cluster": "ray", "ray_resources": "cpu=-1"}, "--ray-resources"),
    ],
)
def test_flags_that_cannot_be_meant_are_refused(
    tmp_path: Path, flags: dict[str, Any], words: str, capsys: Any
) -> None:
    assert play(tmp_path, "zero", "CartPole-v1", episodes=2, **flags).code == 2
    assert words in capsys.readouterr().err


def route(source: str, env: str = "CartPole-v1") -> Route:
    return Route(env=EnvRoute(id=env), policy=PolicyRoute(source=source), cluster="ray")


def test_the_policys_folder_is_sent_and_its_places_are_called_as_here(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("")
    packed = pack(route(f"{tmp_path / 'p.py'}:Name"), {"route_file": str(tmp_path / "routes" / "r.yaml")})
    assert (packed.folder, packed.policy, packed.route_file) == (tmp_path, "p.py", "routes/r.yaml")
    assert pack(route(str(tmp_path / "p.py")), {"route_file": "/elsewhere/r.yaml"}).route_file is None
    assert pack(route("random"), {}).folder is None


def test_a_folder_that_is_too_large_is_refused_by_its_largest_parts(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(shipping, "LIMIT_BYTES", 2_000_000)
    (tmp_path / "p.py").write_text("")
    for name in ("runs", ".git", "weights"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "large.bin").write_bytes(b"\0" * 1_500_000)
    pack(route(str(tmp_path / "p.py")), {})
    (tmp_path / "more.bin").write_bytes(b"\0" * 1_000_000)
    with pytest.raises(HarnessError, match=r"holds 2 MB, and at most 2 MB are sent .* weights \(2 MB\)") as caught:
        pack(route(str(tmp_path / "p.py")), {})
    assert "runs, .git, .venv, __pycache__ are left out" in caught.value.mend
