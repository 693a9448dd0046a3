"""The live panel as text: what a terminal of a given size shows while episodes are played."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator, Sequence

import msgspec

from .documents import printable
from .glances import Estimate, Glance
from .wording import counted, number

#: A smaller window gets one line.
LEAST_ROWS, LEAST_COLUMNS = 10, 60
#: Columns of the names at the left, and blanks between two lanes.
_NAMES, _GAP = 11, 3
#: The title is shorter than what is said when a stop is asked for, which may be written over it.
_TITLE = 60
_MOST_GATES = 3
_WIDEST_BAR = 50

#: Pieces of a line, each with a style: empty, `name`, `good` or `bad`.
Line = list[tuple[str, str]]


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How far a run is.

    planned: episodes. done: those that have ended. fresh: of those, the ones of this sitting.
    steps: of all lanes, in `seconds` of this sitting.
    """

    planned: int
    done: int
    fresh: int
    steps: int
    seconds: float

    @property
    def rate(self) -> float:
        """Steps a second."""
        return self.steps / self.seconds if self.seconds > 0 else 0.0

    @property
    def left(self) -> float | None:
        """Seconds that the rest takes at this pace; None before the first episode has ended."""
        return self.seconds / self.fresh * (self.planned - self.done) if self.fresh else None


def status_line(pace: Pace, glance: Glance) -> str:
    """Return how a run stands in one line, such as `12/50 episodes, 84,000 steps/s, 31 s left, mean return 2`."""
    return ", ".join(_status_parts(pace, glance))


def short_line(pace: Pace, glance: Glance, width: int) -> str:
    """Return as much of it as fits."""
    return _fitted(_status_parts(pace, glance), width)


def _status_parts(pace: Pace, glance: Glance) -> list[str]:
    parts = [f"{pace.done}/{pace.planned} episodes", f"{pace.rate:,.0f} steps/s"]
    if pace.left is not None:
        parts.append(f"{duration(pace.left)} left")
    if glance.returns is not None:
        parts.append(f"mean return {number(glance.returns.value)}")
    if glance.success is not None:
        parts.append(f"success {glance.success.value * 100:.1f} %")
    if glance.errored:
        parts.append(f"{glance.errored} errored")
    return parts


def panel_lines(pace: Pace, glance: Glance, *, width: int, height: int, has_blocks: bool) -> list[Line]:
    """Return the panel, at most `height` lines of at most `width` columns.

    has_blocks: whether block characters can be shown.
    """
    lines: list[Line] = [
        [(_cut(printable(glance.title).replace("\n", " "), min(width, _TITLE)), "name")],
        _bar_line(pace, glance, width, has_blocks=has_blocks),
    ]
    room = width - _NAMES
    rows = [
        ("time", _fitted(_time_parts(pace, glance), room), ""),
        ("return", _fitted(_return_parts(glance), room), ""),
        ("success", _fitted(_success_parts(glance), room), ""),
        ("errored", _errored_text(glance), "bad" if glance.errored else ""),
    ]
    lines += [[(f"{name:<{_NAMES}}", "name"), (text, style)] for name, text, style in rows]
    lines = [*lines, *_gate_lines(glance, room)][:height]
    return lines + list(_company_lines(glance, pace.planned, room, height - len(lines)))


def _bar_line(pace: Pace, glance: Glance, width: int, *, has_blocks: bool) -> Line:
    of = f" of {'at most ' if glance.until else ''}{pace.planned:,} episodes"
    share = pace.done / pace.planned if pace.planned else 1.0
    text = f"  {pace.done:,}{of} ({int(share * 100)} %)"
    # As much room as the last text takes, so that the bar keeps its length.
    cells = min(_WIDEST_BAR, width - len(f"  {pace.planned:,}{of} (100 %)"))
    full = int(cells * share)
    done, open_ = ("█", "░") if has_blocks else ("#", "-")
    return [(done * full, "good"), (open_ * (cells - full), ""), (text, "")]


def _time_parts(pace: Pace, glance: Glance) -> list[str]:
    parts = [f"{duration(pace.seconds)} gone"]
    if pace.left is not None:
        parts.append(f"{'at most ' if glance.until else ''}about {duration(pace.left)} left")
    return [*parts, f"{pace.rate:,.0f} steps/s"]


def _return_parts(glance: Glance) -> list[str]:
    returns = glance.returns
    if returns is None:
        return ["no episode has ended yet"]
    text = f"mean {number(returns.value)}"
    if returns.low is not None and returns.high is not None and returns.low < returns.high:
        text += f", {_level(returns)} interval {number(returns.low)} to {number(returns.high)}"
    return [text, f"min {number(glance.least)}, max {number(glance.most)}"]


def _success_parts(glance: Glance) -> list[str]:
    success = glance.success
    if success is None:
        return ["not reported" if glance.unknown else "nothing is known yet"]
    parts = [f"{glance.successes:,} of {glance.judged:,} ({success.value * 100:.1f} %)"]
    if success.low is not None and success.high is not None:
        parts.append(f"{_level(success)} interval {success.low * 100:.1f} to {success.high * 100:.1f} %")
    return [*parts, f"not reported: {glance.unknown:,}"] if glance.unknown else parts


def _errored_text(glance: Glance) -> str:
    return f"{glance.errored:,}" if glance.errored else "none"


def _gate_lines(glance: Glance, room: int) -> Iterator[Line]:
    name = "gates"
    for gate, is_met in glance.gates[:_MOST_GATES]:
        state, style = {
            True: ("met so far", "good"),
            False: ("missed so far", "bad"),
            None: ("seen at the end", ""),
        }[is_met]
        yield [
            (f"{name:<{_NAMES}}", "name"),
            (f"{_cut(printable(gate), room - len(state) - 2)}  ", ""),
            (state, style),
        ]
        name = ""
    more = len(glance.gates) - _MOST_GATES
    if more > 0:
        yield [(" " * _NAMES, ""), (f"and {more} more", "")]


def _company_lines(glance: Glance, planned: int, room: int, height: int) -> Iterator[Line]:
    """Yield what each lane or worker does: as many as fit, column by column."""
    company = glance.company
    if company.workers:
        name, cells = "workers", [_worker_text(*worker) for worker in company.workers]
    else:
        name, cells = "lanes", _lane_texts(company.lanes, planned)
    if not cells or height < 1:
        return
    wide = max(map(len, cells)) + _GAP
    columns = max(1, (room + _GAP) // wide)
    if len(cells) > columns * height:
        # The last line says how many are not shown.
        height -= 1
    rows = min(height, math.ceil(len(cells) / columns))
    shown = columns * rows
    for at in range(rows):
        line = "".join(f"{cell:<{wide}}" for cell in cells[at * columns : (at + 1) * columns])
        yield [(f"{'' if at else name:<{_NAMES}}", "name"), (line.rstrip(), "")]
    if len(cells) > shown:
        text = f"... and {len(cells) - shown:,} more" if shown else f"{len(cells):,}"
        yield [(f"{'' if rows else name:<{_NAMES}}", "name"), (text, "")]


def _lane_texts(lanes: Sequence[tuple[int, int, int | None]], planned: int) -> list[str]:
    """Return what each lane plays, with blanks at the end that keep columns where they are as numbers grow."""
    if not lanes:
        return []
    lane_digits = len(str(max(lane for lane, _, _ in lanes)))
    texts = [
        f"{lane:>{lane_digits}}: episode {index}, " + ("reset" if step is None else f"step {step}")
        for lane, index, step in lanes
    ]
    least = len(f"{'':{lane_digits}}: episode {planned}, step 1000")
    return [f"{text:<{least}}" for text in texts]


def _worker_text(worker: int, held: int, is_built: bool) -> str:
    return f"{worker}: " + ("is being built" if is_built else counted(held, "episode") if held else "waits")


def _level(found: Estimate) -> str:
    """Return the confidence of an interval, such as `95 %`; with a `~` where a quick formula made it."""
    return f"{'~' if found.is_rough else ''}{round(found.confidence * 100, 6):g} %"


def duration(seconds: float) -> str:
    """Return seconds for the screen, such as `31 s`, `2 min 05 s` or `3 h 20 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60:02d} min"


def _fitted(parts: Sequence[str], width: int) -> str:
    """Return as many parts as fit into a line, the first one in any case as far as it goes."""
    text = _cut(parts[0], width)
    for part in parts[1:]:
        if len(text) + 2 + len(part) > width:
            break
        text += f", {part}"
    return text


def _cut(text: str, width: int) -> str:
    """Return text of users cut to so many columns."""
    if text.isascii() and len(text) <= width:
        return text
    taken, cells = "", 0
    for letter in text:
        cells += _cells(letter)
        if cells > width - 3:
            return text if sum(map(_cells, text)) <= width else f"{taken}..."
        taken += letter
    return text


def _cells(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1
