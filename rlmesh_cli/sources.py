"""Source: what a route calls its policy, taken apart."""

from __future__ import annotations


def at_file(source: str, file: str) -> str:
    """Return what a policy is called when its file lies elsewhere; its attribute stays."""
    _, attribute = split_source(source)
    return f"{file}:{attribute}" if attribute else file


def split_source(source: str) -> tuple[str, str]:
    """Return (file or module, attribute) of `policy.py`, `policy.py:Name`, `package.module` or `...:Name`.

    The attribute is empty where none is named. Folders on the way to a file may have colons in their names.
    """
    if source.endswith(".py"):
        return source, ""
    path, colon, attribute = source.rpartition(".py:")
    if colon:
        return f"{path}.py", attribute
    target, colon, attribute = source.rpartition(":")
    return (target, attribute) if colon else (source, "")
