"""A backtest as one HTML file that opens without a network: its costs drawn, and the words of the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from models.twin.experiment.contenders import TRUE_FUTURE
from models.twin.experiment.frontier import pareto_frontier
from models.twin.experiment.results import BOUND, OPTIMUM
from pipelines.backtest import text as words
from pipelines.html.document import document, holder, section
from pipelines.html.plot import Chart, line, stacked_rows

LEAST = 1e-4
"""Least violation (share of seconds over the target) on the axis; lower ones are drawn at it."""
_STYLES: dict[str, tuple[str, str, float]] = {
    OPTIMUM: ("@good", "dash", 1.8), TRUE_FUTURE: ("@good", "solid", 1.8),
    "forecast": ("@forecast", "solid", 2.6), "mpc": ("@forecast", "dash", 2.6), "dqn": ("@forecast", "dot", 2.6),
    "reactive": ("@arrival", "solid", 1.8), "hpa": ("@capacity", "solid", 1.5), "keda": ("@capacity", "dash", 1.5),
    "flink": ("@executors", "solid", 1.5), "ds2": ("@executors", "dash", 1.5),
    "md_stream": ("@executors", "dot", 1.5),
    "spark_dstream": ("@bad", "solid", 1.5), "spark_microbatch": ("@bad", "dash", 1.5),
    "schedule": ("@other", "dash", 1.5), "static": ("@other", "dot", 1.5),
}  # fmt: skip


def write_page(backtests: Sequence[dict[str, Any]], path: Path) -> Path:
    """Write the page of backtests to `path`; folders are made if need be.

    Args:
        backtests: each as from `report.backtest_to_json`.
        path: of the file.

    Returns:
        `path`.

    Raises:
        OSError: the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render_page(backtests), encoding="utf-8")
    return path


def render_page(backtests: Sequence[dict[str, Any]]) -> str:
    """Return backtests as an HTML page that opens without a network: per trace a chart of costs, verdict and table.

    The chart shows executor-hours against the share of seconds over the latency target, up to 20 %, a line per policy.

    Args:
        backtests: each as from `report.backtest_to_json`.

    Raises:
        KeyError, TypeError: a figure is missing, or None where none can be.
    """
    parts = [
        "<h1>What every policy would have cost</h1>",
        '<p class="about">The load is replayed second by second in a simulated job. Every policy has one knob, which '
        "is swept; a promise kept worse is always cheaper, so costs are compared where the same share of the seconds "
        "has a record that came too late. Executors are paid from the moment they are asked for. Hyper-parameters "
        "come from the part of the trace before the one shown. Lower left is better; the axis of the hours ends at "
        "twice the lowest. Each mark is a knob value, mean over the seeds; only those that no other one of the same "
        "policy beats are shown.</p>",
    ]
    for i, data in enumerate(backtests):
        place = holder(f"cost-{i}", 460, "executor-hours against violation, a line per policy")
        table = f"<pre>{escape(words.format_backtest(data))}</pre>"
        parts.append(
            section(f"What the forecast is worth: {data['trace']}", words.verdict_sentence(data), place + table)
        )
    title = backtests[0]["trace"] if len(backtests) == 1 else f"{len(backtests)} traces"
    charts = {f"cost-{i}": _cost(data) for i, data in enumerate(backtests)}
    return document(f"Tidecast: backtest of {title}", "\n".join(parts), charts)


def _cost(backtest: dict[str, Any]) -> Chart:
    """Executor-hours against the share of seconds over the target, a frontier per policy."""
    data = []
    paid = [cost for by in backtest["cheapest_at_violation"].values() for cost in by.values() if cost is not None]
    for name, (colour, dash, width) in _STYLES.items():
        if name not in backtest["policies"]:
            continue
        points = backtest["policies"][name]
        share, hours = pareto_frontier(*(np.array([p[key] for p in points]) for key in ("violation", "executor_hours")))
        kept = share <= 0.2
        trace = line(100 * np.maximum(share[kept], LEAST), hours[kept], name, colour, width=width, dash=dash)
        hover = "%{fullData.name}: %{y:.4~g} h at %{x:.2~g} %<extra></extra>"
        data.append({**trace, "mode": "lines+markers", "marker": {"size": 5}, "hovertemplate": hover})
    if bounds := {float(level): by[BOUND] for level, by in backtest["cheapest_at_violation"].items() if BOUND in by}:
        trace = line([100 * level for level in bounds], list(bounds.values()), "no policy can go below", "@text")
        data.append({**trace, "line": {"color": "@text", "width": 1, "dash": "dot"}})
    layout = stacked_rows([("executor-hours", 1.0)])
    layout["xaxis"] |= {
        "type": "log", "range": [np.log10(100 * LEAST) - 0.1, np.log10(20) + 0.05], "tickvals": [0.01, 0.1, 1, 5, 10],
        "ticktext": ["≤ 0.01", "0.1", "1", "5", "10"],
        "title": {"text": "% of the seconds over the latency target", "font": {"size": 13}},
    }  # fmt: skip
    # From just below the lowest cost to twice that, so that near ones can be told apart.
    layout["yaxis"] |= {"range": [0.95 * min(paid), 2 * min(paid)], "rangemode": "normal"} if paid else {}
    return {"data": data, "layout": layout | {"hovermode": "closest"}}
