"""Packaging: what the wheel holds."""

from __future__ import annotations

import configparser
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hatchling.build import build_sdist, build_wheel

import rlmesh_cli

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    """Return the wheel of the checkout, built without a network."""
    folder = tmp_path_factory.mktemp("wheel")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        name = build_wheel(str(folder))
    with zipfile.ZipFile(folder / name) as archive:
        yield archive


def test_top_level_is_our_three_packages(wheel):
    info = f"rlmesh_cli-{PROJECT['version']}.dist-info"
    assert {name.split("/")[0] for name in wheel.namelist()} == {
        "rlmesh_cli",
        "rlmesh_adapters",
        "rlmesh_envs",
        info,
    }


def test_every_source_file_is_shipped_and_nothing_else(wheel):
    shipped = {name for name in wheel.namelist() if ".dist-info/" not in name}
    sources = set()
    for parent, package in (
        (ROOT, "rlmesh_cli"),
        (ROOT / "adapters", "rlmesh_adapters"),
        (ROOT / "envs", "rlmesh_envs"),
    ):
        files = (
            path for path in (parent / package).rglob("*") if path.is_file() and "__pycache__" not in path.parts
        )
        sources |= {str(path.relative_to(parent)) for path in files}
    assert shipped == sources


def test_source_archive_has_the_pages_and_what_they_run(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    with tarfile.open(tmp_path / build_sdist(str(tmp_path))) as archive:
        shipped = {name.partition("/")[2] for name in archive.getnames()}
    pages = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*") if path.is_file()}
    assert pages | {"runs/README.md", "examples/cartpole.py", "tests/pages.py"} <= shipped


@pytest.mark.parametrize("package", ["rlmesh_cli", "rlmesh_adapters", "rlmesh_envs"])
def test_types_are_shipped(package, wheel):
    assert f"{package}/py.typed" in wheel.namelist()


def read(wheel: zipfile.ZipFile, name: str) -> str:
    (path,) = (known for known in wheel.namelist() if known.endswith(f".dist-info/{name}"))
    return wheel.read(path).decode("utf-8")


def test_both_commands_start_the_same_function(wheel):
    scripts = configparser.ConfigParser()
    scripts.read_string(read(wheel, "entry_points.txt"))
    commands = dict(scripts["console_scripts"])
    assert commands == {"rlmesh": "rlmesh_cli.__main__:main", "rlmesh-cli": "rlmesh_cli.__main__:main"}


def test_version_is_the_same_everywhere(wheel):
    assert rlmesh_cli.__version__ == PROJECT["version"]
    assert f"\nVersion: {PROJECT['version']}\n" in read(wheel, "METADATA")


def test_metadata_says_what_it_needs(wheel):
    metadata = read(wheel, "METADATA")
    assert "\nName: rlmesh-cli\n" in metadata
    assert "\nRequires-Python: >=3.11\n" in metadata
    for name in ("gymnasium", "msgspec", "numpy", "pyyaml", "rich", "typer"):
        assert f"\nRequires-Dist: {name}" in metadata
