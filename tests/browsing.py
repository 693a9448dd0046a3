"""Looking at pages with a browser: Debian's chromium, driven by playwright, where both are there."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
#: Why pages cannot be looked at here, empty if they can.
MISSING = (
    "no browser: playwright is not installed (pip install 'rlmesh-cli[real]')"
    if find_spec("playwright") is None
    else "no browser: there is no chromium (apt-get install chromium)"
    if CHROMIUM is None
    else ""
)
_OPTIONS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
_OWN = ("data:", "blob:")


@contextmanager
def started() -> Iterator[Any]:
    """Start a browser, and end it."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - an extra

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=list(_OPTIONS))
        yield browser
        browser.close()


class Opened:
    """A page in a browser, with what it complained of and what it asked for."""

    def __init__(self, page: Any, file: Path, waits_for: str = "html.drawn") -> None:
        self.page = page
        self.said: list[str] = []
        self.asked: list[str] = []
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("dialog", lambda dialog: (self.said.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: self.asked.append(request.url))
        self.url = file.as_uri()
        page.goto(self.url)
        page.wait_for_selector(waits_for)

    def is_quiet(self) -> bool:
        """Tell whether nothing was complained of, and nothing asked for but the file itself."""
        others = [url for url in self.asked if url != self.url and not url.startswith(_OWN)]
        assert (self.said, others) == ([], [])
        return True

    def column(self, table: str, place: int) -> list[str]:
        """Return the texts of a column in the rows that are shown."""
        found: list[str] = self.page.eval_on_selector_all(
            f"#{table} tbody tr:not([hidden]) td:nth-child({place})",
            "cells => cells.map((cell) => cell.innerText)",
        )
        return found
