"""InfoForm: infos that are plain numbers, as rows of float64 instead of pickles.

Axes: R infos, K numbers of each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

import msgspec
import numpy as np
import numpy.typing as npt

from .steps import Info

_Column = npt.NDArray[np.float64]
#: Type -> from a column of its values as float64 to the values.
_READERS: dict[type, Callable[[_Column], Sequence[Any]]] = {
    float: lambda column: column.tolist(),
    int: lambda column: [int(value) for value in column.tolist()],
    bool: lambda column: column.astype(np.bool_).tolist(),
    np.float64: lambda column: list(column),
    np.float32: lambda column: list(column.astype(np.float32)),
    np.bool_: lambda column: list(column.astype(np.bool_)),
    np.int64: lambda column: list(column.astype(np.int64)),
}
#: Types some of whose values are too large for float64.
_WHOLE: tuple[type, ...] = (int, np.int64)
_LARGEST = 2**53


class InfoForm(msgspec.Struct, frozen=True):
    """Keys in their order, and the type of each value; both are given back as they were.

    has_whole: whether some are whole numbers, the largest of which float64 does not hold; infos with numbers that
        large are of no form, nor are those with NaN beside whole numbers.
    """

    keys: tuple[str, ...]
    kinds: tuple[type, ...]
    has_whole: bool

    def fits(self, info: Info) -> bool:
        """Tell whether an info has these keys and types, and numbers that float64 holds."""
        return (
            info.__class__ is dict
            and tuple(info) == self.keys
            and tuple(map(type, info.values())) == self.kinds
            and (not self.has_whole or all(-_LARGEST <= value <= _LARGEST for value in info.values()))
        )

    def read(self, numbers: npt.NDArray[np.float64]) -> list[Info]:
        """Return the infos of some rows (R, K) of numbers."""
        columns = [_READERS[kind](numbers[:, column]) for column, kind in enumerate(self.kinds)]
        return [dict(zip(self.keys, row, strict=True)) for row in zip(*columns, strict=True)]


class FormedInfos(Sequence[Info]):
    """R infos of one form, made when the first of them is asked for: most are read by nobody.

    numbers: (R, K), kept as they are.
    """

    def __init__(self, form: InfoForm, numbers: npt.NDArray[np.float64]) -> None:
        self.form = form
        self._numbers = numbers
        self._made: list[Info] | None = None

    def _all(self) -> list[Info]:
        if self._made is None:
            self._made = self.form.read(self._numbers)
        return self._made

    @overload
    def __getitem__(self, row: int) -> Info: ...
    @overload
    def __getitem__(self, row: slice) -> list[Info]: ...
    def __getitem__(self, row: int | slice) -> Info | list[Info]:
        """Return one info, or a list of some."""
        return self._all()[row]

    def __len__(self) -> int:
        return len(self._numbers)


def form_of(infos: Sequence[Info], most: int) -> InfoForm | None:
    """Return the form that all of some infos have, None if they have none or more than `most` numbers."""
    first = infos[0]
    if first.__class__ is not dict or not 0 < len(first) <= most:
        return None
    kinds = tuple(map(type, first.values()))
    if not all(kind in _READERS for kind in kinds):
        return None
    if not all(key.__class__ is str for key in first):
        return None
    form = InfoForm(tuple(first), kinds, any(kind in _WHOLE for kind in kinds))
    return form if all(map(form.fits, infos)) else None
