"""The charts of a run's backfill: what it got beside live records, and what its rate was decided by."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from models.contract.relief import ReliefStep
from pipelines.html.plot import Chart, line, silent
from pipelines.report.backfill.measure import BackfillMeasures
from pipelines.report.charts import registered_executors
from pipelines.report.measures import RunMeasures
from pipelines.report.time_axis import time_layout

AROUND = 0.35
"""Of the time that a backfill took, what is shown before and after it; `LEAST_S` at least."""
LEAST_S = 20.0
WIDE = 84
"""Pixels left of the axes, as the names of relief need, in both charts: their times stand above one another."""
PRICE_COLOURS = ("@capacity", "@arrival", "@executors", "@forecast", "@bad", "@other")


def beside_chart(measured: RunMeasures, found: BackfillMeasures) -> Chart:
    """Draw live records and the backfill's against capacity, executors, live latency, and progress against the plan.

    Returns:
        A Plotly figure as a dict over the stretch in which the backfill ran and some time around it; its colours are
        names such as `@arrival`, which the page replaces.

    Raises:
        ZoneInfoNotFoundError, KeyError: the trace's time zone is unknown here, or a message lacks a field.
    """
    run, rows = measured.run, ("", "y2", "y3", "y4")
    data = [
        *_on(_rates(measured, found), rows[0]), *_on(_executors(measured, found), rows[1]),
        *_on(_latency(measured), rows[2]), *_on(_progress(measured, found), rows[3]),
    ]  # fmt: skip
    titles = [("records/s", 0.3), ("executors", 0.2), ("live latency, s", 0.25), ("backfill, % of its records", 0.25)]
    since, until = _shown(measured, found)
    layout = time_layout(run, until, titles, since)
    layout["yaxis2"] |= {"dtick": 1, "range": [0, run.contract.executors.max + 0.7]}
    layout["yaxis4"] |= {"range": [0, 108], "dtick": 25}
    layout["margin"]["l"] = WIDE
    layout["shapes"] = [_stretch(measured, found)]
    return {"data": [trace for trace in data if trace["x"]], "layout": layout}


def control_chart(measured: RunMeasures, found: BackfillMeasures) -> Chart:
    """Draw the multipliers of the controller's limits, and the steps of its relief ladder, over the same stretch.

    Returns:
        As `beside_chart`.

    Raises:
        ZoneInfoNotFoundError: the trace's time zone is unknown here.
    """
    control, at = found.control, _decided_at(measured, found)
    names = sorted({name for prices in control["prices"] for name in prices})
    data = [
        line(at, _lasting([prices.get(name, 0.0) for prices in control["prices"]]), _limit_name(name),
             PRICE_COLOURS[i % len(PRICE_COLOURS)], shape="hv", width=2)
        for i, name in enumerate(names)
    ]  # fmt: skip
    data += _on(
        [line(at, _lasting(control["step"]), "step of relief", "@bad", shape="hv", width=2.5, fill="@bad/14")], "y2"
    )
    since, until = _shown(measured, found)
    layout = time_layout(measured.run, until, [("multipliers of limits", 0.5), ("relief ladder", 0.5)], since)
    steps = list(ReliefStep)
    layout["yaxis2"] |= {
        "range": [-0.3, len(steps) - 0.5], "tickvals": [int(step) for step in steps],
        "ticktext": [step.name.lower() for step in steps],
    }  # fmt: skip
    layout["margin"]["l"] = WIDE
    layout["shapes"] = [_stretch(measured, found)]
    return {"data": [trace for trace in data if trace["x"]], "layout": layout}


def _rates(measured: RunMeasures, found: BackfillMeasures) -> list[Chart]:
    acts, told, control = measured.acts, found.progress, found.control
    produced, start, at = measured.seconds["produced"], measured.run.start, _decided_at(measured, found)
    capacity = pd.Series([inputs.get("capacity_rps") for inputs in acts["inputs"]], dtype=float)
    data = [
        line(produced.index + 0.5, produced, "live, arriving", "@arrival", width=1.5, fill="@arrival/14"),
        line(acts["wall_time"] - start, capacity, "capacity", "@capacity", shape="hv", width=2.5),
        line(
            at, [*control["replay_rps"], 0.0][: len(at)], "admitted to the backfill", "@forecast", shape="hv", width=2
        ),
        line(told["wall_time"] - start, told["rps"], "read by it", "@forecast", dash="dot", width=1.6),
    ]
    if control["live_rps"].notna().any():
        data.append(line(at, _lasting(control["live_rps"]), "live, admitted at most", "@bad", shape="hv"))
    return data


def _executors(measured: RunMeasures, found: BackfillMeasures) -> list[Chart]:
    start, control = measured.run.start, found.control
    data = [
        line(*registered_executors(measured), "executors registered", "@executors", shape="hv", width=2.5,
             fill="@executors/22"),
        line(measured.acts["wall_time"] - start, measured.acts["executors"], "asked for", "@text", shape="hv",
             dash="dot", width=1.2),
    ]  # fmt: skip
    if control["executors"].any():
        lent = "of these for the backfill"
        data.append(line(_decided_at(measured, found), _lasting(control["executors"]), lent, "@forecast", shape="hv"))
    return data


def _latency(measured: RunMeasures) -> list[Chart]:
    seconds, target = measured.seconds, measured.run.contract.latency_target_s
    x = seconds.index + 0.5
    worst, middle = (seconds[name].replace(math.inf, np.nan) for name in ("latency_max_s", "latency_p50_s"))
    return [
        line(x, worst, "slowest live record", "@capacity"),
        line(x, middle, "median live record", "@arrival"),
        silent(line([0, len(seconds)], [target] * 2, "target", "@bad", dash="dash", width=1.2)),
    ]


def _progress(measured: RunMeasures, found: BackfillMeasures) -> list[Chart]:
    """Share of the records read, beside an even pace to when it was planned to be done."""
    told, start = found.told, measured.run.start
    begin = found.begin - start
    done = found.progress["done"] / max(told.records, 1) * 100
    at = np.append(begin, found.progress["wall_time"] - start)
    return [
        line(at, np.append(0.0, done), "backfill done", "@executors", width=2.5, fill="@executors/18"),
        line(
            [begin, told.planned_at - start], [0, 100], "even pace to the planned end", "@text", dash="dot", width=1.4
        ),
    ]


def _decided_at(measured: RunMeasures, found: BackfillMeasures) -> list[float]:
    """When the rate was decided, and the end, up to which the last decision holds: seconds since the run's start."""
    at = found.control["wall_time"].to_list()
    return [wall - measured.run.start for wall in [*at, max(at[-1], found.end)]] if at else []


def _lasting(decided: Iterable[Any]) -> list[Any]:
    """What was decided, the last of it once more."""
    values = list(decided)
    return [*values, *values[-1:]]


def _limit_name(name: str) -> str:
    """A limit as a reader knows it: those of latency are named by class, operators and quantile of their path."""
    kind, _, quantile = name.replace("_", " ").partition(" ")
    level = quantile.rpartition(" ")[2]
    return (
        f"{kind} latency, {100 * float(level):.4g} % of records" if level.startswith("0.") else name.replace("_", " ")
    )


def _on(traces: list[Chart], axis: str) -> list[Chart]:
    return [{**trace, "yaxis": axis} if axis else trace for trace in traces]


def _shown(measured: RunMeasures, found: BackfillMeasures) -> tuple[float, float]:
    around = max(AROUND * (found.end - found.begin), LEAST_S)
    return max(found.begin - around, measured.run.start), min(found.end + around, max(measured.live_end, found.end))


def _stretch(measured: RunMeasures, found: BackfillMeasures) -> Chart:
    return {
        "type": "rect", "xref": "x", "yref": "paper", "y0": 0, "y1": 1, "layer": "below", "fillcolor": "@text/6",
        "line": {"width": 0}, "x0": found.begin - measured.run.start, "x1": found.end - measured.run.start,
    }  # fmt: skip
