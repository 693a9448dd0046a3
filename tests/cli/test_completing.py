"""Completion by TAB: what shells are told, asked as they ask, by the console script itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args, get_type_hints

import gymnasium
import pytest
import typer
from typer.testing import CliRunner

from rlmesh_adapters.baselines import BASELINES
from rlmesh_cli import completing, gates, protocols, schema
from rlmesh_cli.app import app
from rlmesh_cli.recording.selection import parse_selection
from rlmesh_cli.rendering import MODES
from rlmesh_envs.infos import SUCCESS_KEYS
from rlmesh_envs.listing import environment_ids

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = Path(sys.executable).parent / "rlmesh"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason=f"needs a console script {SCRIPT}")


def ask(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the console script as a shell does at a TAB."""
    sources = os.pathsep.join(map(str, (ROOT, ROOT / "adapters", ROOT / "envs")))
    return subprocess.run(
        [str(SCRIPT)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": sources, **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def completed(folder: Path, *words: str) -> list[str]:
    """Return what bash is offered for the last of some words after `rlmesh`."""
    line = "\n".join(("rlmesh", *words))
    done = ask(folder, _RLMESH_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=str(len(words)))
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split("\n")[:-1] if done.stdout.strip() else []


@pytest.fixture
def runs(tmp_path):
    """Return a folder with two runs, something that is none, files and folders."""
    for name, file in (("20260101T000000Z-A-p-1a2b", "run.json"), ("20260102T000000Z-B-p-3c4d", "episodes.jsonl")):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / file).write_text("{}")
    (tmp_path / "runs" / "no-run").mkdir()
    (tmp_path / "other" / "20260103T000000Z-C-p-5e6f").mkdir(parents=True)
    (tmp_path / "other" / "20260103T000000Z-C-p-5e6f" / "run.json").write_text("{}")
    for name in ("policy.py", "pusher.py", "route.yaml", "notes.txt", "sub/inner.py", ".hidden.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    return tmp_path


NAMES = ["20260101T000000Z-A-p-1a2b", "20260102T000000Z-B-p-3c4d"]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["ev"], ["eval"]),
        (["eval", "--vec"], ["--vectorization"]),
        (["eval", "p.py", "--env", "CartPole"], ["CartPole-v0", "CartPole-v1"]),
        (["probe", "--env", "FrozenLake8"], ["FrozenLake8x8-v1"]),
        (["init", "--env", "Acro"], ["Acrobot-v1"]),
        (["eval", "--vectorization", "a"], ["async"]),
        (["eval", "--start-method", "fork"], ["fork", "forkserver"]),
        (["eval", "--schedule", ""], ["aligned", "eager"]),
        (["eval", "--interval", "w"], ["wilson"]),
        (["eval", "--controls", "random,z"], ["random,zero"]),
        (["eval", "--gate", "err"], ["errors"]),
        (["compare", "--allow", "limits"], ["limits.steps", "limits.seconds"]),
        (["show", "l"], ["latest"]),
        (["show", "2026"], NAMES[::-1]),
        (["compare", "latest", "20260101"], NAMES[:1]),
        (["replay", "20260102"], NAMES[1:]),
        (["eval", "--baseline", "lat"], ["latest"]),
        (["eval", "--resume", "20260101"], NAMES[:1]),
        (["eval", "--resume", "a"], ["auto"]),
        (["show", "--out", "other", "2026"], ["20260103T000000Z-C-p-5e6f"]),
        (["show", "--out", "nowhere", "l"], []),
        (["show", "runs/2"], []),  # a path is the shell's
        (["eval", "z"], ["zero"]),
        (["eval", "p"], ["policy.py", "pusher.py"]),
        (["eval", "sub/"], ["sub/inner.py"]),
        (["eval", "./"], ["./policy.py", "./pusher.py"]),
        (["eval", "."], [".hidden.py"]),
        (["eval", ""], ["random", "zero", "hold", "policy.py", "pusher.py"]),
        (["eval", "--route", ""], ["route.yaml"]),
        (["eval", "--route", "r"], ["route.yaml"]),
        (["init", "--env", "CartPole-v1", "--policy", "p"], []),  # a name that is to be new
        (["eval", "nothing-like-it"], []),
    ],
)
def test_offers(runs, words, offered):
    assert completed(runs, *words) == offered


def test_words_that_bash_would_take_apart_are_escaped(runs):
    (runs / "my policy (1).py").write_text("")
    (runs / "runs" / "a $run").mkdir()
    (runs / "runs" / "a $run" / "run.json").write_text("{}")
    assert completed(runs, "eval", "my") == [r"my\ policy\ \(1\).py"]
    assert completed(runs, "eval", r"my\ p") == [r"my\ policy\ \(1\).py"]
    assert completed(runs, "eval", "'my") == ["my policy (1).py"]
    assert completed(runs, "show", "a") == [r"a\ \$run"]
    assert completed(runs, "eval", "--until", "w") == [r"width\<0.1"]
    done = ask(
        runs,
        _RLMESH_COMPLETE="complete_fish",
        _TYPER_COMPLETE_ARGS="rlmesh eval --until w",
        _TYPER_COMPLETE_FISH_ACTION="get-args",
    )
    assert done.stdout == "width<0.1\n"


def test_zsh_and_fish_are_offered_the_same(runs):
    done = ask(runs, _RLMESH_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS="rlmesh eval --env Acro")
    assert '"Acrobot-v1"' in done.stdout
    done = ask(
        runs,
        _RLMESH_COMPLETE="complete_fish",
        _TYPER_COMPLETE_ARGS="rlmesh eval --env Acro",
        _TYPER_COMPLETE_FISH_ACTION="get-args",
    )
    assert done.stdout == "Acrobot-v1\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_ask_the_command_that_they_are_for(shell):
    done = CliRunner().invoke(app, ["--show-completion"], prog_name="rlmesh", env={"SHELL": f"/bin/{shell}"})
    # Which shell it is, is read off the processes above; a test runner may have none.
    assert done.exit_code in (0, 1)
    if done.exit_code == 0:
        assert "_RLMESH_COMPLETE=complete_" in done.output


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_itself_completes(runs):
    """The script that --show-completion prints, in a bash, with the variables that TAB sets."""
    program = """
    eval "$(rlmesh --show-completion)"
    COMP_WORDS=(rlmesh eval policy.py --env CartPole) COMP_CWORD=4
    _rlmesh_completion rlmesh CartPole --env
    echo "${COMPREPLY[@]}"
    """
    sources = os.pathsep.join(map(str, (ROOT, ROOT / "adapters", ROOT / "envs")))
    path = os.pathsep.join((str(SCRIPT.parent), os.environ["PATH"]))
    done = subprocess.run(
        ["bash", "--norc", "-c", program],
        cwd=runs,
        env={**os.environ, "PATH": path, "PYTHONPATH": sources},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "CartPole-v0 CartPole-v1\n"


def test_nothing_heavy_is_imported_at_a_tab(tmp_path):
    done = ask(
        tmp_path,
        PYTHONPROFILEIMPORTTIME="1",
        _RLMESH_COMPLETE="complete_bash",
        COMP_WORDS="rlmesh eval --env Ca",
        COMP_CWORD="3",
    )
    assert done.stdout.startswith("CarRacing-v3\n")
    imported = {line.rsplit("|", 1)[1].strip().split(".")[0] for line in done.stderr.splitlines() if "|" in line}
    assert "rlmesh_envs" in imported
    assert imported & {"gymnasium", "numpy", "msgspec", "yaml", "rich"} == set()


def test_ids_are_those_that_gymnasium_registers():
    own = {name for name, spec in gymnasium.registry.items() if str(spec.entry_point).startswith("gymnasium.envs")}
    assert len(own) > 40
    assert own <= set(environment_ids())


def test_words_are_those_of_the_modules_that_take_them():
    for name, field in (
        ("vectorization", "vectorization"),
        ("start_method", "start_method"),
        ("autoreset", "autoreset"),
        ("pixels", "pixels"),
    ):
        assert set(completing.WORDS[name]) == words_of(schema.EnvRoute, field)
    for name in ("instances", "schedule", "interval", "gate_on"):
        assert set(completing.WORDS[name]) == words_of(schema.Route, name)
    assert completing.WORDS["gate"] == gates.BUILT_IN
    assert completing.WORDS["allow"] == protocols.FIELDS
    assert completing.WORDS["render"] == tuple(MODES)
    assert completing.WORDS["success"] == SUCCESS_KEYS
    assert {word for words in completing.WORDS["record"] for word in words.split(",")} == words_of(
        schema.Route, "record"
    )
    for rule in completing.WORDS["video"]:
        parse_selection(f"{rule}run" if rule.endswith(":") else rule, "--video")
    assert tuple(BASELINES) == completing.POLICIES


def words_of(struct, field) -> set[str]:
    hint = get_type_hints(struct)[field]
    options = get_args(hint)
    nested = [word for option in options for word in (get_args(option) or [option])]
    return {word for word in nested if isinstance(word, str)}


def test_every_name_that_is_completed_is_a_parameter_of_some_command():
    group = typer.main.get_command(app)
    known = {param.name for command in group.commands.values() for param in command.params}
    assert set(completing.WORDS) <= known
    assert {"env", "policy", "route", "controls"} <= known
    assert {name for name in completing.RUNS if name in known} >= {
        "name",
        "base",
        "new",
        "run",
        "baseline",
        "resume",
    }
