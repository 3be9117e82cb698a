"""Measured and simulated curves side by side, as one HTML file that opens without a network."""

from __future__ import annotations

from html import escape
from pathlib import Path

import numpy as np

from models.twin.calibration.fit import Fitted
from pipelines.backtest.fit import text as words
from pipelines.backtest.fit.judge import Compared
from pipelines.html.document import document, holder, section
from pipelines.html.plot import Chart, line, rows

_ROWS = [("lag, records", "lag", 0.36), ("latency of a second's slowest record, s", "latency_s", 0.36)]
_LAST = ("executors", "executors", 0.28)


def render(found: Fitted, compared: list[Compared], path: Path) -> Path:
    """Write the page."""
    figures = {f"run-{i}": _chart(one) for i, one in enumerate(compared)}
    parts = [
        "<h1>The twin and the runs it was not fitted to</h1>",
        f"<pre>{escape(words.of_fit(found))}</pre>",
        f"<pre>{escape(words.of_runs([one.figures for one in compared]))}</pre>",
    ]
    for i, one in enumerate(compared):
        about = "Same load, same decisions. The band holds nine tenths of the twin's runs, the line is their mean."
        title = f"{one.run.name}: {one.run.trace}, {one.run.policy}"
        parts.append(section(title, about, holder(f"run-{i}", 620, "measured and simulated curves")))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document("Tidecast: the twin beside real runs", "\n".join(parts), figures), encoding="utf-8")
    return path


def _chart(one: Compared) -> Chart:
    kinds = [*_ROWS, _LAST]
    layout = rows([(title, share) for title, _, share in kinds])
    layout["xaxis"]["title"] = {"text": "seconds of the live load"}
    data, seconds = [], np.arange(1, len(one.run.arrived))
    for place, (_, name, _) in enumerate(kinds, 1):
        axis = {"yaxis": "y" if place == 1 else f"y{place}", "showlegend": place == 1}
        runs = getattr(one.twin, name)
        known = np.isfinite(runs).any(axis=0)
        low, high, mean = (np.full(len(seconds), np.nan) for _ in range(3))
        low[known], high[known] = np.nanquantile(runs[:, known], [0.05, 0.95], axis=0)
        mean[known] = np.nanmean(runs[:, known], axis=0)
        data.append({**line(seconds, low, "5 %", "@forecast/20", width=0.5), **axis, "showlegend": False})
        band = {**line(seconds, high, "twin, 5 to 95 %", "@forecast/20", width=0.5), **axis}
        data.append({**band, "fill": "tonexty", "fillcolor": "@forecast/20"})
        data.append({**line(seconds, mean, "twin, mean", "@forecast"), **axis})
        data.append({**line(seconds, getattr(one.run.curves, name), "measured", "@arrival"), **axis})
    return {"data": data, "layout": layout}
