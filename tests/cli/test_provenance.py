"""Provenance: versions, machine, git state and file hashes of a run."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import gymnasium
import msgspec
import numpy as np
import pytest

import rlmesh_cli
from rlmesh_cli.provenance import GitState, file_record, host, versions, weight_files

WHO = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false", "-c", "init.defaultBranch=main")


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *WHO, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path, monkeypatch) -> Path:
    """Return a repository with one commit of one file."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    for name in list(os.environ):
        if name.startswith("GIT_"):
            monkeypatch.delenv(name)
    git(tmp_path, "init", "-q")
    (tmp_path / "policy.py").write_text("one")
    (tmp_path / "sub").mkdir()
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "one")
    return tmp_path


def test_clean_checkout_is_commit_and_branch(checkout):
    expected = {"commit": git(checkout, "rev-parse", "HEAD"), "branch": "main", "dirty": False}
    assert GitState(checkout).read() == expected
    assert GitState(checkout / "sub").read() == expected


def test_changed_or_staged_file_makes_it_dirty_and_an_untracked_one_does_not(checkout):
    (checkout / "notes.txt").write_text("new")
    assert GitState(checkout).read()["dirty"] is False
    (checkout / "policy.py").write_text("two")
    assert GitState(checkout).read()["dirty"] is True
    git(checkout, "add", "policy.py")
    assert GitState(checkout).read()["dirty"] is True


def test_detached_head_and_empty_repository_are_told_apart(checkout, tmp_path_factory):
    commit = git(checkout, "rev-parse", "HEAD")
    git(checkout, "checkout", "-q", "--detach")
    assert GitState(checkout).read() == {"commit": commit, "branch": "(detached)", "dirty": False}
    empty = tmp_path_factory.mktemp("empty")
    git(empty, "init", "-q")
    assert GitState(empty).read()["commit"] in (None, "(initial)")


def test_outside_a_checkout_there_is_no_state(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert GitState(tmp_path).read() is None
    assert GitState(tmp_path / "not there").read() is None


def test_without_git_there_is_no_state(checkout, monkeypatch):
    monkeypatch.setenv("PATH", str(checkout))
    assert GitState(checkout).read() is None


def test_git_that_hangs_is_given_up(tmp_path, monkeypatch):
    fake = tmp_path / "git"
    fake.write_text("#!/bin/sh\nexec sleep 60\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr("rlmesh_cli.provenance._GIT_SECONDS", 0.05)
    assert GitState(tmp_path).read() is None


def test_looking_does_not_write_into_the_users_repository(checkout):
    """A plain `git status` refreshes the index under a lock, in the way of whatever the user does meanwhile."""
    os.utime(checkout / "policy.py", (1, 1))
    before = (checkout / ".git" / "index").read_bytes()
    assert GitState(checkout).read()["dirty"] is False
    assert (checkout / ".git" / "index").read_bytes() == before


def test_asking_twice_is_harmless(checkout):
    state = GitState(checkout)
    answer = state.read()
    assert answer is not None
    assert state.read() == answer


def test_versions_are_those_of_what_is_loaded():
    found = versions(("cli_toys.sub", "msgspec.json"))
    assert found["python"] == ".".join(map(str, sys.version_info[:3]))
    assert found["rlmesh-cli"] == rlmesh_cli.__version__
    assert (found["gymnasium"], found["numpy"]) == (gymnasium.__version__, np.__version__)
    assert found["msgspec"] == msgspec.__version__
    assert "cli_toys" not in found
    assert "" not in versions(("",))


def test_package_whose_version_is_no_text_is_left_out(monkeypatch):
    monkeypatch.setitem(sys.modules, "odd_package", SimpleNamespace(__version__=(1, 2)))
    assert "odd_package" not in versions(("odd_package.envs",))


def test_host_says_where_it_ran():
    found = host()
    assert found["cpus"] == os.cpu_count()
    assert found["name"] == os.uname().nodename


def test_file_record_is_its_size_and_hash(tmp_path):
    content = os.urandom(3_000_000)
    (tmp_path / "w.bin").write_bytes(content)
    record = file_record(tmp_path / "w.bin")
    assert record == {
        "path": str(tmp_path / "w.bin"),
        "bytes": 3_000_000,
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def test_weights_are_the_files_that_parameters_and_policy_name(tmp_path):
    for name in ("a.bin", "b.bin", "c.bin"):
        (tmp_path / name).write_text(name)
    a, b, c = (tmp_path / name for name in ("a.bin", "b.bin", "c.bin"))
    params = {
        "checkpoint": str(a),
        "folder": str(tmp_path),
        "gain": 3,
        "empty": "",
        "none": None,
        "long": "x" * 5000,
    }

    def names(policy: object) -> list[str]:
        return [Path(record["path"]).name for record in weight_files(params, policy)]

    assert names(object()) == ["a.bin"]
    assert names(SimpleNamespace(weights=b)) == ["a.bin", "b.bin"]
    assert names(SimpleNamespace(weights=[str(b), c])) == ["a.bin", "b.bin", "c.bin"]
    assert names(SimpleNamespace(weights=None)) == ["a.bin"]


class Shy:
    @property
    def weights(self):
        raise RuntimeError("not loaded yet")


ODD_WEIGHTS = {
    "vector": np.zeros(4),
    "matrix": np.zeros((2, 2)),
    "scalar array": np.zeros(()),
    "number": 5,
    "truth": True,
    "named arrays": {"w": np.zeros(2)},
    "listed arrays": [np.zeros(2), 1],
    "function": lambda: None,
    "bytes": b"x",
    "object": object(),
}


@pytest.mark.parametrize("what", ODD_WEIGHTS)
def test_weights_that_are_no_file_names_are_no_files(what):
    assert weight_files({}, SimpleNamespace(weights=ODD_WEIGHTS[what])) == []


def test_weights_that_cannot_be_read_are_no_files():
    assert weight_files({}, Shy()) == []
