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


class LeanCommand(TyperCommand):
    """A Typer command whose flags are text, numbers, paths, or lists of them."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, each with our conversion in place of Typer's."""
        return _with_conversion(super().get_params(ctx))


class LeanGroup(TyperGroup):
    """A Typer group whose own flags are plain."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, each with our conversion in place of Typer's."""
        return _with_conversion(super().get_params(ctx))


def _with_conversion(params: Iterable[Any]) -> list[Any]:
    listed = list(params)
    for param in listed:
        descriptor = getattr(param, "type_descriptor", None)
        if descriptor is not None and getattr(param, "_runtime_param", descriptor) is None:
            param._runtime_param = _Conversion(descriptor.annotation)
    return listed


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
