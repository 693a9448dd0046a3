"""Insides: the objects that a policy is made of, found without calling any of its code.

Followed are attributes, slots, containers, what functions close over, the globals of their file that they use, and
what stands in classes that are the user's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

from .errors import is_fault, is_installed_file

_MOST_OBJECTS = 20_000
# Longer containers hold data, not parts.
_MOST_ITEMS = 1_000
_MOST_DECORATORS = 8
_PLAIN = (str, bytes, int, float, complex, bool, type(None), type)


def objects_inside(root: object) -> Iterator[Any]:
    """Yield `root` and what it holds, each object once; arrays and tensors are yielded, not looked into.

    Plain values, classes and imported modules are passed by. At most 20,000 objects are looked into.
    """
    seen: set[int] = set()
    waiting: list[object] = [root]
    while waiting and len(seen) < _MOST_OBJECTS:
        item = waiting.pop()
        if isinstance(item, _PLAIN) or id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, (dict, list, tuple, set)):
            if len(item) <= _MOST_ITEMS:
                waiting.extend(item.values() if isinstance(item, dict) else item)
            continue
        yield item
        if not is_array(item):
            waiting.extend(reversed(list(_parts(item))))


def is_array(item: object) -> bool:
    """Whether an object is an array or a tensor."""
    kind = type(item)
    return hasattr(kind, "__array_interface__") or hasattr(kind, "__dlpack__")


def _parts(item: object) -> Iterator[object]:
    yield from slots_of(item).values()
    for kind in type(item).__mro__:
        if _is_users(kind):  # its methods among it, and so the globals that they use
            yield from _defined(dict(vars(kind)))
    values = get_quietly(item, "__dict__")
    if isinstance(values, dict):
        # Of a module that is itself the policy only what the file defines, not what it imports.
        yield from _defined(values) if _is_module(item) else values.values()
    if hasattr(type(item), "__call__"):  # noqa: B004 - functions and methods, not what merely looks callable
        yield from _function_parts(item)


def slots_of(item: object) -> dict[str, object]:
    """Return what stands in an object's slots, by name; None for an empty one."""
    found: dict[str, object] = {}
    for kind in type(item).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in [slots] if isinstance(slots, str) else slots:
            is_private = name.startswith("__") and not name.endswith("__")
            stored = f"_{kind.__name__.lstrip('_')}{name}" if is_private else name
            if stored not in ("__dict__", "__weakref__"):
                found[stored] = get_quietly(item, stored)
    return found


def attributes_of(item: object) -> dict[str, object]:
    """Return an object's own attributes, by name, be they kept in a dict or in slots."""
    values = get_quietly(item, "__dict__")
    return {**slots_of(item), **(values if type(values) is dict else {})}


def _function_parts(function: object) -> Iterator[object]:
    for cell in get_quietly(function, "__closure__") or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not filled yet
            continue
    for name in ("__self__", "__func__", "__wrapped__", "__defaults__", "__kwdefaults__"):
        yield get_quietly(function, name)
    scope = get_quietly(function, "__globals__")
    if isinstance(scope, dict):
        used = _names(get_quietly(function, "__code__"))
        yield from (scope[name] for name in used if name in scope and not _is_module(scope[name]))


def _names(code: object) -> Iterator[str]:
    """Yield the names that a function looks up, also in comprehensions and functions inside of it."""
    yield from get_quietly(code, "co_names") or ()
    for part in get_quietly(code, "co_consts") or ():
        if isinstance(part, CodeType):
            yield from _names(part)


def _is_users(kind: type) -> bool:
    """Tell whether a class was written by the user, by the files that its methods are from."""
    if kind.__module__ == "builtins":
        return False
    functions = (_undecorated(value) for value in vars(kind).values())
    return any(one is not None and not is_installed_file(one.__code__.co_filename) for one in functions)


def _undecorated(value: object) -> FunctionType | None:
    """Return the function that a class's attribute is, or that decorators were put around."""
    for _ in range(_MOST_DECORATORS):
        inner = value.__func__ if isinstance(value, (staticmethod, classmethod)) else None
        inner = inner or (vars(value).get("__wrapped__") if isinstance(value, FunctionType) else None)
        if inner is None:
            break
        value = inner
    return value if isinstance(value, FunctionType) else None


def _defined(values: dict[str, object]) -> Iterator[object]:
    return (value for name, value in values.items() if not name.startswith("__") and not _is_module(value))


def _is_module(value: object) -> bool:
    return type(value).__name__ == "module"


def get_quietly(item: object, name: str) -> Any:
    """Return an attribute, None where there is none, or where the user's own lookup raises."""
    try:
        return getattr(item, name, None)
    except BaseException as error:
        if not is_fault(error):
            raise
        return None
