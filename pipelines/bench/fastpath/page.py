"""The fast path's figures as one HTML file that opens without a network."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from pipelines.bench.fastpath import charts
from pipelines.bench.fastpath import page_text as words
from pipelines.bench.fastpath.figures import NAMES
from pipelines.html.document import NUMBER, PLAIN, document, holder, row, section, table
from pipelines.html.plot import Chart

_SIGNS = {True: '<span class="good">✓</span> ', False: '<span class="bad">✗</span> ', None: ""}
_TITLE = "From the measurement to the forecast"


def render(found: dict[str, Any], path: Path) -> Path:
    """Write the page; `found` are the figures of `fastpath.measure`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(html(found), encoding="utf-8")
    return path


def html(found: dict[str, Any]) -> str:
    """The page as text."""
    figures: dict[str, Chart] = {}
    parts = [
        f"<h1>{_TITLE}</h1>",
        '<p class="about">A sample of a job’s load goes in; window, state and forecast are written in one transaction '
        "and the forecast comes out. Each path is measured in turn with its floor, a bare echo of the same bytes, and "
        "with what people would use instead. The champion is a GRU that was fitted to a real load.</p>",
        f'<p class="verdict">{escape(words.headline(found))}</p>',
        section("Goals", "", _goals(found)),
    ]
    if any(found.get(key) for key in charts.PATHS):
        figures |= {"distributions": charts.distributions(found), "spreads": charts.spreads(found)}
        parts += [
            section(
                "Whole distributions",
                "How many of the events took longer than so long; both axes are logarithmic. Further left is faster, "
                "steeper is steadier.",
                holder("distributions", 520, "share of events that took longer against time, a line per path"),
            ),
            section(
                "Side by side",
                "Marks: median over the runs; lines: the lowest and the highest run.",
                holder("spreads", 400, "p50, p99 and p99.9 of every path"),
            ),
            section("In figures", "Median over the runs; count is that of all events.", _paths(found)),
        ]
    if "memory" in found:
        figures["memory"] = charts.memory(found)
        parts.append(section("Memory over puts", "", holder("memory", 300, "memory and files over puts")))
    remarks = "".join(f"<p>{escape(line)}.</p>" for line in words.remarks(found))
    parts.append(section("Remarks", "", remarks))
    return document(f"Tidecast: {_TITLE.lower()}", "\n".join(parts), figures)


def _goals(found: dict[str, Any]) -> str:
    kinds = [PLAIN, PLAIN, PLAIN]
    lines = [
        row([escape(goal.what), escape(goal.goal), _SIGNS[goal.met] + escape(goal.measured)], kinds)
        for goal in words.goals(found)
    ]
    return table(["what", "goal", "measured"], kinds, lines)


def _paths(found: dict[str, Any]) -> str:
    kinds = [PLAIN, *[NUMBER] * (len(NAMES) + 2)]
    named = {key: name for key, (name, *_) in charts.PATHS.items()} | charts.MORE
    lines = []
    for key, name in named.items():
        if one := found.get(key):
            span = " to ".join(words.us(value) for value in one["range"]["p99"])
            cells = [escape(name), *(words.us(one[n]) for n in NAMES), span, f"{one['count']:,}"]
            lines.append(row(cells, kinds))
    return table(["path", "p50", "p90", "p99", "p99.9", "most", "p99 over runs", "count"], kinds, lines, 'class="wide"')
