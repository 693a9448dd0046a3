"""Golden texts: what terminals of given sizes show, as it was looked at."""

from __future__ import annotations

import pytest
from golden_texts import FOLDER, TEXTS


@pytest.fixture(autouse=True)
def locale(monkeypatch):
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("NO_COLOR", "1")


@pytest.mark.parametrize("name", TEXTS)
def test_text_is_the_one_that_was_looked_at(name):
    """See tests/golden/README.md for how they are made again."""
    assert TEXTS[name]() == (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


def test_every_file_has_a_text():
    assert {file.stem for file in FOLDER.iterdir()} == set(TEXTS)


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (140, 40)])
def test_panel_fits_its_window(columns, rows):
    """A line of the terminal stays free above it, and the last column."""
    lines = (FOLDER / f"panel-{columns}x{rows}.txt").read_text(encoding="utf-8").splitlines()
    assert len(lines) == rows - 2
    assert max(map(len, lines)) <= columns - 1


@pytest.mark.parametrize("name", [name for name in TEXTS if name.endswith("-ascii")])
def test_ascii_is_ascii(name):
    assert (FOLDER / f"{name}.txt").read_bytes().isascii()


@pytest.mark.parametrize("name", [name for name in TEXTS if "-80" in name])
def test_nothing_is_wider_than_eighty_columns(name):
    lines = (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    # A legend is a sentence, which a terminal gets in lines of its own width.
    assert max(len(line) for line in lines if not line.startswith(" a cell is")) <= 80
