"""Pictures in letters: histograms, strips and traces as lines of text, in block characters or in ASCII."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Sequence
from typing import TextIO

_LEVELS = "▁▂▃▄▅▆▇█"
_EIGHTHS = "▏▎▍▌▋▊▉█"
_ASCII_LEVELS = "_.-=+*%#"
_ALL_BLOCKS = f"{_LEVELS}{_EIGHTHS}·×░"
_MOST_BINS = 6
_WIDEST_BAR = 50
#: Values that lie nearer to one another than this share of their size, or than this, have no edges between them.
_NARROWEST, _LEAST_APART = 1e-13, 1e-300
_MOST_ROWS = 2
#: Edges with more decimals, or larger than this, are written in short.
_MOST_DECIMALS, _LARGEST = 6, 1e9

#: Outcomes of an episode -> their marks, in block characters and in ASCII.
MARKS = {True: "█#", False: "·.", None: "??", "error": "×x"}


def can_show_blocks(stream: TextIO) -> bool:
    """Tell whether a stream takes block characters, and whoever reads it is not said to know ASCII only."""
    # Python turns the C locale into UTF-8 on its own; the terminal does not.
    named = next((os.environ[name] for name in ("LC_ALL", "LANG") if os.environ.get(name)), "")
    if named in ("C", "POSIX"):
        return False
    try:
        _ALL_BLOCKS.encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def histogram(values: Sequence[float], width: int, *, has_blocks: bool) -> list[str]:
    """Return a line a bin, with its edges, how many values lie in it, and a bar; nothing where all are the same.

    values: finite. width: most columns. Bins hold their lower edge, the last one both; those of whole numbers say
    the first and last number that they hold.
    """
    apart = max(values) - min(values) if values else 0.0
    if len(values) < 2 or not math.isfinite(apart):
        return []
    if apart < _LEAST_APART or apart / _MOST_BINS <= _NARROWEST * max(map(abs, values)):
        return []
    is_whole = all(value.is_integer() for value in values) and max(map(abs, values)) < _LARGEST
    step, first, bins = _bins(min(values), max(values), is_whole=is_whole)
    counts = [0] * bins
    for value in values:
        counts[min(bins - 1, math.floor(value / step - first + 1e-9))] += 1
    labels = _bin_labels(step, first, bins, is_whole=is_whole, is_full=max(values) >= (first + bins) * step)
    wide, digits = max(map(len, labels)), len(f"{max(counts):,}")
    room = min(_WIDEST_BAR, max(8, width - wide - digits - 5))
    return [
        f" {label:>{wide}}  {count:>{digits},}  {_bar(count / max(counts), room, has_blocks=has_blocks)}".rstrip()
        for label, count in zip(labels, counts, strict=True)
    ]


def _bins(least: float, most: float, *, is_whole: bool) -> tuple[float, int, int]:
    """Return the width of a bin, a round number; the first bin, in such widths from 0; and how many there are."""
    # How far from an edge a number that stands on it may come out.
    rounding = 4 * math.ulp(most)
    exponent = math.floor(math.log10((most - least) / _MOST_BINS))
    if is_whole:
        exponent = max(0, exponent)
    while True:
        for digit in (1, 2, 5):
            step = digit * 10.0**exponent
            first = math.floor(least / step + 1e-9)
            bins = math.floor(most / step + 1e-9) - first + 1
            # A largest value on an edge belongs to the bin below it, unless bins are single numbers.
            if (
                bins > 1
                and not (is_whole and step == 1)
                and abs((first + bins - 1) * step - most) <= 1e-9 * step + rounding
            ):
                bins -= 1
            if bins <= _MOST_BINS:
                return step, first, bins
        exponent += 1


def _bin_labels(step: float, first: int, bins: int, *, is_whole: bool, is_full: bool) -> list[str]:
    """Return `0 to 99` for whole numbers, `0.0 to <0.5` for others; is_full: the last one holds its upper edge."""
    labels = []
    for at in range(first, first + bins):
        low, high = at * step, (at + 1) * step
        is_last = at == first + bins - 1
        if is_whole:
            last = int(high) if is_last and is_full else int(high) - 1
            labels.append(f"{int(low)}" if last == int(low) else f"{int(low)} to {last}")
        else:
            below = "" if is_last and is_full else "<"
            labels.append(f"{_edge(low, step)} to {below}{_edge(high, step)}")
    return labels


def _edge(value: float, step: float) -> str:
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    if decimals > _MOST_DECIMALS or abs(value) >= _LARGEST:
        digits = math.ceil(math.log10(max(abs(value), step) / step)) + 1
        return f"{value:.{max(4, digits)}g}"
    return f"{value + 0.0:.{decimals}f}"


def _bar(share: float, room: int, *, has_blocks: bool) -> str:
    """Return a bar of up to `room` columns; what is there at all is seen."""
    if not share:
        return ""
    if not has_blocks:
        return "#" * max(1, round(share * room))
    eighths = max(1, round(share * room * 8))
    return _EIGHTHS[-1] * (eighths // 8) + (_EIGHTHS[eighths % 8 - 1] if eighths % 8 else "")


def strip(outcomes: Sequence[bool | str | None], width: int, *, has_blocks: bool) -> tuple[int, list[str]]:
    """Return how many episodes a cell stands for, and rows of cells, at most `width` wide.

    outcomes: of episodes in order: True, False, None for one that did not report, `error`. A cell of one episode
    is its mark; one of several rises with the share of successes among those whose outcome is known.
    """
    at = 0 if has_blocks else 1
    room = max(10, width // 10 * 10)
    fold = _fold(len(outcomes), room * _MOST_ROWS)
    if fold == 1:
        cells = "".join(MARKS[outcome][at] for outcome in outcomes)
    else:
        groups = (outcomes[begin : begin + fold] for begin in range(0, len(outcomes), fold))
        cells = "".join(_cell(group, at) for group in groups)
    rows = math.ceil(len(cells) / room)
    even = math.ceil(len(cells) / rows / 10) * 10
    return fold, [cells[begin : begin + even] for begin in range(0, len(cells), even)]


def _fold(count: int, cells: int) -> int:
    """Return the smallest round number of episodes a cell with which all of them fit."""
    if count <= cells:
        return 1
    scale = 1
    while True:
        for digit in (1, 2, 5):
            if digit * scale * cells >= count:
                return digit * scale
        scale *= 10


def _cell(group: Sequence[bool | str | None], at: int) -> str:
    known = [outcome is True for outcome in group if outcome is not None]
    if not known:
        return MARKS[None][at]
    share = sum(known) / len(known)
    if share in (0, 1):
        return MARKS[bool(share)][at]
    if at:
        return str(min(9, max(1, int(share * 10))))
    return _LEVELS[min(6, int(share * 8))]


def trace_rows(cells: Sequence[float], height: int, *, has_blocks: bool, ends: tuple[float, float]) -> list[str]:
    """Return `height` lines that rise and fall with the values, the highest line first.

    cells: one value each; what is not finite is shown as `?` in the lowest line. ends: the values that are shown
    lowest and highest.
    """
    least, most = ends
    ramp = _LEVELS if has_blocks else _ASCII_LEVELS
    levels = []
    for value in cells:
        if not math.isfinite(value):
            levels.append(-1)
            continue
        # Halves first: the distance of two numbers may have no float.
        share = (value / 2 - least / 2) / (most / 2 - least / 2) if most > least else 0.0
        levels.append(min(8 * height - 1, int(share * 8 * height)))
    return [
        "".join(_trace_cell(level - 8 * below, is_lowest=below == 0, ramp=ramp) for level in levels)
        for below in reversed(range(height))
    ]


def _trace_cell(level: int, *, is_lowest: bool, ramp: str) -> str:
    if level < 0:
        return "?" if is_lowest else " "
    return ramp[min(7, level)]


def cells_of(values: Sequence[float], width: int) -> list[Sequence[float]]:
    """Return the values in at most `width` groups of as good as equal size, in order."""
    count = min(width, len(values))
    edges = [at * len(values) // count for at in range(count + 1)] if count else [0]
    return [values[begin:end] for begin, end in itertools.pairwise(edges)]


def standing_out(values: Sequence[float], width: int) -> list[float]:
    """Return for each cell the value that is farthest from the median of all, so that a single reward is seen.

    What is not finite is farther than anything.
    """
    finite = sorted(value for value in values if math.isfinite(value))
    median = finite[len(finite) // 2] if finite else 0.0

    def distance(value: float) -> float:
        return abs(value - median) if math.isfinite(value) else math.inf

    return [max(group, key=distance) for group in cells_of(values, width)]


def means(values: Sequence[float], width: int) -> list[float]:
    """Return the mean of each cell."""
    return [sum(group) / len(group) for group in cells_of(values, width)]
