"""What is written: strict JSON that says everything, in a folder of its own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from running import finish, play, policy, read_run, start, strict_loads

from rlmesh_cli.records import strict_json
from rlmesh_cli.store import RunStore


def test_numpy_values_become_numbers_and_what_is_not_finite_becomes_null_and_a_flag() -> None:
    """K44."""
    record = {
        "rows": [
            {"index": np.int64(0), "return": np.float32(1.5), "success": np.bool_(True), "last": np.arange(2.0)},
            {"index": 1, "return": float("nan"), "success": None, "seconds": np.float64("inf")},
        ]
    }
    assert strict_loads(strict_json(record).decode()) == {
        "rows": [
            {"index": 0, "return": 1.5, "success": True, "last": [0.0, 1.0]},
            {"index": 1, "return": None, "success": None, "seconds": None},
        ],
        "nonfinite": ["rows[1].return", "rows[1].seconds"],
        "infinite": {"rows[1].seconds": "inf"},
    }


@pytest.mark.parametrize("keys", [(0, "0"), (np.int64(1), 1), (True, "True"), (None, "None")])
def test_two_keys_that_json_would_merge_are_refused(keys: tuple[Any, Any]) -> None:
    """K44."""
    histogram = [(keys[0], 2), (keys[1], 9)]
    record = {"histogram": dict(histogram)}
    if len(record["histogram"]) < 2:
        assert strict_loads(strict_json(record).decode()) == {"histogram": {str(keys[1]): 9}}
        return
    with pytest.raises(ValueError, match="two keys are written alike"):
        strict_json(record)


def test_numbers_of_a_route_file_are_numbers(tmp_path: Path) -> None:
    """K43. PyYAML reads 1e-3, 1e6 and 1.0e6 as text."""
    path = tmp_path / "route.yaml"
    path.write_text(
        "env:\n  id: toys:Stamped-v0\n  kwargs: {breaks_at: 1e6}\n"
        "policy:\n  source: p.py\n"
        "  params: {a: 1e-3, b: [-1e-2, 1e-2], c: 1.0e6, d: -5e-4, e: 1.0e-3, f: '1e-3'}\n"
    )
    (tmp_path / "p.py").write_text(
        "class Policy:\n"
        "    def __init__(self, a, b, c, d, e, f):\n"
        "        assert (a, b, c, d, e, f) == (0.001, [-0.01, 0.01], 1000000.0, -0.0005, 0.001, '1e-3')\n"
        "    def predict(self, obs):\n        return [0, 0, 0]\n"
    )
    played = play(tmp_path, None, route=path, episodes=1)
    assert played.code == 0
    assert played.record["route"]["env"]["kwargs"] == {"breaks_at": 1e6}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("success: {return_at_least: inf}", ["success.return_at_least", "finite", "route.yaml:3"]),
        ("success: {return_at_least: .inf}", ["success.return_at_least", "finite", "route.yaml:3"]),
        ("success: {return_at_least: .nan}", ["success.return_at_least", "finite", "route.yaml:3"]),
        ("success: {key: None}", ["`None` is not a YAML value", "write null", "route.yaml:3"]),
        ("horizon: 1e0", ["horizon must be", "1.0", "route.yaml:3"]),
        ("episodes: '3'", ["episodes must be", "'3'", "route.yaml:3"]),
        ("horizon: 2\nhorizon: 3", ["`horizon` stands twice", "line 3", "route.yaml:4"]),
        ("epsiodes: 3", ["unknown key `epsiodes`", "did you mean `episodes`", "route.yaml:3"]),
    ],
)
def test_what_cannot_be_meant_is_refused_with_key_and_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, words: list[str]
) -> None:
    """K43."""
    path = tmp_path / "route.yaml"
    path.write_text(f"env: {{id: 'toys:Coins-v0'}}\npolicy: {{source: zero}}\n{line}\n")
    played = play(tmp_path, None, route=path)
    assert played.code == 2
    assert not played.out.exists()
    message = capsys.readouterr().err
    for part in words:
        assert part in message


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_terminal_that_knows_few_signs_is_shown_what_it_can_show(tmp_path: Path, encoding: str) -> None:
    """K49. The environment's own words hold signs that neither encoding has."""
    (tmp_path / "übung.py").write_text(
        "import gymnasium as gym\nimport toys\n"
        "class Übung(toys.Coins):\n    def pay(self, action):\n"
        "        if self.seed == 1:\n"
        "            raise RuntimeError('Gelenk gebrochen \\u2192 \\U0001f916 \\u00b1 1')\n"
        "        return super().pay(action)\n"
        "gym.register('\\u00dcbung-v0', entry_point=Übung)\n"
        "class Policy:\n    def predict(self, obs):\n        print('\\u2192')\n        return 0\n",
        encoding="utf-8",
    )
    arguments = ("übung.py", "--env", "Übung-v0", "-n", "3", "--out", "läufe", "--all")
    code, out, err = finish(start(*arguments, cwd=tmp_path, PYTHONIOENCODING=encoding, PYTHONUTF8="0"))
    assert (code, b"Traceback" in err) == (4, False)
    shown = out.decode(encoding)
    assert "Gelenk gebrochen ? ? " in shown
    assert "111" in shown
    played = read_run(tmp_path / "läufe", code)
    assert played.folder is not None
    assert played.rows[1]["error"]["message"] == "RuntimeError: Gelenk gebrochen \u2192 \U0001f916 \u00b1 1"
    for file in played.folder.iterdir():
        content = file.read_bytes()
        content.decode("utf-8")
        assert b"\r" not in content
        assert content.endswith(b"\n")


def test_no_sign_that_a_file_system_refuses_is_in_a_name_and_two_ids_share_no_folder(tmp_path: Path) -> None:
    """K49."""
    ids = ("ALE/Pong-v5", "ALE:Pong-v5", "toys:Echo-v0", "..", "CON", "a" * 300, "Übung-v0", "", "x\ny")
    stores = [RunStore(tmp_path, env=name, policy=name) for name in ids]
    for store in stores:
        store.close()
        assert store.path.is_dir()
        assert store.path.parent == tmp_path
        assert store.path.name.isascii()
        assert not set(store.path.name) & set('/\\:*?"<>|\n ')
        assert len(store.path.name) < 200
    assert len({store.path for store in stores}) == len(ids)


def test_an_id_with_a_namespace_is_played_into_one_folder_without_subfolders(tmp_path: Path) -> None:
    """K49."""
    played = play(tmp_path, "echo", "toys:Toys/Echo-v0", episodes=2)
    assert played.column("return") == [5.0, 7.0]
    assert played.folder is not None
    assert sorted(os.listdir(played.folder)) == ["episodes.jsonl", "run.json", "summary.json"]


def test_two_runs_at_once_share_an_out_folder_and_no_row(tmp_path: Path) -> None:
    """K52."""
    processes = [
        start(policy("idle"), "--env", "toys:Coins-v0", "-n", "40", "--seed", seed, "--out", "both", cwd=tmp_path)
        for seed in ("0", "1000")
    ]
    assert [finish(process)[0] for process in processes] == [0, 0]
    folders = sorted((tmp_path / "both").iterdir())
    assert len(folders) == 2
    seeds = [
        [strict_loads(line)["seed"] for line in (folder / "episodes.jsonl").read_text().splitlines()]
        for folder in folders
    ]
    assert sorted(seeds) == [list(range(40)), list(range(1000, 1040))]
    for folder in folders:
        assert strict_loads((folder / "run.json").read_text())["status"] == "finished"


@pytest.mark.parametrize("flags", [{}, {"autoreset": "next_step"}, {"vectorization": "async"}])
def test_a_record_says_what_was_run_with_what_and_how(tmp_path: Path, flags: dict[str, Any]) -> None:
    """K52."""
    flags = {"episodes": 2, "num_envs": 2, "seed": 3, "horizon": 2, "success": "return >= 4", **flags}
    run = play(tmp_path, "idle", "CartPole-v1", **flags)
    record = run.record
    assert record["schema"] == "rlmesh.run.v1"
    assert record["seeds"] == [3, 4]
    assert record["versions"]["gymnasium"] == gym.__version__
    assert record["versions"]["numpy"] == np.__version__
    assert record["env"]["id"] == "CartPole-v1"
    assert "CartPoleEnv" in record["env"]["layers"]
    assert record["env"]["autoreset"] == flags.get("autoreset", "disabled")
    assert record["limits"]["steps"] == record["env"]["max_episode_steps"] == 500
    assert record["policy"]["horizon"] == 2
    assert record["success_rule"] == "return >= 4"
    assert record["policy"]["file"]["path"] == policy("idle")
    assert record["started_at"] <= record["finished_at"]
    assert run.advisory("no-time-limit") is None
