"""The command `rlmesh`. Everything heavy is imported by the command that needs it."""

from __future__ import annotations

import gc
import signal
import sys
import threading

import typer

from . import __version__
from .exits import Exit
from .lean import LeanGroup, Verb
from .leaving import leave_without_others

_HELP = """Score a policy on gymnasium environments: every episode, every advisory, a number you can trust.

Examples:
  rlmesh init --env CartPole-v1
  rlmesh eval policy.py --env CartPole-v1 --num-envs 8
  rlmesh compare runs/last-week latest
"""
_SCORE, _EXAMINE, _LOOK, _SET_UP = "Score and judge", "Examine before a run", "Look at runs", "Set up"


class _Group(LeanGroup):
    """All that can be said to `rlmesh`."""

    verbs = (
        Verb("eval", _SCORE, "Play seeded episodes, say what happened, write the run."),
        Verb("compare", _SCORE, "Judge a run by another over the same seeds."),
        Verb("probe", _EXAMINE, "Test a policy: may several lanes share it?"),
        Verb("explain", _EXAMINE, "Say what becomes of every number of a route."),
        Verb("runs", _LOOK, "List the runs of a folder, the newest first."),
        Verb("show", _LOOK, "Print a run again, also one that was killed."),
        Verb("report", _LOOK, "Write runs as one HTML page that needs no network."),
        Verb("replay", _LOOK, "Play one episode again: is it what it was?"),
        Verb("init", _SET_UP, "Write a policy and a route for an environment."),
        Verb("doctor", _SET_UP, "Say what works here, and how to get what does not."),
    )


app = typer.Typer(
    name="rlmesh",
    cls=_Group,
    help=_HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rlmesh {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Print the version and leave."
    ),
) -> None:
    """Take the options that stand before the command."""


def main() -> None:
    """Run the command line; the console scripts call this.

    The garbage collector stands still until a command has imported what it needs, and does not look through what
    is left at the end: together a tenth of a short run's time.
    """
    gc.disable()
    # Text of users and environments may hold what the terminal's encoding cannot show.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    code: object = int(Exit.BUG)
    try:
        app()
        code = 0
    except KeyboardInterrupt:  # one that came when the command had its result already
        code = int(Exit.INTERRUPTED)
        sys.exit(code)
    except SystemExit as leave:
        code = leave.code
        raise
    finally:
        # What is left is to leave; a signal now would only change the exit code.
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            leave_without_others(code if isinstance(code, int) else 0 if code is None else 1, _say)
        gc.freeze()


def _say(text: str) -> None:
    from .telling import say  # noqa: PLC0415 - help needs nothing of it

    say(text)
