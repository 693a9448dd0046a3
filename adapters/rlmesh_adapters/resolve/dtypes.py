"""Dtypes that a model may ask for."""

from __future__ import annotations

from rlmesh_adapters.errors import nearest

from .errors import ResolveError

DTYPES = (
    "bool",
    "uint8",
    "int8",
    "uint16",
    "int16",
    "uint32",
    "int32",
    "uint64",
    "int64",
    "float16",
    "float32",
    "float64",
)


def check_dtype(dtype: str, name: str, where: str) -> None:
    """Raise ResolveError for a dtype that is not known, naming the nearest."""
    if dtype in DTYPES:
        return
    near = nearest(dtype, DTYPES, limit=1)
    raise ResolveError(
        "Unsupported",
        f'{name}: unknown dtype "{dtype}"',
        where=where,
        mend=f"did you mean {near[0]}?" if near else f"use one of {', '.join(DTYPES)}",
    )


def is_integer(dtype: str) -> bool:
    """Tell whether a dtype holds whole numbers only."""
    return not dtype.startswith("float")
