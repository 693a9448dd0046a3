"""`run.json` after an edit: a field with a value of each wrong kind is a message, never a traceback."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rlmesh_adapters.errors import HarnessError
from rlmesh_cli.app import app
from rlmesh_cli.run_reader import read_run

WORLD = """
import edited_beside
import gymnasium as gym
import numpy as np
from gymnasium import spaces


class World(gym.Env):
    observation_space = spaces.Box(-1, 1, (2,), np.float32)
    action_space = spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self.np_random.uniform(-1, 1, 2).astype(np.float32), {}

    def step(self, action):
        self.t += 1
        return np.zeros(2, np.float32), float(action[0]), self.t == 3, False, {"is_success": True, "speed": 1.0}
"""
POLICY = """
import numpy as np


class Policy:
    spec = {
        "input": {"type": "state", "components": ["x/obs"]},
        "output": {"components": [{"role": "x/act", "dim": 1}]},
    }

    def __init__(self, weights):
        self.weights = weights

    def predict_batch(self, obs):
        return np.full((len(obs), 1), 0.5)
"""
ROUTE = {
    "version": 1,
    "env": {"id": "edited_world:World"},
    "policy": {"source": "edited_policy.py:Policy", "params": {"weights": "edited.npz"}},
    "env_tags": {
        "observation": {"type": "state", "role": "x/obs"},
        "action": {"components": [{"role": "x/act", "dim": 1}]},
    },
    "num_envs": 2,
    "episodes": 3,
    "metrics": ["speed"],
    "gates": ["success_rate >= 0.5"],
}
#: One of each kind that JSON has, two of texts, and lists of each.
VALUES = [None, True, 5, -1.5, "x", [], {}, [5], ["x"], [{}], [None], {"a": 5}]
#: Values inside of these are passed on as they are, or belong to another document.
PASSED_ON = {"conversion", "host", "probe", "versions", "argv", "env_tags"}
Place = tuple[str | int, ...]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a run whose record has every field: files of policy, weights, environment, and a module beside."""
    home = tmp_path_factory.mktemp("home")
    for name, text in [("world", WORLD), ("policy", POLICY), ("beside", "GAIN = 0.5\n")]:
        (home / f"edited_{name}.py").write_text(text)
    (home / "edited.npz").write_text("0.5")
    (home / "route.json").write_text(json.dumps(ROUTE))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        patch.syspath_prepend(home)
        assert invoke("eval", "--route", "route.json", "--quiet", "--out", home / "runs") == 0
        (folder,) = (home / "runs").iterdir()
        yield folder


def invoke(*arguments: object) -> int:
    """Return the exit code of a command, which is never that of a bug."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code != 70, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result.exit_code


def places(value: Any, place: Place = ()) -> Iterator[Place]:
    """Yield where a record can be edited; of a list the first entry stands for all."""
    if place:
        yield place
    if place and place[-1] in PASSED_ON:
        return
    parts = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, part in parts:
        yield from places(part, (*place, key))


def with_value(record: dict[str, Any], place: Place, value: Any) -> dict[str, Any]:
    edited = copy.deepcopy(record)
    *sections, name = place
    inner: Any = edited
    for section in sections:
        inner = inner[section]
    inner[name] = value
    return edited


def unfinished_copy(run: Path, folder: Path) -> Path:
    """Return a copy of the run that lacks its last episode."""
    copied = Path(shutil.copytree(run, folder / run.name, dirs_exist_ok=True))
    lines = (copied / "episodes.jsonl").read_text().splitlines(keepends=True)
    (copied / "episodes.jsonl").write_text("".join(lines[:-1]))
    (copied / "summary.json").unlink()
    return copied


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (("env", "files", 0, "path"), 5, "Expected `str`, got `int` - at `$.env.files[0].path`"),
        (("env", "files", 0), 5, "Expected `object`, got `int` - at `$.env.files[0]`"),
        (("policy", "file"), True, "Expected `object | null`, got `bool` - at `$.policy.file`"),
        (("policy", "weights", 0, "sha256"), None, "Expected `str`, got `null` - at `$.policy.weights[0].sha256`"),
        (("modules", 0, "sha256"), None, "Expected `str`, got `null` - at `$.modules[0].sha256`"),
        (("route_file",), 5, "Expected `str | null`, got `int` - at `$.route_file`"),
    ],
)
def test_field_that_was_edited_is_named_by_every_command(
    run: Path, tmp_path: Path, place: Place, value: Any, words: str
) -> None:
    record = json.loads((run / "run.json").read_text())
    folder = unfinished_copy(run, tmp_path)
    (folder / "run.json").write_text(json.dumps(with_value(record, place, value)))
    for command in (
        ("compare", folder, run),
        ("compare", run, folder),
        ("show", folder),
        ("replay", folder, "0"),
        ("eval", "--resume", folder),
    ):
        result = CliRunner().invoke(app, [str(part) for part in command])
        assert result.exit_code == 2, (command, result.output)
        assert " ".join(words.split()) in " ".join(result.output.split())
        assert str(folder / "run.json") in result.output
    assert invoke("runs", "--out", tmp_path) == 0  # listed as damaged


@pytest.mark.slow
@pytest.mark.parametrize("section", [None, "route", "env", "policy"])
def test_no_field_of_any_kind_ends_in_a_traceback(run: Path, tmp_path: Path, section: str | None) -> None:
    """What the reader refuses is refused by every command alike; what it lets pass, each of them is tried on."""
    record = json.loads((run / "run.json").read_text())
    refused = passed = 0
    for place in places(record):
        if (place[0] if place[0] in ("route", "env", "policy") else None) != section:
            continue
        for value in VALUES:
            folder = unfinished_copy(run, tmp_path)
            (folder / "run.json").write_text(json.dumps(with_value(record, place, value)))
            try:
                read_run(folder)
            except HarnessError:
                refused += 1
                continue
            passed += 1
            invoke("compare", folder, run)
            invoke("compare", run, folder)
            invoke("show", folder)
            invoke("runs", "--out", tmp_path)
            invoke("replay", folder, "0")
            invoke("eval", "--resume", folder, "--quiet")
    assert min(refused, passed) > 20


@pytest.mark.parametrize(
    "place", [("env",), ("env", "id"), ("policy",), ("route", "policy"), ("policy", "file", "path")]
)
def test_field_that_was_taken_out_is_named(run: Path, tmp_path: Path, place: Place) -> None:
    record = json.loads((run / "run.json").read_text())
    folder = unfinished_copy(run, tmp_path)
    *sections, name = place
    inner = record
    for section in sections:
        inner = inner[section]
    del inner[name]
    (folder / "run.json").write_text(json.dumps(record))
    with pytest.raises(HarnessError, match=f"missing required field `{name}`"):
        read_run(folder)


def test_actuators_that_lack_a_count_are_gone_on_with(run: Path, tmp_path: Path) -> None:
    """Nothing is known of the earlier sitting then, and what is added is that of the new one."""
    record = json.loads((run / "run.json").read_text())
    (folder, whole) = (unfinished_copy(run, tmp_path / name) for name in ("edited", "whole"))
    del record["actuators"][0]["values"]
    (folder / "run.json").write_text(json.dumps(record))
    told = []
    for one in (folder, whole):
        assert invoke("eval", "--resume", one, "--quiet") == 0
        told.append(json.loads((one / "run.json").read_text())["actuators"][0]["values"])
    before = json.loads((run / "run.json").read_text())["actuators"][0]["values"]
    assert told[1] - told[0] == before == 9  # three episodes of three steps
