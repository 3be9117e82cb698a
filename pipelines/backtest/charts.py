"""The charts of a backtest: cost against violation, executors over a stretch of the trace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from models.policy.core.capacity import Capacity, Floats, speeds
from models.twin.experiment.contenders import TRUE_FUTURE
from models.twin.experiment.frontier import frontier
from models.twin.experiment.results import BOUND, OPTIMUM
from pipelines.backtest.report import TraceReport
from pipelines.html.plot import Chart, line, rows

SHOWN_S = 86_400
"""Of the stretch in which executors are shown."""
POINTS = 1500
"""Of a line in it; more cannot be told apart."""
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


def stretch(one: TraceReport) -> Chart:
    """Executors that chosen policies asked for over the day with the highest load, and what the load needed."""
    scenario, looks = one.result.scenario, one.setup.looks
    length, peak = min(SHOWN_S, len(scenario.rate)), int(np.argmax(scenario.rate))
    first = min(max(peak - length // 2, 0), len(scenario.rate) - length)
    seconds = np.arange(first, first + length, max(looks.every_s, length // POINTS))
    times = pd.to_datetime(scenario.begins_s + seconds, unit="s").strftime("%Y-%m-%d %H:%M:%S")
    need = _needed(one, scenario.rate[seconds])
    data = [line(times, need, "needed by the load of the moment", "@other", width=1.2, fill="@other/14")]
    for name, sheet in one.shown.items():
        colour, dash, width = _STYLES.get(name, ("@text", "solid", 1.5))
        at = int(np.argmin(np.abs(sheet.violation.mean(axis=1) - 0.01)))
        targets = sheet.targets[np.minimum(seconds // looks.every_s, len(sheet.targets) - 1), at, 0]
        said = f"{name} ({100 * float(sheet.violation[at].mean()):.2g} %)"
        data.append(line(times, targets, said, colour, width=width, dash=dash, shape="hv"))
    layout = rows([("executors asked for", 1.0)])
    layout["xaxis"] |= {"type": "date", "title": {"text": "trace time, UTC", "font": {"size": 13}}}
    return {"data": data, "layout": layout}


def _needed(one: TraceReport, rate: Floats) -> Floats:
    job = one.setup.the_job
    worth = speeds(job.most, job.cores, job.tasks, job.scaling)[None]
    capacity = Capacity(worth, np.full(1, job.overhead_s), np.full(1, job.per_record_s), one.setup.looks.batch_s)
    bounds = (np.full(len(rate), float(edge)) for edge in (job.least, job.most))
    return capacity.executors_for(rate, *bounds)[0]
