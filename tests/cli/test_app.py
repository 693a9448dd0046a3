"""The command `rlmesh`: what it takes, what its options change, and what it imports."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cli_toys import ROOT
from typer.testing import CliRunner

import rlmesh_cli
from rlmesh_cli import evaluation_command
from rlmesh_cli.app import app
from rlmesh_cli.evaluation_command import Request
from rlmesh_cli.exits import Exit
from rlmesh_cli.flags import read_flags
from rlmesh_cli.route import read_route

WIDE = {"COLUMNS": "200", "TERM": "dumb", "NO_COLOR": "1"}


def rlmesh(*arguments: str):
    return CliRunner(env=WIDE).invoke(app, list(arguments))


@pytest.fixture
def requested(monkeypatch):
    """Return what turns arguments of `rlmesh eval` into the request they make; nothing is played."""
    made: list[Request] = []

    def run(request: Request) -> Exit:
        made.append(request)
        return Exit.DONE

    monkeypatch.setattr(evaluation_command, "run", run)

    def ask(*arguments: str) -> Request:
        result = rlmesh("eval", *arguments)
        assert result.exit_code == 0, result.output
        return made.pop()

    return ask


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["eval", "--help"], ["eval", "-h"]])
def test_help_is_printed(arguments):
    result = rlmesh(*arguments)
    assert result.exit_code == 0
    assert "Usage: rlmesh" in result.output


def test_version_is_printed():
    result = rlmesh("--version")
    assert (result.exit_code, result.output) == (0, f"rlmesh {rlmesh_cli.__version__}\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--bogus"], "--bogus"),
        (["evl"], "evl"),
        (["eval", "--bogus"], "--bogus"),
        (["eval", "a", "b"], "b"),
        (["eval", "--episodes", "many"], "'many' is not a whole number"),
        (["eval", "--episodes", "1.5"], "'1.5' is not a whole number"),
        (["eval", "--max-episode-seconds", "soon"], "'soon' is not a number"),
        (["eval", "--seed"], "--seed"),
        (["eval", "--seed", "9" * 5000], "--seed"),
        ([], "Usage"),
    ],
)
def test_what_is_no_command_or_option_is_a_usage_error(arguments, words):
    result = rlmesh(*arguments)
    assert result.exit_code == 2
    assert words in result.output
    assert "Traceback" not in result.output


def test_eval_without_anything_says_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = rlmesh("eval")
    assert result.exit_code == 2
    assert "no environment is named" in result.output
    assert list(tmp_path.iterdir()) == []


# option -> arguments that give it, beside `zero --env X`
ROUTE_FLAGS = {
    "--route": ["--route", "ROUTE"],
    "--env": ["--env", "Y"],
    "--env-arg": ["--env-arg", "gain=2"],
    "--policy-arg": ["--policy-arg", "gain=2"],
    "--episodes": ["--episodes", "7"],
    "--num-envs": ["--num-envs", "7"],
    "--workers": ["--workers", "7"],
    "--cluster": ["--cluster", "ray"],
    "--ray-resources": ["--cluster", "ray", "--ray-resources", "cpu=2,gpu=0.5"],
    "--seed": ["--seed", "7"],
    "--seeds": ["--seeds", "7,9"],
    "--horizon": ["--horizon", "7"],
    "--max-episode-steps": ["--max-episode-steps", "7"],
    "--max-episode-seconds": ["--max-episode-seconds", "7.5"],
    "--vectorization": ["--vectorization", "async"],
    "--start-method": ["--vectorization", "async", "--start-method", "spawn"],
    "--env-workers": ["--vectorization", "async", "--env-workers", "2"],
    "--autoreset": ["--autoreset", "same_step"],
    "--instances": ["--instances", "lane"],
    "--batch-rows": ["--batch-rows", "16"],
    "--schedule": ["--schedule", "eager"],
    "--pixels": ["--pixels", "always"],
    "--record": ["--record", "steps"],
    "--video": ["--video", "failures"],
    "--confidence": ["--confidence", "0.9"],
    "--interval": ["--interval", "wilson"],
    "--gate-on": ["--gate-on", "lower"],
    "--until": ["--until", "width<0.1"],
    "--baseline": ["--baseline", "R"],
    "--margin": ["--baseline", "R", "--margin", "7%"],
    "--alpha": ["--baseline", "R", "--alpha", "0.1"],
    "--allow": ["--baseline", "R", "--allow", "horizon"],
    "--controls": ["--controls", "zero,hold"],
    "--max-errors": ["--max-errors", "7"],
    "--step-timeout": ["--step-timeout", "7.5"],
    "--call-timeout": ["--call-timeout", "7.5"],
    "--success": ["--success", "won:any"],
    "--metric": ["--metric", "speed"],
    "--gate": ["--gate", "errors == 0"],
}
OUTPUT_FLAGS = {
    *("--trust-entrypoints", "--no-probe", "--force", "--verify-lanes"),
    *("--strict", "--out", "--all", "--json", "--quiet"),
    *("--junit", "--summary", "--csv", "--report", "--report-file", "--resume", "--extend"),
}


def test_every_option_of_the_help_is_looked_at_here():
    listed = set(re.findall(r"--[a-z][a-z-]*", rlmesh("eval", "--help").output.split("Arguments")[1]))
    assert listed == {*ROUTE_FLAGS, *OUTPUT_FLAGS, "--help"}


@pytest.mark.parametrize("flag", ROUTE_FLAGS)
def test_option_changes_the_route(flag, requested, tmp_path):
    (tmp_path / "r.yaml").write_text("horizon: 3\n")
    given = [str(tmp_path / "r.yaml") if word == "ROUTE" else word for word in ROUTE_FLAGS[flag]]
    without = [word for word in given[:-2] if word not in ("--env", "Y")]
    routes = []
    for more in (given, without):
        request = requested("zero", "--env", "X", *more)
        routes.append(read_route(request.route, read_flags(request))[0])
    assert routes[0] != routes[1]


def test_short_options_are_the_long_ones(requested):
    assert requested("zero", "--env", "X", "-n", "3") == requested("zero", "--env", "X", "--episodes", "3")
    assert requested("zero", "--env", "X", "-q") == requested("zero", "--env", "X", "--quiet")


def test_repeated_options_add_up_in_order(requested):
    request = requested(
        *("zero", "--env-arg", "a=1", "--env-arg", "b=xyz", "--policy-arg", "c=2", "--policy-arg", "d=e"),
        *("--metric", "m", "--metric", "n", "--gate", "m > 1", "--gate", "n > 1"),
    )
    assert request.env_args == ("a=1", "b=xyz")
    assert request.policy_args == ("c=2", "d=e")
    assert request.metrics == ("m", "n")
    assert request.gates == ("m > 1", "n > 1")


def test_what_is_not_given_is_not_said(requested):
    assert requested() == Request()


def test_values_have_their_types(requested):
    request = requested("p.py", "--seed", "0", "--max-episode-seconds", "2", "--out", "a/b", "--strict", "--all")
    assert (request.policy, request.seed, request.max_episode_seconds) == ("p.py", 0, 2.0)
    assert (request.out, request.strict, request.show_all) == (Path("a/b"), True, True)
    request = requested("p.py", "--report", "--report-file", "a/b.html")
    assert (request.policy, request.report, request.report_file) == ("p.py", True, Path("a/b.html"))


class Shown:
    """One real run of twenty episodes, with and without an option of the output."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments: str):
        steps = ["--env", "cli_toys:Steps", "-n", "20", "--horizon", "2"]
        return rlmesh("eval", "zero", *steps, "--out", str(self.folder / "runs"), *arguments)


def test_output_options_change_the_output(tmp_path):
    shown = Shown(tmp_path)
    plain = shown()
    assert plain.exit_code == 0
    assert shown("--strict").exit_code == 1
    assert "missed --strict" in shown("--strict").output
    assert "episodes (all 20)" in shown("--all").output
    assert "episodes (all 20)" not in plain.output
    assert shown("--quiet").output.count("\n") == 1
    assert json.loads(shown("--json").stdout)["episodes"] == 20
    before = len(list((tmp_path / "runs").iterdir()))
    shown("--out", str(tmp_path / "elsewhere"))
    assert len(list((tmp_path / "runs").iterdir())) == before
    assert len(list((tmp_path / "elsewhere").iterdir())) == 1


HEAVY = {"gymnasium", "numpy", "scipy", "yaml", "torch", "jinja2", "plotly", "markdown_it", "pygments"}


@pytest.mark.parametrize("words", [["--help"], ["eval", "--help"]], ids=str)
def test_help_imports_nothing_heavy(words):
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "rlmesh_cli", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    imported = {line.rsplit("|", 1)[1].strip().split(".")[0] for line in done.stderr.splitlines() if "|" in line}
    assert "--num-envs 8" in done.stdout
    assert {"rlmesh_cli", "typer"} <= imported
    assert imported & {*HEAVY, "rlmesh_adapters", "rlmesh_envs"} == set()


def test_commands_are_made_when_they_are_asked_for():
    """The list needs none of them, and one needs no other; to whoever looks at all, all are there."""
    script = (
        "import sys, typer; from rlmesh_cli import lean; made = []; make = lean._made\n"
        "lean._made = lambda verb: made.append(verb.name) or make(verb)\n"
        "from rlmesh_cli.app import app; group = typer.main.get_command(app)\n"
        "for words in (['--help'], ['runs', '--help']):\n"
        "    group(words, standalone_mode=False)\n"
        "assert made == ['runs'], made\n"
        "assert [command.name for command in group.commands.values()] == list(group.commands)\n"
        "assert group.commands.get('no') is None and len(dict(group.commands.items())) == len(made)\n"
        "import rich.markdown; rich.markdown.Markdown('*a*')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
