"""Completing: what a shell may put in where TAB is pressed.

Each TAB starts a process, so nothing heavy is imported: words stand here, and a test holds them against the
modules that they come from.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from rlmesh_envs.listing import environment_ids

#: What a folder of a run holds from the beginning.
_RUN_FILES = ("run.json", "episodes.jsonl")
_LATEST = "latest"
#: For `--resume`: the newest unfinished run of the same evaluation.
_NEWEST = "auto"

#: Parameter -> the words that it takes.
WORDS: dict[str, tuple[str, ...]] = {
    "vectorization": ("sync", "async", "native"),
    "start_method": ("fork", "forkserver", "spawn"),
    "autoreset": ("next_step", "same_step", "disabled"),
    "instances": ("auto", "shared", "lane", "episode"),
    "schedule": ("aligned", "eager"),
    "pixels": ("wanted", "always"),
    "record": ("video", "steps", "steps,video"),
    "video": ("all", "failures", "first:5", "worst:5", "flips:"),
    "interval": ("exact", "wilson", "blaker"),
    "gate_on": ("value", "lower"),
    "until": ("decided", "width<0.1"),
    "cluster": ("ray",),
    "render": ("human", "video"),
    "success": ("is_success", "success"),
    "gate": ("success_rate", "mean_return", "iqm_return", "errors", "cautions", "distinct_starts"),
    "allow": (
        *("env", "env.kwargs", "env.wrappers", "env.version", "env.files", "horizon", "ensemble"),
        *("limits.steps", "limits.seconds", "success_rule", "adapter", "seeded"),
    ),
}
POLICIES = ("random", "zero", "hold")
#: Parameters that name a run, by whatever command.
RUNS = ("name", "base", "new", "run", "runs", "baseline", "resume")
#: Commands whose `policy` and `route` are names of files that are not there yet.
_MAKING = ("init",)

#: Letters that mean something to bash.
_TAKEN_APART = re.compile(r"[^\w@%+=:,./-]", re.ASCII)

Completer = Callable[[Any, str], Iterable[str]]


def complete_by_name(params: Iterable[Any], command: str | None) -> None:
    """Tell the parameters of a command what they may be completed with, by their names.

    params: as the command line's library has them; one that has a completion of its own keeps it.
    """
    for param in params:
        completer = _completer(str(param.name), command)
        if completer is not None and getattr(param, "_custom_shell_complete", None) is None:
            param._custom_shell_complete = _as_asked(completer)


def _as_asked(completer: Completer) -> Callable[[Any, Any, str], list[str]]:
    def offered(ctx: Any, param: Any, begun: str) -> list[str]:
        words = [word for word in completer(ctx, begun) if word.startswith(begun) and word.isprintable()]
        return [_TAKEN_APART.sub(r"\\\g<0>", word) for word in words] if _is_bare_in_bash() else words

    return offered


def _is_bare_in_bash() -> bool:
    """Tell whether bash asks, for a word outside quotes: it puts words in as they are, other shells quote them."""
    if "complete_bash" not in (value for name, value in os.environ.items() if name.endswith("_COMPLETE")):
        return False
    words, at = os.environ.get("COMP_WORDS", "").split("\n"), os.environ.get("COMP_CWORD", "")
    typed = words[int(at)] if at.isdecimal() and int(at) < len(words) else ""
    return not typed.startswith(("'", '"'))


def _completer(name: str, command: str | None) -> Completer | None:
    # `replay --video` names a file.
    if name in WORDS and (name, command) != ("video", "replay"):
        return lambda ctx, begun: WORDS[name]
    if name == "resume":
        return lambda ctx, begun: [_NEWEST, *_runs(ctx, begun)]
    if name in RUNS:
        return _runs
    if name == "env":
        return lambda ctx, begun: environment_ids()
    if name == "controls":
        return _controls
    if command not in _MAKING and name == "policy":
        return lambda ctx, begun: [*(() if "/" in begun else POLICIES), *_files(begun, (".py",))]
    if command not in _MAKING and name == "route":
        return lambda ctx, begun: _files(begun, (".yaml", ".yml"))
    return None


def _controls(ctx: Any, begun: str) -> list[str]:
    """Return lists of built-in policies that go on with one more."""
    before, comma, _ = begun.rpartition(",")
    given = before.split(",")
    return [f"{before}{comma}{name}" for name in POLICIES if name not in given]


def _runs(ctx: Any, begun: str) -> list[str]:
    """Return `latest` and the names of the runs in the folder of `--out`; a path is left to the shell."""
    if "/" in begun:
        return []
    folder = Path(ctx.params.get("out") or "runs")
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if any(map(os.path.lexists, _inside(entry.path)))]
    except OSError:
        return []
    return [_LATEST, *sorted(names, reverse=True)] if names else []


def _inside(folder: str) -> list[str]:
    return [os.path.join(folder, name) for name in _RUN_FILES]


def _files(begun: str, ends: tuple[str, ...]) -> list[str]:
    """Return the files with such an end that a begun path may mean; where there is none, the shell looks."""
    folder, name = os.path.split(begun)
    try:
        with os.scandir(folder or ".") as entries:
            names = sorted(entry.name for entry in entries if entry.name.endswith(ends) and entry.is_file())
    except OSError:
        return []
    shown = [known for known in names if name or not known.startswith(".")]
    return [os.path.join(folder, known) for known in shown if known.startswith(name)]
