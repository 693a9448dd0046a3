"""`--help`: commands in panels, an example that can be typed for each, and 80 columns are enough."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from rlmesh_cli.app import app

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = typer.main.get_command(app).commands
PANELS = {
    "Score and judge": ["eval", "compare"],
    "Examine before a run": ["probe", "explain"],
    "Look at runs": ["runs", "show", "replay"],
    "Set up": ["init", "doctor"],
}


def helped(*arguments: str, **environment: str) -> str:
    """Return a help text as it is printed into a pipe."""
    sources = os.pathsep.join(map(str, (ROOT, ROOT / "adapters", ROOT / "envs")))
    done = subprocess.run(
        [sys.executable, "-m", "rlmesh_cli", *arguments, "--help"],
        env={**os.environ, "PYTHONPATH": sources, "COLUMNS": "80", **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    return done.stdout


def test_commands_stand_in_their_panels():
    found: dict[str, list[str]] = {}
    panel = ""
    for line in helped().splitlines():
        if title := re.match(r"\W*[─-] (.+?) [─-]", line):
            panel = title[1]
        elif command := re.match(r"[│|] (\w+) +[A-Z]", line):
            found.setdefault(panel, []).append(command[1])
    assert {name: set(members) for name, members in PANELS.items()}.items() <= {
        name: set(members) & {command for known in PANELS.values() for command in known}
        for name, members in found.items()
    }.items()
    assert {command for members in found.values() for command in members} == set(COMMANDS)


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_keeps_to_80_columns_without_colour_in_a_pipe(command):
    for environment in ({}, {"TERM": "dumb"}, {"PYTHONIOENCODING": "ascii"}):
        text = helped(*([command] if command else []), **environment)
        assert max(map(len, text.splitlines())) <= 80
        assert "\x1b" not in text
        assert text.isascii() or "PYTHONIOENCODING" not in environment
        assert "bool" not in text


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_examples_can_be_typed(command):
    """Flags that are not there would be a usage error in front of the help."""
    text = typer.main.get_command(app).help if not command else COMMANDS[command].help
    lines = [line.strip() for line in text.split("Examples:")[1].splitlines() if line.strip()]
    assert len(lines) >= 2
    for line in lines:
        program, name, *rest = shlex.split(line)
        assert program == "rlmesh"
        assert not command or name == command
        assert CliRunner().invoke(app, [name, *rest, "--help"]).exit_code == 0, line
    assert CliRunner().invoke(app, ["eval", "--bogus", "--help"]).exit_code == 2
