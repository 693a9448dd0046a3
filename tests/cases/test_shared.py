"""The same facts with environments, policies and answers of somebody else, where these lie beside the checkout."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from running import TESTS, Played, play

SHARED = TESTS.parent.parent / "shared" / "cases"

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="there are no such cases beside the checkout")


@pytest.fixture(autouse=True)
def _toyenvs_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(SHARED)])


def answers(case: str) -> Any:
    return json.loads((SHARED / "expected_rollout.json").read_text())[case]


def load(path: Path) -> ModuleType:
    """Import a file under a name that no module of ours has."""
    spec = importlib.util.spec_from_file_location(f"shared_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(tmp_path: Path, policy: str, env: str, **flags: Any) -> Played:
    flags = {"seed": 0, **flags}
    return play(tmp_path, str(SHARED / "policies" / f"{policy}.py"), f"toyenvs:Toy{env}-v0", **flags)


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize(
    ("policy", "env"),
    [
        ("zero", "TwoSpeed"), ("zero", "Fixed"), ("zero", "SparseInfo"), ("zero", "Blink"), ("zero", "Fall"),
        ("zero", "Already"), ("zero", "Clipped"), ("zero", "Odd"), ("perfect_echo", "Echo"), ("counting", "Echo"),
        ("with_dataclass", "Echo"), ("noisy_module", "TwoSpeed"),
    ],
)  # fmt: skip
def test_rows_are_those_of_their_oracle(tmp_path: Path, policy: str, env: str, lanes: int) -> None:
    played = run(tmp_path, policy, env, episodes=8, num_envs=lanes)
    plainly = {"noisy_module": "zero", "with_dataclass": "perfect_echo"}.get(policy, policy)
    body = load(SHARED / "policies" / f"{plainly}.py").Policy()
    expected = load(SHARED / "oracle.py").run(f"toyenvs:Toy{env}-v0", body, range(8))
    names = {"ret": "return"}
    assert [{name: row[names.get(name, name)] for name in expected[0]} for row in played.rows] == expected


def test_counts_are_those_they_wrote_down(tmp_path: Path) -> None:
    right = answers("K01")["right"]
    played = run(tmp_path, "zero", "TwoSpeed", episodes=8, num_envs=4)
    assert played.column("seed") == right["seeds"]
    assert played.column("length") == right["lengths"]
    assert played.summary["mean_return"] == right["mean_return"]
    for case, expected in answers("K02").items():
        episodes, lanes = (int(part.partition("=")[2]) for part in case.split(","))
        played = run(tmp_path, "zero", "TwoSpeed", episodes=episodes, num_envs=lanes)
        assert played.column("seed") == expected["seeds"]
        assert played.summary["mean_return"] == pytest.approx(expected["mean_return"])


@pytest.mark.parametrize(("case", "mode"), [("K03", "next_step"), ("K04", "same_step")])
def test_lengths_under_an_autoreset_are_those_they_wrote_down(tmp_path: Path, case: str, mode: str) -> None:
    played = run(tmp_path, "zero", "Fixed", episodes=3, autoreset=mode)
    assert [[row["length"], row["return"]] for row in played.rows] == answers(case)["right"]


def test_success_is_what_they_wrote_down(tmp_path: Path) -> None:
    played = run(tmp_path, "zero", "SparseInfo", episodes=6, num_envs=6)
    right = answers("K06")
    assert [[row["seed"], row["success"]] for row in played.rows] == right["rows"]
    assert played.summary["success"]["unknown"] == right["right"]["unknown"]
    assert played.summary["success_rate"] == right["right"]["rate_over_known"]


@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_chunks_are_replayed_as_they_wrote_down(tmp_path: Path, lanes: int) -> None:
    played = run(tmp_path, "chunk_echo", "Echo", episodes=4, horizon=4, num_envs=lanes)
    assert [[row["seed"], row["length"], row["return"], row["policy_calls"]] for row in played.rows] == answers(
        "K17"
    )["right"]
    for horizon, calls in answers("K18").items():
        played = run(tmp_path, "chunk_echo", "Echo", episodes=2, horizon=int(horizon[2:]), num_envs=lanes)
        assert played.column("policy_calls") == [calls["L=5"], calls["L=7"]]


@pytest.mark.parametrize("lanes", [1, 4])
def test_memory_and_modes_are_as_they_wrote_down(tmp_path: Path, lanes: int) -> None:
    played = run(tmp_path, "counting", "Echo", episodes=4, num_envs=lanes)
    assert [[row["seed"], row["length"], row["return"]] for row in played.rows] == answers("K20")["right"]
    played = run(tmp_path, "train_mode", "Echo", episodes=4, num_envs=lanes)
    assert played.column("return") == answers("K22")["right"]


@pytest.mark.parametrize("flags", [{}, {"vectorization": "async"}])
def test_odd_numbers_are_as_they_wrote_down(tmp_path: Path, flags: dict[str, Any]) -> None:
    played = run(tmp_path, "zero", "Odd", episodes=2, num_envs=2, **flags)
    assert played.column("return") == [answers("K42")["right_return"]] * 2
    assert played.column("success") == [answers("K42")["success"]] * 2
