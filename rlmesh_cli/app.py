"""The command `rlmesh`. Everything heavy is imported by the command that needs it."""

from __future__ import annotations

import gc
import signal
import sys
import threading

import typer

from . import __version__
from .commands.compare import compare_command
from .commands.doctor import doctor_command
from .commands.eval import eval_command
from .commands.explain import explain_command
from .commands.init import init_command
from .commands.probe import probe_command
from .commands.replay import replay_command
from .commands.runs import runs_command
from .commands.show import show_command
from .exits import Exit
from .lean import LeanCommand, LeanGroup

app = typer.Typer(
    name="rlmesh",
    cls=LeanGroup,
    help="Score a policy on gymnasium environments: every episode, every advisory, a number you can trust.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("eval", cls=LeanCommand)(eval_command)
app.command("explain", cls=LeanCommand)(explain_command)
app.command("probe", cls=LeanCommand)(probe_command)
app.command("compare", cls=LeanCommand)(compare_command)
app.command("runs", cls=LeanCommand)(runs_command)
app.command("show", cls=LeanCommand)(show_command)
app.command("doctor", cls=LeanCommand)(doctor_command)
app.command("init", cls=LeanCommand)(init_command)
app.command("replay", cls=LeanCommand)(replay_command)


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
    try:
        app()
    except KeyboardInterrupt:  # one that came when the command had its result already
        sys.exit(int(Exit.INTERRUPTED))
    finally:
        # What is left is to leave; a signal now would only change the exit code.
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        gc.freeze()
