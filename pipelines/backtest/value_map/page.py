"""The value map as one HTML file: is forecasting worth it for this job?"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from pipelines.backtest.value_map import text as words
from pipelines.html.document import document, holder, section
from pipelines.html.numbers import share
from pipelines.html.plot import Chart, line, marks, silent, stacked_rows

_MARKS = (
    ("circle", "@other"), ("square", "@arrival"), ("diamond", "@executors"), ("triangle-up", "@capacity"),
    ("x", "@bad"),
)  # fmt: skip


def write_map_page(value_map: dict[str, Any], path: Path) -> Path:
    """Write a value map as an HTML page that opens without a network, and return `path`; folders are made if need be.

    Args:
        value_map: as `compute_value_map` returns it.
        path: of the file; an older one is replaced.

    Raises:
        KeyError: a key of the map is missing.
        OSError: the file cannot be written.
    """
    name, figures = words.best_policy(value_map), {}
    parts = [
        "<h1>Is forecasting worth it for this job?</h1>",
        f'<p class="about">{len(value_map["traces"])} loads, replayed for up to {value_map["test_days"]:g} days each '
        "in a simulated job, under policies that only react, under ours, and under ours with the true future. All are "
        "compared where the same share of the seconds has a record that came too late; every policy's knob is the "
        f"cheapest one in hindsight. {value_map['seeds']} seeds.</p>",
    ]
    if name is not None:
        figures["saved"] = _saved(value_map, name)
        note = (
            "A mark per load, lead time and allowed share. On the upper line all is captured; below zero ours is "
            "dearer than the best reactive policy."
        )
        place = holder("saved", 460, "saving by ours against saving by the true future")
        parts.append(section("What ours saves of what could be saved", note, place))
    parts.append(section("Every load", "", f"<pre>{escape(words.format_map(value_map))}</pre>"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document("Tidecast: what a forecast is worth", "\n".join(parts), figures), encoding="utf-8")
    return path


def _saved(value_map: dict[str, Any], name: str) -> Chart:
    """Saving by ours against saving by the true future, a colour per lead time."""
    cells = [cell for cell in value_map["cells"] if cell["gap"] is not None and cell["ratio"].get(name) is not None]
    most = 100 * max((cell["gap"] for cell in cells), default=0.1)
    data = [
        silent(line([0, most], [0, most], "", "@good", width=1, dash="dash")),
        silent(line([0, most], [0, most / 2], "", "@other", width=1, dash="dot")),
    ]
    for lead, (symbol, colour) in zip(value_map["leads_s"], _MARKS, strict=False):
        mine = [cell for cell in cells if cell["lead_s"] == lead]
        text = [f"{c['trace']}, {share(c['violation'], 1)}: {c['best_reactive']}" for c in mine]
        x, y = [100 * c["gap"] for c in mine], [100 * (1 - c["ratio"][name]) for c in mine]
        hover = {"hovertemplate": "%{text}<br>%{x:.1f} / %{y:.1f} %"}
        data.append(marks(x, y, f"{lead:g} s", symbol, colour, text) | hover)
    layout = stacked_rows([(f"saved by {name}, % of the best reactive policy's hours", 1.0)])
    layout["xaxis"] |= {"title": {"text": "saved by knowing the future, %", "font": {"size": 13}}, "zeroline": True}
    layout["yaxis"] |= {"zeroline": True, "rangemode": "normal"}
    return {"data": data, "layout": layout | {"hovermode": "closest"}}
