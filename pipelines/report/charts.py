"""The charts of a run, without a look of their own: the page gives the named colours their values, light or dark."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from models.policy.core.view import nearest_level
from pipelines.html.plot import Chart, line, marks, ranges, silent, stacked_rows, values
from pipelines.report.accuracy import UPPER
from pipelines.report.measures import RunMeasures, lost_executors
from pipelines.report.seconds import count_open
from pipelines.report.time_axis import time_layout

_POLICIES = {
    "forecast": ("@forecast", "circle"),
    "reactive": ("@arrival", "square"),
    "static": ("@capacity", "diamond"),
    "mpc": ("@executors", "triangle-up"),
    "dqn": ("@bad", "star"),
}


def load_chart(measured: RunMeasures, other: RunMeasures | None = None) -> Chart:
    """Draw arrival rate against capacity (records/s), and the registered executors under it, over wall seconds.

    Executors of `other`, if given, are drawn for comparison.

    Returns:
        A Plotly figure as a dict; its colours are names such as `@arrival`, which the page replaces.

    Raises:
        ZoneInfoNotFoundError, KeyError: the trace's time zone is unknown here, or a message lacks a field.
    """
    run, acts = measured.run, measured.acts
    inputs = pd.DataFrame(acts["inputs"].tolist(), index=acts.index).reindex(columns=["capacity_rps", "forecast_rps"])
    at = acts["wall_time"] - run.start
    produced = measured.seconds["produced"][measured.seconds.index < run.end - run.start]
    data = [line(produced.index + 0.5, produced, "arriving", "@arrival", width=1.5, fill="@arrival/14")]
    data.append(line(at, inputs["capacity_rps"], "capacity", "@capacity", shape="hv", width=2.5))
    if inputs["forecast_rps"].notna().any():
        data.append(line(at, inputs["forecast_rps"], "forecast planned for", "@forecast", shape="hv", dash="dot"))
    data += [{**trace, "yaxis": "y2"} for trace in _executors(measured, other)]
    layout = time_layout(run, measured.live_end, [("records/s", 0.62), ("executors", 0.38)])
    layout["yaxis2"] |= {"dtick": 1, "range": [0, run.contract.executors.max + 0.7]}
    return {"data": data, "layout": layout}


def _executors(measured: RunMeasures, other: RunMeasures | None) -> list[Chart]:
    run, acts = measured.run, measured.acts
    data = [
        line(*registered_executors(measured), "registered", "@executors", shape="hv", width=2.5, fill="@executors/22")
    ]
    at = acts["wall_time"] - run.start
    data.append(line(at, acts["executors"], "asked for", "@text", shape="hv", dash="dot", width=1.2))
    if other is not None:
        data.append(
            line(*registered_executors(other), f"registered, {_name(other)}", "@other", shape="hv", dash="dash")
        )
    changed = acts[acts["status"].notna()]
    for name, symbol, colour, some in (
        ("up: forecast", "triangle-up", "@forecast", changed[changed["up"] & changed["by_forecast"]]),
        ("up: observed", "triangle-up", "@arrival", changed[changed["up"] & ~changed["by_forecast"]]),
        ("down", "triangle-down", "@text", changed[changed["down"]]),
    ):
        data.append(marks(some["wall_time"] - run.start, some["executors"], name, symbol, colour, some["reason"]))
    gone = run.executors[lost_executors(measured)]
    data.append(marks(gone["removed"] - run.start, [0.3] * len(gone), "executor lost", "x", "@bad", gone["reason"]))
    return [trace for trace in data if trace["x"]]


def registered_executors(measured: RunMeasures) -> tuple[np.ndarray, np.ndarray]:
    """Return (K,) rising times of the live load, seconds since the run's start, and executors from each on."""
    added, removed = (measured.run.executors[name].to_numpy(float) for name in ("added", "removed"))
    times, count = count_open(added, removed, measured.run.start, measured.live_end)
    return times - measured.run.start, count


def service_chart(measured: RunMeasures, other: RunMeasures | None = None) -> Chart:
    """Draw latency (s) with its target, records waiting and running tasks by wall second; marks seconds of standstill.

    The slowest records of `other`, if given, are drawn for comparison.

    Returns:
        A Plotly figure as a dict; its colours are names such as `@arrival`, which the page replaces.

    Raises:
        ZoneInfoNotFoundError: the trace's time zone is unknown here.
    """
    run, seconds = measured.run, measured.seconds
    target, x = run.contract.latency_target_s, seconds.index + 0.5
    worst = _worst(measured)
    data = [
        line(x, worst, "slowest record", "@capacity"),
        line(x, seconds["latency_p50_s"].replace(math.inf, np.nan), "median record", "@arrival"),
        silent(line([0, len(seconds)], [target] * 2, "target", "@bad", dash="dash", width=1.2)),
    ]
    if other is not None:
        theirs = _worst(other)
        data.append(line(other.seconds.index + 0.5, theirs, f"slowest, {_name(other)}", "@other", dash="dash"))
        worst = pd.concat([worst, theirs])
    lag = line(x, seconds["lag"], "lag", "@forecast", width=1.5, fill="@forecast/18")
    tasks = {
        "type": "bar", "x": values(x), "y": values(seconds["tasks"]), "name": "tasks running", "width": 0.92,
        "marker": {"color": "@executors"}, "hovertemplate": "%{y:.2f}",
    }  # fmt: skip
    data += [{**lag, "yaxis": "y2"}, {**tasks, "yaxis": "y3"}]
    halted = seconds[seconds["stopped"]]
    if len(halted):
        crosses = marks(halted.index + 0.5, [0.15] * len(halted), "stopped: records waited, nothing ran", "x", "@bad")
        data.append({**crosses, "yaxis": "y3"})
    titles = [("latency, s", 0.44), ("lag, records", 0.28), ("tasks of the query running, mean of each second", 0.28)]
    layout = time_layout(run, measured.live_end, titles)
    layout["yaxis"]["range"] = [0, max(target * 1.25, float(worst.max()) * 1.1 if worst.notna().any() else 0)]
    layout["annotations"].append({
        "text": f"target {target:g} s", "xref": "paper", "x": 1, "yref": "y", "y": target, "xanchor": "right",
        "yanchor": "bottom", "showarrow": False, "font": {"size": 12, "color": "@bad"},
    })  # fmt: skip
    under_way = {
        "type": "rect", "xref": "x", "yref": "paper", "y0": 0, "y1": 1, "layer": "below", "fillcolor": "@text/6",
        "line": {"width": 0},
    }  # fmt: skip
    layout["shapes"] = [{**under_way, "x0": begin, "x1": end} for begin, end in ranges(seconds["in_action"])]
    return {"data": data, "layout": layout}


def _worst(measured: RunMeasures) -> pd.Series:
    return measured.seconds["latency_max_s"].replace(math.inf, np.nan)


def forecast_chart(measured: RunMeasures, ahead: int) -> Chart:
    """Draw the quantiles (records/s) that were forecast `ahead` steps before (1 or more), and the load that followed.

    Returns:
        A Plotly figure as a dict; its colours are names such as `@arrival`, which the page replaces.

    Raises:
        ZoneInfoNotFoundError: the trace's time zone is unknown here.
    """
    run, levels = measured.run, tuple(measured.run.forecasts["levels"].iloc[-1])
    low, upper, high = (f"{100 * level:g}" for level in (levels[0], levels[nearest_level(levels, UPPER)], levels[-1]))

    def during(steps: pd.DataFrame, column: str, name: str, color: str, **look: Any) -> Chart:
        return line((steps["time"] - run.clock.trace_start + 0.5 * measured.step_s) / run.clock.scale, steps[column],
                    name, color, **look)  # fmt: skip

    steps = measured.steps[measured.steps["ahead"] == ahead].sort_values("time")
    came = measured.steps.dropna(subset="actual").drop_duplicates("time").sort_values("time")
    band = {"fill": "tonexty", "fillcolor": "@forecast/22", "hoverinfo": "skip", "hovertemplate": None}
    data = [
        silent(during(steps, "low", "", "@forecast/0", width=0)),
        during(steps, "high", f"{low} to {high} %", "@forecast/0", width=0) | band,
        during(steps, "upper", f"{upper} % level", "@forecast", dash="dot", width=1.3),
        during(steps, "median", "median", "@forecast", width=2),
        during(came, "actual", "what came", "@arrival", width=1.6) | {"mode": "lines+markers", "marker": {"size": 4}},
    ]
    return {"data": data, "layout": time_layout(run, run.end, [("records/s", 1.0)])}


def cost_chart(runs: list[dict[str, Any]]) -> Chart:
    """Draw `over_target_s` (s) against `executor_s` (executor-seconds) of summaries, a dot per run.

    Returns:
        A Plotly figure as a dict; its colours are names such as `@arrival`, which the page replaces.

    Raises:
        KeyError: a summary lacks one of these, `contestant`, `policy` or `id`.
    """
    data = []
    for name in sorted({r["contestant"] for r in runs}):
        mine = [r for r in runs if r["contestant"] == name]
        colour, symbol = _POLICIES.get(mine[0]["policy"], ("@text", "circle"))
        x, y = [r["executor_s"] for r in mine], [r["over_target_s"] for r in mine]
        dots = marks(x, y, name, symbol, colour, [r["id"] for r in mine])
        dots["hovertemplate"] = "%{text}<br>%{x:.0f} executor-seconds, %{y} s over the target<extra></extra>"
        data.append({**dots, "cliponaxis": False})
    layout = stacked_rows([("seconds over the target", 1.0)])
    layout["xaxis"] |= {"title": {"text": "executor-seconds", "font": {"size": 13}}}
    layout["hovermode"] = "closest"
    return {"data": data, "layout": layout}


def _name(measured: RunMeasures) -> str:
    return f"{measured.run.info['policy']} run"
