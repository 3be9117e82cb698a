"""The charts of an evaluation: fans, error by horizon and by hour, calibration."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd

from models.forecast.selection.backtest import Backtest
from pipelines.bench.forecast.evaluate import CHAMPION, Evaluation
from pipelines.html.plot import Chart, line, silent, stacked_rows

SHOWN = 500
"""Newest test steps in a fan chart; more cannot be told apart."""
_COLOURS, _DASHES = ("@capacity", "@executors", "@other", "@bad", "@good", "@text"), ("solid", "dash", "dot", "dashdot")
MEASURES = {"rmse": "RMSE", "pinball": "pinball loss", "mae": "MAE", "wape": "WAPE"}
"""Scores that are drawn by steps ahead, as they are called."""


def draw_fan(evaluation: Evaluation, name: str, ahead: int) -> Chart:
    """Draw a model's 80 % and 95 % intervals and median against the outcome, over the newest 500 test steps at most.

    Returns a Plotly figure (`data`, `layout`), as all of this file.

    Args:
        evaluation: of the model.
        name: of the model.
        ahead: how many steps before the outcome the forecasts were issued, 1 to the horizon.

    Raises:
        KeyError, IndexError: no such model, or `ahead` is above the horizon.
        SeriesError: the levels do not hold the intervals' ends.
    """
    backtest = evaluation.contenders[name].backtest
    count = len(backtest.actual) - ahead + 1  # none was issued so early before the first
    newest = slice(max(count - SHOWN, 0), count)
    times = _times(backtest, np.arange(newest.start, count) + ahead - 1)
    data = []
    for share, opacity in ((0.95, 14), (0.8, 22)):
        low, high = (end[newest, ahead - 1] for end in backtest.central_interval(share))
        data.append(_band(times, low, high, f"{share:.0%} interval", opacity))
    data.append(line(times, backtest.median[newest, ahead - 1], "median", "@forecast", width=1.8))
    data.append(line(times, backtest.actual[newest, ahead - 1], "what came", "@arrival", width=1.3))
    return {"data": data, "layout": _over_time(evaluation)}


def draw_by_horizon(evaluation: Evaluation, figures: dict[str, Any], measure: str) -> Chart:
    """Draw a score over the steps ahead, a line per model, as a Plotly figure; gaps where the score is None.

    Args:
        evaluation: of the models.
        figures: its scores, as from `score_evaluation`.
        measure: "rmse", "pinball", "mae" or "wape".

    Raises:
        KeyError: another measure.
    """
    ahead = list(range(1, evaluation.task.horizon + 1))
    data = []
    for name, (colour, dash, width) in choose_line_styles(evaluation).items():
        by = figures["models"][name]["horizons"]
        trace = line(
            ahead, [by[str(h)][measure] for h in ahead], _title(name, evaluation), colour, width=width, dash=dash
        )
        trace["hovertemplate"] = "%{fullData.name}<br>%{x} ahead: %{y:.4~g}<extra></extra>"
        data.append({**trace, "mode": "lines+markers" if len(ahead) < 3 else "lines"})
    unit = evaluation.unit if measure != "wape" else "a share"
    layout = _across(", ".join(filter(None, (MEASURES[measure], unit))), "steps ahead", max(1, len(ahead) // 12))
    return {"data": data, "layout": layout | {"hovermode": "closest"}}


def draw_calibration(evaluation: Evaluation, name: str) -> Chart:
    """Draw the share of outcomes at or under each quantile over the quantile's level; the diagonal is calibrated.

    A line each for 1 step ahead, half the horizon and the whole; a Plotly figure.

    Raises:
        KeyError: the evaluation has no model of that name.
    """
    backtest, horizon = evaluation.contenders[name].backtest, evaluation.task.horizon
    data = [silent(line([0, 1], [0, 1], "as it should be", "@other", dash="dash", width=1.2))]
    chosen = sorted({1, (horizon + 1) // 2, horizon})
    for h, colour in zip(chosen, ("@forecast", "@capacity", "@executors"), strict=False):
        known = np.isfinite(backtest.actual[:, h - 1])
        under = (backtest.actual[known, h - 1, None] <= backtest.quantiles[known, h - 1]).mean(axis=0)
        trace = line(backtest.levels, under, f"{h} ahead", colour)
        data.append({**trace, "mode": "lines+markers", "hovertemplate": "%{x:.3~g}: %{y:.3f}"})
    layout = _across("share of outcomes at or under the quantile", "level of the quantile", 0.2)
    layout["xaxis"]["range"] = layout["yaxis"]["range"] = [0, 1]
    return {"data": data, "layout": layout | {"hovermode": "closest"}}


def draw_coverage(evaluation: Evaluation, figures: dict[str, Any], name: str) -> Chart:
    """Draw the percentage of outcomes within the 80, 90 and 95 % intervals by steps ahead, as a Plotly figure.

    Args:
        evaluation: of the model.
        figures: its scores, as from `score_evaluation`; a line has a gap where the share is None.
        name: of the model.

    Raises:
        KeyError: no such model, or its levels do not hold these intervals.
    """
    ahead = list(range(1, evaluation.task.horizon + 1))
    by, data = figures["models"][name]["horizons"], []
    for key, colour in (("0.8", "@capacity"), ("0.9", "@forecast"), ("0.95", "@executors")):
        share = [None if (s := by[str(h)]["coverage"][key]) is None else 100 * s for h in ahead]
        data.append(line(ahead, share, f"{100 * float(key):g} % interval", colour, width=2))
        data.append(silent(line([1, len(ahead)], [100 * float(key)] * 2, "", colour, dash="dash", width=1)))
    layout = _across("outcomes within the interval, %", "steps ahead", max(1, len(ahead) // 12))
    lowest = min((v for trace in data for v in trace["y"] if v is not None), default=60)
    layout["yaxis"]["range"] = [min(60, lowest - 5), 101]
    return {"data": data, "layout": layout}


def choose_line_styles(evaluation: Evaluation) -> dict[str, tuple[str, str, float]]:
    """Choose each model's line, by name: colour, dash, width in pixels; champion and best naive forecast stand out."""
    styles = {CHAMPION: ("@forecast", "solid", 3.0), evaluation.best_naive: ("@arrival", "solid", 2.4)}
    others = [name for name in evaluation.contenders if name not in styles]
    looks = [(colour, dash, 1.5) for dash in _DASHES for colour in _COLOURS]
    styles |= dict(zip(others, cycle(looks), strict=False))
    return {name: styles[name] for name in evaluation.contenders}


def _title(name: str, evaluation: Evaluation) -> str:
    said = name.replace("_", " ")
    return f"champion: {evaluation.champion.replace('_', ' ')}" if name == CHAMPION else said


def _times(backtest: Backtest, at: Any) -> list[str]:
    begins = pd.to_datetime(backtest.start + backtest.step_s * at, unit="s")
    return list(begins.strftime("%Y-%m-%d %H:%M:%S"))


def _band(times: list[str], low: Any, high: Any, name: str, opacity: int) -> Chart:
    around = line([*times, *times[::-1]], [*high, *low[::-1]], name, "@forecast/0", width=0)
    look = {"fill": "toself", "fillcolor": f"@forecast/{opacity}", "hoverinfo": "skip", "hovertemplate": None}
    return {**around, **look}


def _across(what: str, over: str, tick: float) -> Chart:
    """A layout of one row: what is shown, with its unit, over what, and the distance of its ticks."""
    layout = stacked_rows([(what, 1.0)])
    layout["xaxis"] |= {"title": {"text": over, "font": {"size": 13}}, "dtick": tick}
    return layout


def _over_time(evaluation: Evaluation) -> Chart:
    layout = stacked_rows([(evaluation.unit or "load, in the file's unit", 1.0)])
    layout["yaxis"]["rangemode"] = "normal"  # not forced down to 0, where bands look thin
    return layout
