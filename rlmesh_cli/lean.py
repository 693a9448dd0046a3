"""Lean commands: flags converted by a few lines of ours.

Typer converts through a validation library that takes longer to import than our own modules together; it would
be paid at every start. Where a release of Typer has no such step, nothing is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, get_args

import typer
from typer.core import TyperCommand, TyperGroup

_NAMES = {int: "a whole number", float: "a number", Path: "a path", str: "text", bool: "true or false"}
_LETTERS = {int: "N", float: "X", Path: "PATH"}
_SHELLS = {
    "install_completion": "Let this shell complete what is typed.",
    "show_completion": "Print the script that does so.",
}


class LeanCommand(TyperCommand):
    """A Typer command whose flags are text, numbers, paths, or lists of them."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, each with our conversion in place of Typer's."""
        params = _with_conversion(super().get_params(ctx))
        if ctx.resilient_parsing:  # a shell asks what could stand next
            from .completing import complete_by_name  # noqa: PLC0415 - only then

            complete_by_name(params, self.name)
        return params


class LeanGroup(TyperGroup):
    """A Typer group whose own flags are plain."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, each with our conversion in place of Typer's."""
        return [_about_shells(param) for param in _with_conversion(super().get_params(ctx))]


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
