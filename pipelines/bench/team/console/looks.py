"""Looks at every page of the console, at three widths and in both themes: what a browser and axe-core object to."""

from __future__ import annotations

import itertools
import time
from typing import NamedTuple

from pipelines.bench.team.console.axe import Violation, find_violations
from pipelines.bench.team.console.chromium import Chromium

LISTS = ("pools", "backfills", "models", "topologies")
PAGES = {"jobs": "", "job": "jobs/orders-000", **{name: name for name in LISTS}}
"""Address of each page within the console."""
WIDTHS, THEMES = (360, 820, 1440), ("light", "dark")
"""Pixels, and what the system prefers."""
LOOKS = tuple(itertools.product(PAGES, WIDTHS, THEMES))
SETTLE_S = 2.2
"""Two looks more at the data, which change what is there."""


class PageLook(NamedTuple):
    """What was found on a page.

    Attributes:
        name: of `PAGES`, with width and theme.
        drawn_s: seconds until it was drawn.
        problems: that the browser's console tells.
        violations: that axe-core finds.
        fits: whether it does not scroll sideways.
        themed: whether it has the theme that it should.
    """

    name: str
    drawn_s: float
    problems: list[str]
    violations: list[Violation]
    fits: bool
    themed: bool


def look_at(browser: Chromium, address: str, axe: str, page: str, width: int, theme: str) -> PageLook:
    """Open a page of the console at an address, wait until its data have come anew, and look at it.

    Raises:
        BrowserError: it is not drawn.
    """
    browser.problems.clear()
    drawn_s = browser.open(f"{address}/{PAGES[page]}", width, theme)
    time.sleep(SETTLE_S)
    violations = find_violations(browser, axe)
    fits = browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    themed = browser.evaluate("document.documentElement.dataset.theme") == theme
    return PageLook(f"{page} {width} {theme}", drawn_s, list(browser.problems), violations, fits, themed)
