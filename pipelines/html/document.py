"""Pieces of HTML that the pages share: the whole document, sections, tables, tiles, places of figures."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # who draws nothing needs neither Plotly nor pandas
    from pipelines.html.plot import Chart

_MARKS = {
    True: '<span class="good" title="as it should be">✓</span> ',
    False: '<span class="bad" title="not as it should be">✗</span> ',
    None: "",
}
NUMBER, NOWRAP, PLAIN = "number", "nowrap", ""
"""Kinds of table cells."""


@dataclass(frozen=True)
class Tile:
    """One headline figure of a page.

    Attributes:
        label: what it is.
        value: as text.
        unit: behind it.
        detail: a smaller line under it.
        good: whether it is as it should be; None for a figure without a verdict.
        versus: a line of comparison with another run; "" for none.
    """

    label: str
    value: str
    unit: str
    detail: str
    good: bool | None = None
    versus: str = ""


def document(title: str, body: str, figures: dict[str, Chart]) -> str:
    """Return a whole HTML page that opens without a network: styles, scripts and, for figures, Plotly are in it.

    Args:
        title: plain text.
        body: HTML.
        figures: charts by name, drawn into the element that `holder` makes for the name.

    Raises:
        ValueError: a chart holds NaN or infinity.
        TypeError: a chart holds what is no JSON value.
    """
    from plotly.offline import get_plotlyjs

    assets = files("pipelines.html") / "assets"
    css, js = ((assets / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    data = json.dumps(figures, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<link rel="icon" href="data:,">
<style>
{css}</style>
</head>
<body>
<main>
<button id="theme" type="button" aria-label="change between light and dark">light / dark</button>
{body}
</main>
<script type="application/json" id="charts">{data}</script>
<script>{get_plotlyjs() if figures else ""}</script>
<script>
{js}</script>
</body>
</html>
"""


def holder(name: str, height: int, label: str, identity: str = "") -> str:
    """Return the HTML element that a figure of `document` is drawn into.

    Args:
        name: of the figure.
        height: pixels.
        label: what it shows, for screen readers.
        identity: `id` of the element; "" for none.
    """
    mark = f' id="{identity}"' if identity else ""
    drawn = f'data-chart="{name}" data-height="{height}" role="img" aria-label="{escape(label)}"'
    return f'<div class="chart"{mark} {drawn}></div>'


def section(title: str, note: str, body: str) -> str:
    """Return an HTML section: title, a note in small type ("" for none), and `body`, which is HTML."""
    said = f'<p class="note">{escape(note)}</p>' if note else ""
    return f"<section><h2>{escape(title)}</h2>{said}{body}</section>"


def table(titles: list[str], kinds: list[str], rows: Iterable[str], mark: str = "") -> str:
    """Return an HTML table that scrolls by itself where it is too wide or long.

    Args:
        titles: of the columns, plain text.
        kinds: of each column: `NUMBER`, `NOWRAP` or `PLAIN`.
        rows: HTML made by `row`.
        mark: attributes of the table element.

    Raises:
        ValueError: not as many kinds as titles.
    """
    head = "".join(f'<th class="{kind}">{escape(title)}</th>' for title, kind in zip(titles, kinds, strict=True))
    body = "".join(rows)
    return f'<div class="scroll"><table {mark}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def row(cells: list[str], kinds: list[str], mark: str = "") -> str:
    """Return an HTML table row.

    Args:
        cells: HTML, a cell per column.
        kinds: of each column, as in `table`.
        mark: attributes of the row element.

    Raises:
        ValueError: not as many kinds as cells.
    """
    return f"<tr {mark}>" + "".join(f'<td class="{k}">{c}</td>' for c, k in zip(cells, kinds, strict=True)) + "</tr>"


def below(text: str) -> str:
    """Return HTML of a smaller second line in a table cell; "" for ""."""
    return f'<div class="sub">{escape(text)}</div>' if text else ""


def tile_row(tiles: list[Tile]) -> str:
    """Return HTML of the headline figures side by side."""
    return '<div class="tiles">' + "".join(map(_tile, tiles)) + "</div>"


def _tile(tile: Tile) -> str:
    versus = f'<div class="versus">{escape(tile.versus)}</div>' if tile.versus else ""
    return (
        f'<div class="tile"><div class="label">{_MARKS[tile.good]}{escape(tile.label)}</div>'
        f'<div class="value">{escape(tile.value)} <small>{escape(tile.unit)}</small></div>'
        f'<div class="detail">{escape(tile.detail)}</div>{versus}</div>'
    )
