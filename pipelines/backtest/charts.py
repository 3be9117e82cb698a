"""The chart of a backtest: cost against violation."""

from __future__ import annotations

from typing import Any

import numpy as np

from models.twin.experiment.contenders import TRUE_FUTURE
from models.twin.experiment.frontier import frontier
from models.twin.experiment.results import BOUND, OPTIMUM
from pipelines.html.plot import Chart, line, rows

LEAST = 1e-4
"""Fewer violations than this are shown here."""
_STYLES: dict[str, tuple[str, str, float]] = {
    OPTIMUM: ("@good", "dash", 1.8), TRUE_FUTURE: ("@good", "solid", 1.8),
    "forecast": ("@forecast", "solid", 2.6), "mpc": ("@forecast", "dash", 2.6), "dqn": ("@forecast", "dot", 2.6),
    "reactive": ("@arrival", "solid", 1.8), "hpa": ("@capacity", "solid", 1.5), "keda": ("@capacity", "dash", 1.5),
    "flink": ("@executors", "solid", 1.5), "ds2": ("@executors", "dash", 1.5),
    "spark_dstream": ("@bad", "solid", 1.5), "spark_microbatch": ("@bad", "dash", 1.5),
    "schedule": ("@other", "dash", 1.5), "static": ("@other", "dot", 1.5),
}  # fmt: skip


def cost(found: dict[str, Any]) -> Chart:
    """Executor-hours against the share of seconds over the target, a frontier per policy."""
    data = []
    paid = [cost for by in found["cheapest_at_violation"].values() for cost in by.values() if cost is not None]
    for name, (colour, dash, width) in _STYLES.items():
        if name not in found["policies"]:
            continue
        points = found["policies"][name]
        share, hours = frontier(*(np.array([p[key] for p in points]) for key in ("violation", "executor_hours")))
        kept = share <= 0.2
        trace = line(100 * np.maximum(share[kept], LEAST), hours[kept], name, colour, width=width, dash=dash)
        hover = "%{fullData.name}: %{y:.4~g} h at %{x:.2~g} %<extra></extra>"
        data.append({**trace, "mode": "lines+markers", "marker": {"size": 5}, "hovertemplate": hover})
    if bounds := {float(level): by[BOUND] for level, by in found["cheapest_at_violation"].items() if BOUND in by}:
        trace = line([100 * level for level in bounds], list(bounds.values()), "no policy can go below", "@text")
        data.append({**trace, "line": {"color": "@text", "width": 1, "dash": "dot"}})
    layout = rows([("executor-hours", 1.0)])
    layout["xaxis"] |= {
        "type": "log", "range": [np.log10(100 * LEAST) - 0.1, np.log10(20) + 0.05], "tickvals": [0.01, 0.1, 1, 5, 10],
        "ticktext": ["≤ 0.01", "0.1", "1", "5", "10"],
        "title": {"text": "% of the seconds over the latency target", "font": {"size": 13}},
    }  # fmt: skip
    # From just below the lowest to twice that: what costs more is beaten anyway, and near ones must be told apart.
    layout["yaxis"] |= {"range": [0.95 * min(paid), 2 * min(paid)], "rangemode": "normal"} if paid else {}
    return {"data": data, "layout": layout | {"hovermode": "closest"}}
