"""The charts of a backtest: cost against violation, executors over a stretch of the trace, the ablation."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np

from models.policy.core.capacity import Capacity, Floats, speeds
from models.twin.experiment.contenders import TRUE_FUTURE
from models.twin.experiment.frontier import frontier
from models.twin.experiment.results import BOUND, OPTIMUM
from pipelines.backtest.report import TraceReport
from pipelines.backtest.text import HEARD_FORECASTS
from pipelines.html.plot import Chart, line, rows

SHOWN_S = 86_400
"""Of the stretch in which executors are shown."""
POINTS = 1500
"""Of a line in it; more cannot be told apart."""
LEAST = 1e-4
"""Fewer violations than this are shown here."""
_STYLES: dict[str, tuple[str, str, float]] = {
    OPTIMUM: ("@good", "dash", 1.8),
    TRUE_FUTURE: ("@good", "solid", 1.8),
    "forecast": ("@forecast", "solid", 2.6),
    "mpc": ("@forecast", "dash", 2.6),
    "dqn": ("@forecast", "dot", 2.6),
    "reactive": ("@arrival", "solid", 1.8),
    "hpa": ("@capacity", "solid", 1.5),
    "keda": ("@capacity", "dash", 1.5),
    "flink": ("@executors", "solid", 1.5),
    "ds2": ("@executors", "dash", 1.5),
    "spark_dstream": ("@bad", "solid", 1.5),
    "spark_microbatch": ("@bad", "dash", 1.5),
    "schedule": ("@other", "dash", 1.5),
    "static": ("@other", "dot", 1.5),
}


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
    first, last = _window(scenario.rate)
    every = max(looks.every_s, (last - first) // POINTS)
    seconds = np.arange(first, last, every)
    times = _times(scenario.begins_s + seconds.astype(np.float64))
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


def ablation(found: dict[str, Any]) -> Chart:
    """Executor-hours of our planners by what they hear, a group of bars per allowed violation."""
    colours = {"no_forecast": "@other", "last_value": "@arrival", "ours": "@forecast", "true_future": "@good"}
    data = []
    for ear, said in HEARD_FORECASTS.items():
        groups, values = [[], []], []  # type: ignore[var-annotated]
        for name, by in found["ablation"].items():
            for level, heard in by.items():
                groups[0].append(name)
                groups[1].append(f"{100 * float(level):g} %")
                values.append(heard.get(ear))
        data.append({
            "type": "bar", "x": groups, "y": values, "name": said, "marker": {"color": colours[ear]},
            "hovertemplate": f"{said}: %{{y:.4~g}} h<extra></extra>",
        })  # fmt: skip
    layout = rows([("executor-hours at an allowed share of seconds over the target", 1.0)])
    return {"data": data, "layout": layout | {"hovermode": "closest", "bargap": 0.3, "bargroupgap": 0.05}}


def _needed(one: TraceReport, rate: Floats) -> Floats:
    job = one.setup.the_job
    worth = speeds(job.most, job.cores, job.tasks, job.scaling)[None]
    capacity = Capacity(worth, np.full(1, job.overhead_s), np.full(1, job.per_record_s), one.setup.looks.batch_s)
    bounds = (np.full(len(rate), float(edge)) for edge in (job.least, job.most))
    return capacity.executors_for(rate, *bounds)[0]


def _window(rate: Floats) -> tuple[int, int]:
    """The day around the highest load."""
    length = min(SHOWN_S, len(rate))
    middle = int(np.argmax(rate))
    first = min(max(middle - length // 2, 0), len(rate) - length)
    return first, first + length


def _times(seconds: Floats) -> list[str]:
    return [f"{datetime.fromtimestamp(float(s), UTC):%Y-%m-%d %H:%M:%S}" for s in seconds]
