"""Text of users is text on every page, and its colours can be read."""

from __future__ import annotations

import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from cli_toys import ROOT
from pages_toys import EVIL, data_of, evil_folder, figures_of, page_of

from rlmesh_cli.comparing import Judging, compare
from rlmesh_cli.pages.labels import plotted, scripted
from rlmesh_cli.pages.making import pair_html, run_html, several_html
from rlmesh_cli.run_reader import read_run


class Reader(HTMLParser):
    """Reads a page as a browser does, as far as tags and text outside of scripts go."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.handlers: list[str] = []
        self.ids: list[str] = []
        self.text: list[str] = []
        self._script = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self._script = tag in ("script", "style")
        self.links += [value or "" for name, value in attrs if name in ("href", "src", "action", "poster")]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]

    def handle_endtag(self, tag):
        self._script = False

    def handle_data(self, data):
        if not self._script:
            self.text.append(data)


def pages_of_evil(tmp_path: Path) -> dict[str, str]:
    folders = [evil_folder(tmp_path / name) for name in ("one", "two", "three")]
    runs = [read_run(folder) for folder in folders]
    return {
        "run": run_html(runs[0], tmp_path).decode(),
        "pair": pair_html(compare(runs[0], runs[1], Judging()), tmp_path, [EVIL]).decode(),
        "several": several_html(runs, tmp_path).decode(),
    }


def test_names_full_of_markup_are_text(tmp_path):
    for kind, page in pages_of_evil(tmp_path).items():
        read = Reader(page)
        assert {"img", "b", "iframe"} & set(read.tags) <= {"b"}, kind
        assert read.tags.count("script") == 4, kind
        assert read.handlers == [], kind
        assert "<b>bold</b><img src=x onerror=alert(1)></script>" in "".join(read.text), kind
        assert "\u202e" not in page.replace("\\u202e", ""), kind
        data = data_of(page)  # the first </script> after it is its own
        assert data["entries"], kind


def test_page_links_to_nothing_but_itself(tmp_path):
    for kind, page in pages_of_evil(tmp_path).items():
        read = Reader(page)
        links = read.links
        assert links, kind
        assert len(read.ids) == len(set(read.ids)), kind
        assert {link[1:] for link in links if link.startswith("#")} <= set(read.ids), kind
        assert [link for link in links if not link.startswith(("#", "data:"))] == [], kind


def test_labels_of_plots_are_not_read_as_markup(tmp_path):
    figures = figures_of(page_of(evil_folder(tmp_path / "run")))
    assert figures["actuators"].spec["data"][0]["y"][0].startswith("&lt;b&gt;bold")
    assert plotted("a & <b>b</b>\nc") == "a &amp; &lt;b&gt;b&lt;/b&gt; c"


@pytest.mark.parametrize("text", ["</script>", "<!--<script>", "\u2028", "a\ud800b", "\x00", "&lt;"])
def test_data_cannot_end_its_script(text):
    made = scripted({"name": text, text: [text]})
    assert not set("<>&\u2028\u2029\x00") & set(made)
    made.encode()
    assert len(json.loads(made)) == 2


def test_what_is_not_finite_is_null_in_data():
    assert scripted([math.nan, math.inf, 1.0]) == "[null,null,1.0]"


def palettes() -> dict[str, dict[str, str]]:
    """Return the colours of the style sheet: light, dark, and those of paper."""
    css = (ROOT / "rlmesh_cli" / "pages" / "look" / "page.css").read_text(encoding="utf-8")
    blocks = [dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", block)) for block in re.findall(r"\{([^{}]*)\}", css)]
    light, dark, printed = (block for block in blocks if "paper" in block)
    return {"light": light, "dark": dark, "print": {"focus": light["focus"], **printed}}


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour, as WCAG 2 defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, from 1 to 21."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
def test_colours_can_be_read(scheme):
    palette = palettes()[scheme]
    for name in ("ink", "muted", "success", "failure"):
        for ground in ("paper", "raised"):
            assert contrast(palette[name], palette[ground]) >= 4.5, (name, ground)
    for name in ("unknown", "error", "bar", "faint", "focus"):
        assert contrast(palette[name], palette["paper"]) >= 2.95, name


def test_every_colour_that_a_plot_names_is_in_every_palette(tmp_path):
    pages = pages_of_evil(tmp_path)
    figures = [json.dumps(data_of(page)["figures"]) for page in pages.values()]
    named = {name for text in figures for name in re.findall(r'"@(\w+)"', text)}
    assert {"success", "failure", "bar", "ink"} <= named
    for palette in palettes().values():
        assert named <= set(palette)
