"""Files that a policy reads while it is built are its own, whether its parameters name them or not."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest
from running import play
from typer.testing import CliRunner

from rlmesh_cli.app import app
from rlmesh_cli.reading import data_files, files_read

POLICIES = """
import os
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
AT_IMPORT = np.load(HERE / "first.npy")


class Policy:
    def __init__(self, name="late"):
        # As libraries do that add the ending themselves.
        self.weights_of = np.load(HERE / f"{name}.npy")
        os.close(os.open(HERE / "raw.bin", os.O_RDONLY))
        with open(HERE / "log.txt", "a") as log:
            log.write("built")

    def predict(self, obs):
        return int(obs @ self.weights_of + AT_IMPORT > 0)
"""


def prepared(tmp_path: Path, value: float) -> str:
    np.save(tmp_path / "first.npy", 0.0)
    np.save(tmp_path / "late.npy", np.full(4, value))
    (tmp_path / "raw.bin").write_bytes(b"raw")
    (tmp_path / "policy.py").write_text(POLICIES)
    return str(tmp_path / "policy.py")


@pytest.mark.parametrize("lanes", [1, 2])
def test_what_is_read_is_hashed(tmp_path: Path, lanes: int) -> None:
    played = play(tmp_path, prepared(tmp_path, 1.0), "CartPole-v1", episodes=2, num_envs=lanes)
    found = {Path(file["path"]).name: file["sha256"] for file in played.record["policy"]["weights"]}
    assert found == {
        name: hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
        for name in ("first.npy", "late.npy", "raw.bin")
    }


def test_retrained_weights_are_another_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One run of two policies would say what neither does."""
    source = prepared(tmp_path, 1.0)
    run = play(tmp_path, source, "CartPole-v1", episodes=2).folder
    assert play(tmp_path, source, "CartPole-v1", resume=str(run), extend=1).code == 0
    replay = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["replay", str(run), "0", "--json"])
    assert replay.exit_code == 0
    prepared(tmp_path, -1.0)
    assert play(tmp_path, source, "CartPole-v1", resume=str(run), extend=1).code == 2
    assert "late.npy" in capsys.readouterr().err
    replay = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["replay", str(run), "0", "--json"])
    assert "late.npy" in json.dumps(json.loads(replay.stdout)["changes"])


def test_code_packages_and_what_is_written_are_no_data(tmp_path: Path) -> None:
    kept, written = tmp_path / "kept.txt", tmp_path / "written.txt"
    kept.write_text("x")
    heard: dict[str, None] = {}
    with files_read(heard):
        kept.read_text()
        written.write_text("y")
        Path(np.__file__).read_bytes()
        Path(os.__file__).read_bytes()
        Path("/proc/self/stat").read_bytes()
        (tmp_path / "gone.txt").write_text("z")
    kept.read_text()
    assert data_files(heard) == [str(kept)]
