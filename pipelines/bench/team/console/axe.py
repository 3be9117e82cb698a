"""axe-core, which finds violations of WCAG in a page; it is fetched from npm, for this alone."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

from pipelines.bench.team.console.chromium import BrowserError, Chromium, require_programs

PACKAGE = "axe-core@4.14.1"
RULES = "{runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']}"
FETCH_S = 120


class Violation(NamedTuple):
    """A rule of axe-core's that a page violates, and the first places where."""

    rule: str
    places: list[str]


def fetch_axe(folder: Path) -> str:
    """Fetch the source of axe-core into a folder, by npm.

    Raises:
        BrowserError: npm is not installed, or does not get it.
    """
    require_programs("npm")
    try:
        subprocess.run(["npm", "pack", "--silent", PACKAGE], cwd=folder, check=True, timeout=FETCH_S)
    except subprocess.SubprocessError as error:
        raise BrowserError(f"npm does not get {PACKAGE} ({error}): does it reach its registry?") from None
    (packed,) = folder.glob("*.tgz")
    subprocess.run(["tar", "xzf", packed.name, "package/axe.min.js"], cwd=folder, check=True)
    return (folder / "package" / "axe.min.js").read_text()


def find_violations(browser: Chromium, axe: str) -> list[Violation]:
    """Return what axe-core, whose source is given, finds in the page that a browser shows.

    Raises:
        BrowserError: it cannot look.
    """
    browser.evaluate(axe)
    found = browser.evaluate(f"axe.run(document, {RULES})")
    return [Violation(one["id"], [str(node["target"]) for node in one["nodes"]][:5]) for one in found["violations"]]
