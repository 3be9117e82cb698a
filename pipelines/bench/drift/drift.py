"""How soon a change of mean is found in shipped loads, and how often one is found where there is none."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from configs.bounds import DAY_S
from models.adapt.drift import LEAST, Drift, detect_drifts
from models.forecast.core.forecaster import Task
from models.forecast.core.series import Series
from models.forecast.selection.catalogue import CATALOGUE, NAIVE
from pipelines.bench.forecast.breaks import (
    CELLS,
    CHOSEN_ON,
    SHAPES,
    STEPS,
    WITHIN,
    WatchedSeries,
    change_mean,
    log_errors,
    log_errors_after,
    read_watched,
)
from pipelines.html.columns import of_rows

LEASTS = (0.08, 0.1, 0.12, 0.15, 0.18, 0.21, 0.24)
"""Smallest changes reported, |log ratio|, along the operating curve."""
MODEL, POSITIONS = "seasonal_naive", 40
"""The kind of forecaster whose errors are followed, and the places per series at which every change is tried."""
_LEVELS = (0.1, 0.5, 0.9)
_AHEAD = 12
_SEED = 11


@dataclass(frozen=True, eq=False)
class DriftCase:
    """A series and copies of it whose mean was changed.

    Attributes:
        watched: the series, with the anomalies that do not count.
        errors: log(load/forecast) of a forecaster on it.
        changed: per change the index at which it begins, its shape, the changed series and the forecaster's errors on
            it.
    """

    watched: WatchedSeries
    errors: Series
    changed: list[tuple[int, str, Series, Series]]


def make_cases() -> list[DriftCase]:
    """Change the mean of every series of CELLS at drawn places in every shape of SHAPES, and forecast each.

    Takes minutes. The forecaster is fitted to the first week, or half the series if that is shorter; the places are
    drawn from a fixed seed.

    Raises:
        TraceError: a shipped series is gone or damaged.
    """
    watched = [read_watched(cell) for cell in CELLS]
    return [_case(each, MODEL, each.draw_positions(POSITIONS, _SEED)) for each in watched]


def measure_detection(
    cases: Sequence[DriftCase], report_progress: Callable[[str], None] = lambda line: None
) -> dict[str, Any]:
    """Count the changes found and the false alarms: per series, pooled, and along an operating curve on the load alone.

    Args:
        cases: from `make_cases`, at least one.
        report_progress: called with a line of text after each series and each smallest change of LEASTS.

    Returns:
        `rows`, per series `series` (name), `months` watched (of 30 days), `false_alarms`, `false_at` (epoch seconds),
        `changes` by a step of ± 30 %, `found` of them within 50 steps, `delays` (steps until the report) and `by_shape`
        (share found, 0..1); `pooled`, whose `all` is `pool_rows` of them; `detectors`, a table of them with a row
        "pooled"; `curve`, a row per `least` (smallest change reported, |log ratio|): alarms per month, e.g. "0.41", and
        share found, e.g. "87%", on the series the settings were chosen on, the others and all.

    Raises:
        StatisticsError: there is no case.
    """
    rows = []
    for case in cases:
        rows.append(_row(case, LEAST, SHAPES))
        report_progress(f"{rows[-1]['series']} done")
    curve = []
    for least in LEASTS:
        at = [_row(case, least, STEPS, with_errors=False) for case in cases]
        halves = {True: "chosen on", False: "others"}
        point: dict[str, Any] = {"least": least}
        for part in ("chosen on", "others", "pooled"):
            pooled = pool_rows([row for row in at if part in ("pooled", halves[row["series"] in CHOSEN_ON])])
            point |= {f"{part}: per month": f"{pooled['false_alarms_per_month']:.2f}"}
            point |= {f"{part}: found": f"{pooled['share_found']:.0%}"}
        curve.append(point)
        report_progress(f"least {least:g} done")
    lines = [*(_line(row["series"], [row]) for row in rows), _line("pooled", rows)]
    return {"rows": rows, "pooled": {"all": pool_rows(rows)}, "detectors": lines, "curve": curve}


def format_detection(figures: dict[str, Any]) -> str:
    """Format `measure_detection` as text: every series, the pooled figures, and the operating curve."""
    return "\n".join([
        "Alarms: drifts reported where nothing was changed. Found: share of changes by +30 % or -30 % reported within "
        f"{WITHIN} steps; then by shape. Delay: steps until the report, in the median.",
        "",
        *of_rows(figures["detectors"]),
        "",
        f"Operating curve on the load alone; settings were chosen on {', '.join(CHOSEN_ON)}.",
        "",
        *of_rows(figures["curve"]),
    ])  # fmt: skip


def detect_daily(series: Series, errors: Series | None, least: float = LEAST) -> list[Drift]:
    """Detect drifts (lasting changes) as daily ingests do: each detection gets all data so far and the last drift.

    Args:
        series: the load, in any unit; NaN where a step is missing.
        errors: log(load ÷ forecast) at the same steps, NaN where unknown; None to look at the load alone.
        least: smallest change reported, as |log ratio|.

    Returns:
        All drifts, oldest first, at least a day apart; empty where the series has less than about three days.

    Raises:
        SeriesError: the errors are not at the steps of the series.
    """
    drifts: list[Drift] = []
    day = round(DAY_S / series.step_s)
    for end in range(day, len(series) + day, day):
        known = None if errors is None else _until(errors, end)
        drifts += detect_drifts(_until(series, end), drifts[-1] if drifts else None, known, least)
    return drifts


def pool_rows(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Sum rows of `measure_detection` over series.

    Returns:
        `months`, `false_alarms`, `false_alarms_per_month` (of 30 days), `changes` by a step, `share_found` of them
        within 50 steps, and `delay_median` in steps, None where nothing was found.
    """
    months, alarms, changes, found = (
        sum(row[key] for row in rows) for key in ("months", "false_alarms", "changes", "found")
    )
    delays = [delay for row in rows for delay in row["delays"]]
    return {
        "months": months,
        "false_alarms": alarms,
        "false_alarms_per_month": alarms / months if months else 0.0,
        "changes": changes,
        "share_found": found / changes if changes else 0.0,
        "delay_median": statistics.median(delays) if delays else None,
    }


def _line(name: str, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A line of the table: one series, or several."""
    pooled = pool_rows(rows)
    shapes = {shape: statistics.mean(row["by_shape"].get(shape, 0.0) for row in rows) for shape in SHAPES}
    delay = pooled["delay_median"]
    return {
        "series": name,
        "months": round(pooled["months"], 2),
        "false alarms": pooled["false_alarms"],
        "per month": f"{pooled['false_alarms_per_month']:.2f}",
        "found ± 30 %": f"{pooled['share_found']:.0%}",
        **{shape: f"{share:.0%}" for shape, share in shapes.items()},
        "steps to report": None if delay is None else round(delay),
    }


def _row(case: DriftCase, least: float, shapes: Sequence[str], with_errors: bool = True) -> dict[str, Any]:
    """What is found in one series; `changes`, `found` and `delays` are of the steps alone, not of the ramp."""
    series, watched_errors = case.watched.series, case.errors if with_errors else None
    drifts = detect_daily(series, watched_errors, least)
    hits: dict[str, list[float]] = {shape: [] for shape in shapes}
    asked = dict.fromkeys(shapes, 0)
    for at, shape, changed, errors in case.changed:
        if shape not in shapes:
            continue
        begin = series.start + at * series.step_s
        known = [drift for drift in drifts if drift.found <= begin]
        later = detect_drifts(changed, known[-1] if known else None, errors if with_errors else None, least)
        asked[shape] += 1
        right = [d for d in later if d.found > begin and (d.signal != "load" or (d.factor > 1) == (shape != "-30 %"))]
        if right:
            hits[shape].append((right[0].found - begin) / series.step_s)
    delays = [delay for shape in STEPS for delay in hits[shape]]
    false_at = [drift.found for drift in drifts if case.watched.counts(drift.found)]
    return {
        "series": case.watched.name,
        "months": case.watched.months,
        "false_alarms": len(false_at),
        "false_at": false_at,
        "changes": sum(asked[shape] for shape in STEPS),
        "found": len(delays),
        "delays": delays,
        "by_shape": {shape: len(hits[shape]) / count for shape, count in asked.items() if count},
    }


def _case(each: WatchedSeries, model: str, places: Sequence[int]) -> DriftCase:
    series = each.series
    fitted = 0 if model in NAIVE else min(round(7 * DAY_S / series.step_s), len(series) // 2)
    forecaster = CATALOGUE[model](Task(series.step_s, _AHEAD, _LEVELS), _until(series, fitted))
    errors = log_errors(forecaster, series)
    errors.values[:fitted] = np.nan  # the forecaster was fitted to these steps
    changed = []
    for at in places:
        for shape in SHAPES:
            after = change_mean(series, at, shape)
            changed.append((at, shape, after, log_errors_after(forecaster, after, errors, at)))
    return DriftCase(each, errors, changed)


def _until(series: Series, end: int) -> Series:
    return Series(series.start, series.step_s, series.values[:end])
