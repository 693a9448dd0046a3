"""Lean commands: what Typer does at every start, done where it is needed.

Flags are converted by a few lines of ours: Typer's own conversion goes through a validation library that takes
longer to import than our modules together. Commands are imported and made when they are asked for, not all of them
for each; a list of them needs none. Their modules do not put off annotations, which Typer would evaluate several
times each. Help is drawn without importing what it has no use for. Where a release of Typer has no such step,
nothing is changed.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, get_args

import typer
from typer.core import TyperCommand, TyperGroup

_NAMES = {int: "a whole number", float: "a number", Path: "a path", str: "text", bool: "true or false"}
_LETTERS = {int: "N", float: "X", Path: "PATH"}
#: Module -> the class that Typer's drawing of help takes from it: for Markdown in help texts, and for tracebacks.
_UNUSED = {"rich.markdown": "Markdown", "rich.traceback": "Traceback"}
_SHELLS = {
    "install_completion": "Let this shell complete what is typed.",
    "show_completion": "Print the script that does so.",
}


class Verb(NamedTuple):
    """A command: name, panel in the list of commands, and what that says of it in one line.

    What it runs is `NAME_command` of `rlmesh_cli.commands.NAME`.
    """

    name: str
    panel: str
    short: str

    def run(self) -> Callable[..., None]:
        """Return what the command runs."""
        module = importlib.import_module(f".commands.{self.name}", __package__)
        run: Callable[..., None] = getattr(module, f"{self.name}_command")
        return run


class LeanCommand(TyperCommand):
    """A Typer command whose flags are text, numbers, paths, or lists of them."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, each with our conversion in place of Typer's."""
        params = _with_conversion(super().get_params(ctx))
        if ctx.resilient_parsing:  # a shell asks what could stand next
            from .completing import complete_by_name  # noqa: PLC0415 - only then

            complete_by_name(params, self.name)
        return params

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Draw the help."""
        with _without_unused():
            super().format_help(ctx, formatter)


class LeanGroup(TyperGroup):
    """A Typer group whose own flags are plain; it makes its commands of `verbs`."""

    verbs: tuple[Verb, ...] = ()

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _Commands(self.verbs)
        self._is_listing = False

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, each with our conversion in place of Typer's."""
        return [_about_shells(param) for param in _with_conversion(super().get_params(ctx))]

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands."""
        return list(self.commands)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; while they are listed, one that knows no more than the list says."""
        if self._is_listing:
            verb = next(known for known in self.verbs if known.name == cmd_name)
            return LeanCommand(verb.name, params=[], short_help=verb.short, rich_help_panel=verb.panel)
        return super().get_command(ctx, cmd_name)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Draw the help."""
        self._is_listing = True
        try:
            with _without_unused():
                super().format_help(ctx, formatter)
        finally:
            self._is_listing = False


class _Commands(dict[str, Any]):
    """Commands by name, each made when it is first asked for."""

    def __init__(self, verbs: Iterable[Verb]) -> None:
        super().__init__({verb.name: verb for verb in verbs})

    def __getitem__(self, name: str) -> Any:
        found = super().__getitem__(name)
        if isinstance(found, Verb):
            found = self[name] = _made(found)
        return found

    def get(self, name: str, default: Any = None) -> Any:
        """Return a command, or something else where there is none of that name."""
        return self[name] if name in self else default  # noqa: SIM401 - this is what `get` is made of

    def values(self) -> Any:
        """Return all commands."""
        return [self[name] for name in self]

    def items(self) -> Any:
        """Return all names and commands."""
        return [(name, self[name]) for name in self]


def _made(verb: Verb) -> Any:
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(verb.name, cls=LeanCommand, rich_help_panel=verb.panel, short_help=verb.short)(verb.run())
    return typer.main.get_command(app)


@contextlib.contextmanager
def _without_unused() -> Iterator[None]:
    """Let Typer's drawing of help be imported without what it takes from there and never uses for ours.

    A parser of Markdown and a highlighter of code take longer to import than the help takes to be drawn.
    """
    placeholders = {name: _placeholder(name, kind) for name, kind in _UNUSED.items() if name not in sys.modules}
    sys.modules.update(placeholders)
    try:
        yield
    finally:
        for name, placeholder in placeholders.items():
            if sys.modules.get(name) is placeholder:
                del sys.modules[name]


def _placeholder(name: str, kind: str) -> ModuleType:
    module = ModuleType(name)
    setattr(module, kind, type(kind, (), {}))
    return module


def _about_shells(param: Any) -> Any:
    """Put the flags that Typer adds for completion into a panel of their own, each in one line."""
    if param.name in _SHELLS:
        param.help, param.rich_help_panel = _SHELLS[param.name], "Completion by TAB"
    return param


def _with_conversion(params: Iterable[Any]) -> list[Any]:
    listed = list(params)
    for param in listed:
        descriptor = getattr(param, "type_descriptor", None)
        if descriptor is not None and getattr(param, "_runtime_param", descriptor) is None:
            param._runtime_param = _Conversion(descriptor.annotation)
        if param.param_type_name == "option" and param.metavar is None:
            param.metavar = "" if param.is_flag else _letters(getattr(descriptor, "annotation", str))
        elif hasattr(param, "display_type_rich"):  # an argument's help says what it takes
            param.display_type_rich = _no_type
    return listed


def _letters(annotation: Any) -> str:
    """Return what stands for a value in the help; what may be given several times is said by its text."""
    inner = get_args(annotation)
    return _LETTERS.get(inner[0] if inner else annotation, "TEXT")


def _no_type(ctx: Any) -> str:
    return ""


class _Conversion:
    """Turns what was typed into the parameter's type.

    annotation: a plain type, or a list of one.
    """

    def __init__(self, annotation: Any) -> None:
        inner = get_args(annotation)
        self._convert: Callable[[Any], Any] = inner[0] if inner else annotation

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the value, or the list of values, of a parameter that may be given several times."""
        if param.multiple or param.nargs == -1:
            return [self._one(part, param, ctx) for part in value or ()]
        return None if value is None else self._one(value, param, ctx)

    def _one(self, value: Any, param: Any, ctx: Any) -> Any:
        try:
            return self._convert(value)
        except ValueError as error:
            name = _NAMES.get(self._convert, "valid")  # type: ignore[call-overload]
            raise typer.BadParameter(f"{value!r} is not {name}", ctx=ctx, param=param) from error
