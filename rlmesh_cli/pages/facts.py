"""What a page says: frozen records of text and numbers, without a word of HTML.

Text is as users and runs wrote it; whoever shows it escapes it.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import msgspec

#: How an episode ended for its judgement; also the names of the colours in `look/page.css`.
Outcome = Literal["success", "failure", "unknown", "error"]
Severity = Literal["caution", "note", "info", "good", "bad"]


class Line(msgspec.Struct, frozen=True):
    """A name and what is said of it."""

    name: str
    text: str


class Sentence(msgspec.Struct, frozen=True):
    """A sentence, and how much it matters."""

    text: str
    severity: Severity = "info"
    name: str = ""


class Cell(msgspec.Struct, frozen=True):
    """A cell of a table. key: what it is sorted by; its text if None. outcome: a colour beside the text."""

    text: str
    key: float | str | None = None
    outcome: Outcome | None = None
    href: str | None = None


class Column(msgspec.Struct, frozen=True):
    """A column; kind: `number` is aligned right, `text` may be folded, `word` keeps to one line."""

    name: str
    kind: Literal["number", "text", "word"] = "word"


class Row(msgspec.Struct, frozen=True):
    """A row. entry: the key of the details that it leads to. marks: numbers by which plots pick rows."""

    cells: tuple[Cell, ...]
    entry: str | None = None
    marks: dict[str, float] = {}


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """A table. note: what it leaves out. is_sortable: by its headers. filters: outcomes that it can be held to."""

    kind: ClassVar[str] = "table"
    id: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    note: str = ""
    is_sortable: bool = False
    is_filtered: bool = False
    filters: tuple[str, ...] = ()


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A plot. spec: `data` and `layout` as plotly takes them, colours by name (`@success`).

    caption: what it shows, and what it leaves out. table: the same in numbers, where it is short.
    picks: what a click chooses: `entry` (its details) or the name of a mark (rows of the table `listed`).
    """

    id: str
    title: str
    caption: str
    spec: dict[str, Any]
    table: Table | None = None
    picks: str = ""
    listed: str = ""
    is_wide: bool = False


class Meter(msgspec.Struct, frozen=True, kw_only=True):
    """A value with its interval on an axis from `start` to `end`. marks: (value, name) of bars it is held against.

    is_signed: whether it is a difference; then the first mark is that of none.
    """

    name: str
    value: str
    text: str
    start: float
    end: float
    ends: tuple[str, str]
    point: float | None = None
    low: float | None = None
    high: float | None = None
    marks: tuple[tuple[float, str], ...] = ()
    is_signed: bool = False

    def share(self, value: float) -> float:
        """Return where a value lies on the axis, from 0 to 100."""
        # Halves, for the difference of two numbers may have no float.
        span = self.end / 2 - self.start / 2
        return min(100.0, max(0.0, (value / 2 - self.start / 2) / span * 100)) if span > 0 else 50.0


class Facts(msgspec.Struct, frozen=True):
    """Names and what is said of each."""

    kind: ClassVar[str] = "facts"
    lines: tuple[Line, ...]


class Sentences(msgspec.Struct, frozen=True):
    """Sentences, one below the other."""

    kind: ClassVar[str] = "sentences"
    items: tuple[Sentence, ...]


class Figures(msgspec.Struct, frozen=True):
    """Plots side by side."""

    kind: ClassVar[str] = "figures"
    items: tuple[Figure, ...]


class Meters(msgspec.Struct, frozen=True):
    """Values with their intervals."""

    kind: ClassVar[str] = "meters"
    items: tuple[Meter, ...]


class Text(msgspec.Struct, frozen=True):
    """Text with its own line ends, such as a plan. is_folded: whether it is opened by whoever wants it."""

    kind: ClassVar[str] = "text"
    title: str
    text: str
    is_folded: bool = False


class Clip(msgspec.Struct, frozen=True, kw_only=True):
    """A video. source: a relative link, or `data:` with the whole file. label: what it shows."""

    id: str
    label: str
    source: str
    entry: str
    title: str


class Gallery(msgspec.Struct, frozen=True):
    """Videos."""

    kind: ClassVar[str] = "gallery"
    clips: tuple[Clip, ...]


class Group(msgspec.Struct, frozen=True):
    """Blocks under a heading of their own, opened by whoever wants them."""

    kind: ClassVar[str] = "group"
    title: str
    blocks: tuple[Block, ...]


Block = Table | Facts | Sentences | Figures | Meters | Text | Gallery | Group


class Section(msgspec.Struct, frozen=True):
    """A part of a page. id: of its place on the page."""

    id: str
    title: str
    blocks: tuple[Block, ...]


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One episode in detail. clips: ids of its videos, with their labels. links: (text, relative link)."""

    name: str
    lines: tuple[Line, ...]
    clips: tuple[tuple[str, str], ...] = ()
    links: tuple[tuple[str, str], ...] = ()


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown of an episode, or of a pair of them, that was chosen."""

    key: str
    title: str
    sides: tuple[Side, ...]


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A page.

    title: of the window. heading: what was run. lead: where it comes from, in a line. claim: what may be said.
    verdict: of the claim in a word or two, with its severity. top: what stands below the claim.
    """

    title: str
    heading: str
    lead: str
    claim: str
    verdict: Sentence | None
    top: tuple[Block, ...]
    sections: tuple[Section, ...]
    entries: tuple[Entry, ...]
    made: str
