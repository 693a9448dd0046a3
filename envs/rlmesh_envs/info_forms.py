"""InfoForm: infos that are plain numbers, as rows of float64 instead of pickles.

Axes: R infos, K numbers of each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from .steps import Info

#: Types whose every value a float64 holds.
_EXACT: tuple[type, ...] = (float, bool, np.float64, np.float32, np.float16, np.bool_)
#: Types some of whose values are too large for it.
_WHOLE: tuple[type, ...] = (int, np.int64, np.int32)
_LARGEST = 2**53


class InfoForm(msgspec.Struct, frozen=True):
    """Keys in their order, and the type of each value; both are given back as they were."""

    keys: tuple[str, ...]
    kinds: tuple[Callable[[float], Any], ...]

    def fits(self, info: Info) -> bool:
        """Tell whether an info has these keys and types, and numbers that float64 holds."""
        return (
            info.__class__ is dict
            and tuple(info) == self.keys
            and tuple(map(type, info.values())) == self.kinds
            and all(
                -_LARGEST <= value <= _LARGEST
                for value, kind in zip(info.values(), self.kinds, strict=True)
                if kind in _WHOLE
            )
        )

    def read(self, numbers: npt.NDArray[np.float64]) -> list[Info]:
        """Return the infos of some rows (R, K) of numbers."""
        rows = numbers.tolist()
        return [
            dict(zip(self.keys, [kind(value) for kind, value in zip(self.kinds, row, strict=True)], strict=True))
            for row in rows
        ]


def form_of(infos: Sequence[Info], most: int) -> InfoForm | None:
    """Return the form that all of some infos have, None if they have none or more than `most` numbers."""
    first = infos[0]
    if first.__class__ is not dict or not 0 < len(first) <= most:
        return None
    kinds = tuple(map(type, first.values()))
    if not all(kind in _EXACT or kind in _WHOLE for kind in kinds):
        return None
    if not all(key.__class__ is str for key in first):
        return None
    form = InfoForm(tuple(first), kinds)
    return form if all(map(form.fits, infos)) else None
