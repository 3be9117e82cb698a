"""The charts of a run, without a look of their own: the page gives the named colours their values, light or dark."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from pipelines.html.plot import Chart, line, marks, ranges, rows, silent, values
from pipelines.report import figures
from pipelines.report.summary import Measured, lost
from pipelines.report.time_axis import over_time, second_of

_VERSIONS = ("@forecast", "@arrival", "@capacity", "@executors")
_POLICIES = {
    "forecast": ("@forecast", "circle"),
    "reactive": ("@arrival", "square"),
    "static": ("@capacity", "diamond"),
    "mpc": ("@executors", "triangle-up"),
    "dqn": ("@bad", "star"),
}


def load(measured: Measured, other: Measured | None = None) -> Chart:
    """Arrival rate against capacity, and the executors under it; the other run's executors for comparison."""
    run, acts = measured.run, measured.acts
    inputs = pd.DataFrame(acts["inputs"].tolist(), index=acts.index).reindex(columns=["capacity_rps", "forecast_rps"])
    at = acts["wall_time"] - run.start
    produced = measured.seconds["produced"][measured.seconds.index < run.end - run.start]
    data = [line(produced.index + 0.5, produced, "arriving", "@arrival", width=1.5, fill="@arrival/14")]
    data.append(line(at, inputs["capacity_rps"], "capacity", "@capacity", shape="hv", width=2.5))
    if inputs["forecast_rps"].notna().any():
        data.append(line(at, inputs["forecast_rps"], "forecast planned for", "@forecast", shape="hv", dash="dot"))
    data += [{**trace, "yaxis": "y2"} for trace in _executors(measured, other)]
    layout = over_time(run, measured.live_end, [("records/s", 0.62), ("executors", 0.38)])
    layout["yaxis2"] |= {"dtick": 1, "range": [0, run.contract.executors.max + 0.7]}
    return {"data": data, "layout": layout}


def _executors(measured: Measured, other: Measured | None) -> list[Chart]:
    run, acts = measured.run, measured.acts
    data = [line(*_registered(measured), "registered", "@executors", shape="hv", width=2.5, fill="@executors/22")]
    at = acts["wall_time"] - run.start
    data.append(line(at, acts["executors"], "asked for", "@text", shape="hv", dash="dot", width=1.2))
    if other is not None:
        name = f"registered, {_name(other)}"
        data.append(line(*_registered(other), name, "@other", shape="hv", dash="dash"))
    changed = acts[acts["status"].notna()]
    for name, symbol, colour, some in (
        ("up: forecast", "triangle-up", "@forecast", changed[changed["up"] & changed["by_forecast"]]),
        ("up: observed", "triangle-up", "@arrival", changed[changed["up"] & ~changed["by_forecast"]]),
        ("down", "triangle-down", "@text", changed[changed["down"]]),
    ):
        data.append(marks(some["wall_time"] - run.start, some["executors"], name, symbol, colour, some["reason"]))
    gone = run.executors[lost(measured)]
    data.append(marks(gone["removed"] - run.start, [0.3] * len(gone), "executor lost", "x", "@bad", gone["reason"]))
    return [trace for trace in data if trace["x"]]


def _registered(measured: Measured) -> tuple[np.ndarray, np.ndarray]:
    run, executors = measured.run, measured.run.executors
    times, count = figures.executor_steps(
        executors["added"].to_numpy(float), executors["removed"].to_numpy(float), run.start, measured.live_end
    )
    return times - run.start, count


def service(measured: Measured, other: Measured | None = None) -> Chart:
    """Latency with its target, lag, and the strip that shows whether anything stopped."""
    run, seconds = measured.run, measured.seconds
    target, x = run.contract.latency_target_s, seconds.index + 0.5
    worst = _worst(measured)
    data = [
        line(x, worst, "slowest record", "@capacity", width=1.8),
        line(x, seconds["latency_p50_s"].replace(math.inf, np.nan), "median record", "@arrival"),
        silent(line([0, len(seconds)], [target] * 2, "target", "@bad", dash="dash", width=1.2)),
    ]
    if other is not None:
        theirs = _worst(other)
        name = f"slowest, {_name(other)}"
        data.append(line(other.seconds.index + 0.5, theirs, name, "@other", dash="dash"))
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
    layout = over_time(run, measured.live_end, titles)
    layout["yaxis"]["range"] = [0, max(target * 1.25, float(worst.max()) * 1.1 if worst.notna().any() else 0)]
    layout["annotations"].append(_label(f"target {target:g} s", target, "@bad"))
    layout["shapes"] = [_under_way(begin, end) for begin, end in ranges(seconds["in_action"])]
    return {"data": data, "layout": layout}


def _worst(measured: Measured) -> pd.Series:
    return measured.seconds["latency_max_s"].replace(math.inf, np.nan)


def _under_way(begin: int, end: int) -> Chart:
    return {
        "type": "rect", "xref": "x", "yref": "paper", "x0": begin, "x1": end, "y0": 0, "y1": 1, "layer": "below",
        "fillcolor": "@text/6", "line": {"width": 0},
    }  # fmt: skip


def _label(text: str, y: float, color: str) -> Chart:
    return {
        "text": text, "xref": "paper", "x": 1, "yref": "y", "y": y, "xanchor": "right", "yanchor": "bottom",
        "showarrow": False, "font": {"size": 12, "color": color},
    }  # fmt: skip


def fan(measured: Measured, ahead: int) -> Chart:
    """What was forecast so many steps before, as a band, and what came."""
    run, half = measured.run, 0.5 * step_s(measured)
    steps = measured.steps[measured.steps["ahead"] == ahead].sort_values("time")
    x = [second_of(run, t + half) for t in steps["time"]]
    high = line(x, steps["high"], "5 to 95 %", "@forecast/0", width=0)
    data = [
        silent(line(x, steps["low"], "", "@forecast/0", width=0)),
        {**high, "fill": "tonexty", "fillcolor": "@forecast/22", "hoverinfo": "skip", "hovertemplate": None},
        line(x, steps["upper"], "90 % level", "@forecast", dash="dot", width=1.3),
        line(x, steps["median"], "median", "@forecast", width=2),
        _came(measured),
    ]
    return {"data": data, "layout": over_time(run, run.end, [("records/s", 1.0)])}


def fans(measured: Measured, moments: int = 6) -> Chart:
    """The whole forecast as it stood at a few moments, against what came."""
    run, half, data = measured.run, 0.5 * step_s(measured), []
    issued = sorted(measured.steps["issued"].unique())
    for number, at in enumerate(np.linspace(0, len(issued), moments, endpoint=False).astype(int) if issued else []):
        steps = measured.steps[measured.steps["issued"] == issued[at]].sort_values("ahead")
        x = [second_of(run, t + half) for t in steps["time"]]
        band = line([*x, *x[::-1]], [*steps["high"], *steps["low"][::-1]], "5 to 95 %", "@forecast/0", width=0)
        band |= {"fill": "toself", "fillcolor": "@forecast/18"}
        median = line(x, steps["median"], "median", "@forecast", width=2)
        data += [{**silent(trace), "showlegend": number == 0} for trace in (band, median)]
        data.append(silent(marks(x[:1], steps["median"][:1], "", "circle", "@forecast")))
    data.append(_came(measured))
    return {"data": data, "layout": over_time(run, run.end, [("records/s", 1.0)])}


def _came(measured: Measured) -> Chart:
    run, half = measured.run, 0.5 * step_s(measured)
    came = measured.steps.dropna(subset="came").drop_duplicates("time").sort_values("time")
    x = [second_of(run, t + half) for t in came["time"]]
    return {
        **line(x, came["came"], "what came", "@arrival", width=1.6),
        "mode": "lines+markers",
        "marker": {"size": 4},
    }


def step_s(measured: Measured) -> float:
    """Trace seconds per forecast step."""
    return float(measured.run.live_forecasts["step_s"].iloc[-1])


def errors(summary: dict[str, Any]) -> Chart:
    """WAPE of the median by steps ahead, a line per model version, and of saying "as now" for the same steps."""
    data = []
    for i, (version, e) in enumerate(summary["forecast_error"].items()):
        ahead, colour = [p["ahead"] for p in e["by_step"]], _VERSIONS[i % len(_VERSIONS)]
        kind = e["kind"].replace("_", " ")
        common = {"type": "scatter", "x": ahead, "hovertemplate": "%{y:.1f} %"}
        for key, name, style in (
            ("wape", f"version {version}, {kind}", {"mode": "lines+markers", "line": {"color": colour, "width": 2}}),
            (
                "wape_last_value",
                "“as now”, the same steps",
                {"mode": "lines", "line": {"color": colour, "width": 1.2, "dash": "dot"}},
            ),
        ):
            data.append({**common, **style, "name": name, "y": values(_percent(p[key]) for p in e["by_step"])})
    layout = rows([("error of the median (WAPE), %", 1.0)])
    layout["xaxis"] |= {"title": {"text": "steps ahead", "font": {"size": 13}}, "dtick": 1}
    return {"data": data, "layout": layout}


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def cost(summary: dict[str, Any], other: dict[str, Any] | None = None) -> Chart:
    """Executor-seconds of this run against fixed numbers of executors, as bars with their values."""
    bars = [(f"this run: {summary['policy']}", summary["executor_s"], "@executors")]
    if other is not None:
        bars.append((f"compared: {other['policy']}", other["executor_s"], "@other"))
    fixed = {summary["static_fixed_executor_s"], summary["static_executor_s"]}
    bars += [(f"always {value / summary['live_s']:.0f}", value, "@text/30") for value in sorted(fixed)]
    layout = rows([("", 1.0)])
    layout |= {"showlegend": False, "bargap": 0.3, "hovermode": False, "margin": {"l": 10, "r": 100, "t": 4, "b": 4}}
    layout["yaxis"] |= {"autorange": "reversed", "automargin": True, "showgrid": False, "ticksuffix": "  "}
    layout["xaxis"] |= {"rangemode": "tozero", "showticklabels": False, "showgrid": False}
    names, lengths, colours = zip(*bars, strict=True)
    bar = {
        "type": "bar", "orientation": "h", "y": names, "x": lengths, "text": [_words(v, bars[0][1]) for v in lengths],
        "textposition": "outside", "cliponaxis": False, "marker": {"color": colours},
    }  # fmt: skip
    return {"data": [bar], "layout": layout}


def _words(value: float, mine: float) -> str:
    return (
        f"{value:,.0f}" if value == mine else f"{value:,.0f}  ({100 * (value - mine) / mine:+.0f} %)".replace("-", "−")
    )


def frontier(runs: list[dict[str, Any]]) -> Chart:
    """Seconds over the target against executor-seconds, a dot per run: the lower left corner is the best."""
    data = []
    for policy in sorted({r["policy"] for r in runs}):
        mine = [r for r in runs if r["policy"] == policy]
        colour, symbol = _POLICIES.get(policy, ("@text", "circle"))
        x, y = [r["executor_s"] for r in mine], [r["over_target_s"] for r in mine]
        dots = marks(x, y, policy, symbol, colour, [r["id"] for r in mine])
        dots["hovertemplate"] = "%{text}<br>%{x:.0f} executor-seconds, %{y} s over the target<extra></extra>"
        data.append({**dots, "cliponaxis": False})
    layout = rows([("seconds over the target", 1.0)])
    layout["xaxis"] |= {"title": {"text": "executor-seconds", "font": {"size": 13}}}
    layout["hovermode"] = "closest"
    return {"data": data, "layout": layout}


def _name(measured: Measured) -> str:
    return f"{measured.run.info['policy']} run"
