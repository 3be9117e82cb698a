"""The charts of an evaluation: fans, error by horizon and by hour, calibration."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np

from models.forecast.core import scores
from models.forecast.selection.backtest import Backtest
from pipelines.bench.forecast.evaluate import CHAMPION, Evaluation
from pipelines.html.plot import Chart, line, marks, rows, silent

SHOWN = 500
"""Newest test rows in a fan chart; more cannot be told apart."""
_COLOURS = ("@capacity", "@executors", "@other", "@bad", "@good", "@text")
_DASHES = ("solid", "dash", "dot", "dashdot")
_MEASURES = {"rmse": "RMSE", "mae": "MAE", "pinball": "mean pinball loss", "wape": "WAPE"}


def fan(evaluation: Evaluation, name: str, ahead: int) -> Chart:
    """What was forecast so many steps before the newest test rows, as bands, and what came."""
    backtest = evaluation.rivals[name].backtest
    count = len(backtest.actual) - ahead + 1  # what was forecast so many steps before the first row is not there
    first = max(count - SHOWN, 0)
    times = _times(backtest, np.arange(first, count) + ahead - 1)
    data = []
    for share, opacity in ((0.95, 14), (0.8, 22)):
        low, high = (end[first:count, ahead - 1] for end in backtest.interval(share))
        upper = line(times, high, f"{share:.0%} interval", "@forecast/0", width=0)
        data.append(silent(line(times, low, "", "@forecast/0", width=0)))
        data.append({**upper, "fill": "tonexty", "fillcolor": f"@forecast/{opacity}", "hoverinfo": "skip"})
        data[-1]["hovertemplate"] = None
    data.append(line(times, backtest.median[first:count, ahead - 1], "median", "@forecast", width=1.8))
    data.append(line(times, backtest.actual[first:count, ahead - 1], "what came", "@arrival", width=1.3))
    return {"data": data, "layout": _over_time(evaluation)}


def fans(evaluation: Evaluation, name: str, moments: int = 6) -> Chart:
    """The whole forecast as it stood at a few moments of the newest test rows, and what came."""
    backtest, horizon = evaluation.rivals[name].backtest, evaluation.task.horizon
    rows_shown = min(len(backtest.actual), max(moments * horizon * 3 // 2, 48), SHOWN)
    first, data = len(backtest.actual) - rows_shown, []
    low, high = backtest.interval(0.9)
    for number, at in enumerate(np.linspace(first, len(backtest.actual) - horizon, moments).astype(int)):
        times = _times(backtest, np.arange(at, at + horizon))
        band = line([*times, *times[::-1]], [*high[at], *low[at][::-1]], "90% interval", "@forecast/0", width=0)
        median = line(times, backtest.median[at], "median", "@forecast", width=2)
        for trace in ({**band, "fill": "toself", "fillcolor": "@forecast/20"}, median):
            data.append({**silent(trace), "showlegend": number == 0})
        data.append(silent(marks(times[:1], backtest.median[at][:1], "", "circle", "@forecast")))
    times = _times(backtest, np.arange(first, len(backtest.actual)))
    data.append(line(times, backtest.actual[first:, 0], "what came", "@arrival", width=1.4))
    return {"data": data, "layout": _over_time(evaluation)}


def by_horizon(evaluation: Evaluation, found: dict[str, Any], measure: str) -> Chart:
    """A score by steps ahead, a line per model."""
    ahead = list(range(1, evaluation.task.horizon + 1))
    data = []
    for name, (colour, dash, width) in styles(evaluation).items():
        by = found["models"][name]["horizons"]
        scored = [by[str(h)][measure] for h in ahead]
        data.append({**line(ahead, scored, _title(name, evaluation), colour, width=width, dash=dash)})
        data[-1]["mode"] = "lines+markers" if len(ahead) < 3 else "lines"
    unit = evaluation.unit if measure != "wape" else "a share"
    layout = rows([(_MEASURES[measure] + (f", {unit}" if unit else ""), 1.0)])
    layout["xaxis"] |= {"title": {"text": "steps ahead", "font": {"size": 13}}, "dtick": max(1, len(ahead) // 12)}
    layout["hovermode"] = "closest"
    for trace in data:
        trace["hovertemplate"] = "%{fullData.name}<br>%{x} ahead: %{y:.4~g}<extra></extra>"
    return {"data": data, "layout": layout}


def by_hour(evaluation: Evaluation, name: str) -> Chart:
    """Mean absolute error one step ahead, by hour of the day in UTC, beside that of the best naive forecast."""
    data = []
    for model, colour in ((evaluation.best_naive, "@arrival"), (name, "@forecast")):
        backtest = evaluation.rivals[model].backtest
        begins = backtest.start + backtest.step_s * np.arange(len(backtest.actual))
        hours = (begins // 3600 % 24).astype(int)
        errors = [_mae(backtest, hours == hour) for hour in range(24)]
        data.append({
            "type": "bar", "x": list(range(24)), "y": errors, "name": _title(model, evaluation),
            "marker": {"color": colour}, "hovertemplate": "%{y:.4~g}",
        })  # fmt: skip
    layout = rows([(f"mean absolute error one step ahead{', ' + evaluation.unit if evaluation.unit else ''}", 1.0)])
    layout["xaxis"] |= {"title": {"text": "hour of the day, UTC", "font": {"size": 13}}, "dtick": 3}
    return {"data": data, "layout": layout | {"bargap": 0.25, "bargroupgap": 0.05}}


def calibration(evaluation: Evaluation, name: str) -> Chart:
    """How often the outcome was at or under each quantile, against how often it should be."""
    backtest, horizon = evaluation.rivals[name].backtest, evaluation.task.horizon
    data = [silent(line([0, 1], [0, 1], "as it should be", "@other", dash="dash", width=1.2))]
    chosen = sorted({1, (horizon + 1) // 2, horizon})
    for h, colour in zip(chosen, ("@forecast", "@capacity", "@executors"), strict=False):
        known = np.isfinite(backtest.actual[:, h - 1])
        under = (backtest.actual[known, h - 1, None] <= backtest.quantiles[known, h - 1]).mean(axis=0)
        trace = line(backtest.levels, under, f"{h} ahead", colour)
        data.append({**trace, "mode": "lines+markers", "hovertemplate": "%{x:.3~g}: %{y:.3f}"})
    layout = rows([("share of outcomes at or under the quantile", 1.0)])
    layout["xaxis"] |= {"title": {"text": "level of the quantile", "font": {"size": 13}}, "range": [0, 1]}
    layout["yaxis"] |= {"range": [0, 1]}
    return {"data": data, "layout": layout | {"hovermode": "closest"}}


def covered(evaluation: Evaluation, found: dict[str, Any], name: str) -> Chart:
    """Share of outcomes in the 80, 90 and 95 % intervals by steps ahead."""
    ahead = list(range(1, evaluation.task.horizon + 1))
    by, data = found["models"][name]["horizons"], []
    for key, colour in (("0.8", "@capacity"), ("0.9", "@forecast"), ("0.95", "@executors")):
        share = [None if (s := by[str(h)]["coverage"][key]) is None else 100 * s for h in ahead]
        data.append(line(ahead, share, f"{100 * float(key):g} % interval", colour, width=2))
        data.append(silent(line([1, len(ahead)], [100 * float(key)] * 2, "", colour, dash="dash", width=1)))
    layout = rows([("outcomes within the interval, %", 1.0)])
    layout["xaxis"] |= {"title": {"text": "steps ahead", "font": {"size": 13}}, "dtick": max(1, len(ahead) // 12)}
    lowest = min((v for trace in data for v in trace["y"] if v is not None), default=60)
    layout["yaxis"] |= {"range": [min(60, lowest - 5), 101]}
    return {"data": data, "layout": layout}


def styles(evaluation: Evaluation) -> dict[str, tuple[str, str, float]]:
    """Colour, dash and width of every model's line; champion and best naive forecast stand out."""
    found, others = {}, 0
    for name in evaluation.rivals:
        if name == CHAMPION:
            found[name] = ("@forecast", "solid", 3.0)
        elif name == evaluation.best_naive:
            found[name] = ("@arrival", "solid", 2.4)
        else:
            colour, dash = _COLOURS[others % len(_COLOURS)], _DASHES[others // len(_COLOURS) % len(_DASHES)]
            found[name], others = (colour, dash, 1.5), others + 1
    return found


def _title(name: str, evaluation: Evaluation) -> str:
    said = name.replace("_", " ")
    return f"champion: {evaluation.champion.replace('_', ' ')}" if name == CHAMPION else said


def _mae(backtest: Backtest, some: Any) -> float | None:
    error = scores.mae(backtest.actual[some, 0], backtest.median[some, 0])
    return None if error != error else error


def _times(backtest: Backtest, at: Any) -> list[str]:
    begins = [datetime.fromtimestamp(backtest.start + backtest.step_s * int(i), UTC) for i in at]
    return [f"{begin:%Y-%m-%d %H:%M:%S}" for begin in begins]


def _over_time(evaluation: Evaluation) -> Chart:
    layout = rows([(evaluation.unit or "load, in the file's unit", 1.0)])
    layout["yaxis"]["rangemode"] = "normal"  # a band is narrow beside the way down to 0
    return layout
