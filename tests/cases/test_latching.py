"""What a policy takes from its first call, and keeps for good, is found although every instance shares it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from running import POLICIES, play
from typer.testing import CliRunner

from rlmesh_cli.app import app

PENDULUM = "Pendulum-v1"
LATCHES = ["OnTheClass", "InTheModule", "agent"]


def copied(tmp_path: Path, name: str) -> str:
    """Return one of the policies, in a file that nobody in this process has run before."""
    file = shutil.copy(POLICIES / "latching.py", tmp_path / "latching.py")
    return f"{file}:{name}"


def probed(source: str) -> tuple[int, dict[str, Any]]:
    result = CliRunner().invoke(app, ["probe", source, "--env", PENDULUM, "--json"])
    return result.exit_code, json.loads(result.stdout)


@pytest.mark.parametrize("name", LATCHES)
def test_the_probe_says_that_it_leaks(tmp_path: Path, name: str) -> None:
    code, told = probed(copied(tmp_path, name))
    assert (code, told["verdict"]) == (1, "leaks"), told["tests"]


@pytest.mark.parametrize("name", ["agent", "harmless"])
def test_of_one_object_of_a_module_it_is_said_that_it_cannot_be_found_out(name: str) -> None:
    _, told = probed(f"toy_policies.latching:{name}")
    assert (told["verdict"], told["is_lone"]) == ("unchecked", True)
    fresh = next(test for test in told["tests"] if test["name"] == "fresh")
    assert (fresh["outcome"], "only one object" in fresh["sentence"]) == ("not checked", True)


@pytest.mark.parametrize("name", LATCHES)
def test_a_run_on_several_lanes_refuses_it_or_says_so(tmp_path: Path, name: str) -> None:
    played = play(tmp_path, copied(tmp_path, name), PENDULUM, episodes=3, num_envs=3, max_episode_steps=20)
    assert played.code == 2 or played.advisory("probe-unsure") is not None


def test_one_object_is_shared_with_a_word(tmp_path: Path) -> None:
    options: dict[str, Any] = {"episodes": 3, "max_episode_steps": 20}
    alone = play(tmp_path, "toy_policies.latching:harmless", PENDULUM, **options)
    shared = play(tmp_path, "toy_policies.latching:harmless", PENDULUM, num_envs=3, **options)
    of_file = play(tmp_path, copied(tmp_path, "harmless"), PENDULUM, num_envs=3, **options)
    assert alone.column("trace_hash") == shared.column("trace_hash") == of_file.column("trace_hash")
    lone = shared.advisory("policy-lone")
    assert lone is not None
    assert lone["severity"] == "caution"
    assert of_file.advisory("policy-lone") is None


@pytest.mark.parametrize("name", LATCHES[:2])
def test_lanes_are_not_verified_by_what_the_run_has_used(tmp_path: Path, name: str) -> None:
    """Alone, the first observation is episode 0's, and the first action is nothing; the run had seen another."""
    source = copied(tmp_path, name)
    options: dict[str, Any] = {"episodes": 2, "max_episode_steps": 20, "instances": "shared", "is_probed": False}
    play(tmp_path, source, PENDULUM, seed=7, **options)
    played = play(tmp_path, source, PENDULUM, num_envs=2, verify_lanes=2, **options)
    assert played.summary["verification"]["verdict"] == "differs"
