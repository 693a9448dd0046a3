"""A page opens in a browser, where there is one; `-m real` looks at it closely."""

from __future__ import annotations

import pytest
from browsing import MISSING, Opened, started
from pages_toys import run_folder
from stored import rows

from rlmesh_cli.pages.making import run_html
from rlmesh_cli.run_reader import read_run


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
def test_page_opens_and_asks_for_nothing(tmp_path):
    file = tmp_path / "report.html"
    file.write_bytes(run_html(read_run(run_folder(tmp_path / "run", rows([True, False]))), tmp_path))
    with started() as browser:
        opened = Opened(browser.new_page(), file)
        assert opened.page.locator("#plot-by-seed .scatterlayer .point").count() == 2
        assert opened.is_quiet()
