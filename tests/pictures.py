"""Pictures: what the commands of docs/pictures.md print, as SVG; `python tests/pictures.py` makes them."""

from __future__ import annotations

import html
import io
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pages
from pages import COLUMNS, ROOT, Step
from rich.console import Console
from rich.text import Text

PAGE = ROOT / "docs" / "pictures.md"
#: Width of a character in Rich's SVG.
_CHARACTER = 12.2
_PIECE = re.compile(r'<text class="[^"]*" x="([\d.]+)"[^>]*-line-(\d+)\)">([^<]*)</text>')
# Fonts would be fetched from elsewhere; every system has one of a fixed width.
_FONTS = re.compile(r"@font-face \{.*?\}\n", flags=re.S)


def pictured(text: str) -> Iterator[tuple[Step, str]]:
    """Yield the steps of the page, each with the path of the picture that follows it, or with nothing."""
    images = [
        (text.count("\n", 0, found.start()) + 1, found[1])
        for found in re.finditer(r"^!\[.*?\]\((.*)\)$", text, re.M)
    ]
    steps = pages.steps_of(text)
    for step, after in zip(steps, [*steps[1:], None], strict=True):
        end = after.line if after else text.count("\n") + 1
        yield step, next((path for line, path in images if step.line < line < end), "")


def printed(step: Step, folder: Path) -> str:
    """Return what a command prints on a terminal with colours."""
    done = pages.shell(folder, "bash", "-c", f"FORCE_COLOR=1 TERM=xterm {step.text}")
    assert done.returncode == step.exit, done
    return done.stdout or done.stderr


def draw(command: str, output: str, name: str) -> str:
    """Return a terminal as SVG: the command, and what it printed, with its colours."""
    console = Console(file=io.StringIO(), record=True, width=COLUMNS, force_terminal=True, color_system="standard")
    console.print(Text(f"$ {command}"), soft_wrap=True)
    console.print(Text.from_ansi(output), soft_wrap=True)
    return _FONTS.sub("", console.export_svg(title="rlmesh", unique_id=name))


def lines_of(svg: str) -> list[str]:
    """Return the lines of text in a picture."""
    lines: dict[int, str] = {}
    for x, line, text in _PIECE.findall(svg):
        column = round(float(x) / _CHARACTER)
        lines[int(line)] = lines.get(int(line), "").ljust(column) + html.unescape(text).replace("\xa0", " ")
    return [lines[line] for line in sorted(lines)]


def main() -> None:
    """Write all pictures."""
    with tempfile.TemporaryDirectory() as place:
        for step, picture in pictured(PAGE.read_text(encoding="utf-8")):
            if not picture:
                pages.do(step, Path(place))
                continue
            target = PAGE.parent / picture
            target.parent.mkdir(exist_ok=True)
            target.write_text(draw(step.text, printed(step, Path(place)), target.stem), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
