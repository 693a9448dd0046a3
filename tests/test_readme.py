"""README: its first lines hold the commands, and they work."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rlmesh_cli.app import app

ROOT = Path(__file__).resolve().parent.parent
LINES = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
FRESH = "python -m venv .venv && .venv/bin/pip install -e "


def command(words: str) -> str:
    """Return what stands after the install in the README's line that ends with such a command."""
    (line,) = (line.strip() for line in LINES[:30] if line.strip().startswith(FRESH) and words in line)
    return line.rsplit(" && ", 1)[1]


def test_first_lines_say_how_to_run_the_tests_on_a_fresh_machine():
    assert command("pytest") == ".venv/bin/python -m pytest"
    assert any("'.[test]'" in line for line in LINES[:30])


@pytest.fixture(scope="module")
def main_job(tmp_path_factory) -> tuple[int, str, Path]:
    """Run the README's command; return its exit code, its output and the folder of its run."""
    program, *arguments = shlex.split(command("rlmesh eval"))
    assert program == ".venv/bin/rlmesh"
    out = tmp_path_factory.mktemp("readme")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        result = CliRunner(env={"COLUMNS": "120"}).invoke(app, [*arguments, "--out", str(out)])
    (folder,) = out.iterdir()
    return result.exit_code, result.output, folder


def test_main_job_of_the_readme_ends_well(main_job):
    code, output, folder = main_job
    assert code == 0, output
    assert "50 of 50" in output
    assert json.loads((folder / "run.json").read_text())["status"] == "finished"


def test_policy_of_the_readme_is_good_at_what_it_does(main_job):
    """CartPole-v1 ends after 500 steps that pay 1 each."""
    summary = json.loads((main_job[2] / "summary.json").read_text())
    assert summary["mean_return"] == 500.0
    assert summary["ends"] == {"truncated": 50}
