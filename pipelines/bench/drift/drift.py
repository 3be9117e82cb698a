"""How soon a change of mean is found in shipped loads, and how often one is found where there is none."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from models.adapt.drift import Drift, Rule, detect
from models.forecast.core.forecaster import DAY_S, Task
from models.forecast.core.series import Series
from models.forecast.selection.catalogue import CATALOGUE, NAIVE
from pipelines.bench.forecast.breaks import (
    CELLS,
    CHOSEN_ON,
    SHAPES,
    STEPS,
    Watched,
    broken,
    errors_after,
    errors_of,
    watched,
)

LEASTS = (0.08, 0.1, 0.12, 0.15, 0.18, 0.21, 0.24)
"""Smallest changes reported along the operating curve."""
VARIANTS: dict[str, Rule] = {
    "page_hinkley": Rule(kinds=("page_hinkley",), signals=("load",)),
    "adwin": Rule(kinds=("adwin",), signals=("load",)),
    "both": Rule(signals=("load",)),
    "both, errors": Rule(signals=("forecast_error",)),
    "all": Rule(),
}
"""Detectors on the load, on the forecast error alone, and all of it together, which is what is served."""
SERVED = "all"
_LEVELS = (0.1, 0.5, 0.9)
_AHEAD = 12
_SEED = 11


@dataclass(frozen=True, eq=False)
class DriftCase:
    """A watched series with changed copies of it.

    Attributes:
        watched: the series.
        errors: of a forecaster on it.
        changed: for every change its step, its shape, the series and the errors until the search ends.
    """

    watched: Watched
    errors: Series
    changed: list[tuple[int, str, Series, Series]]


def cases(model: str, positions: int, cells: Iterable[str] = CELLS) -> list[DriftCase]:
    """Every cell with `positions` × shapes changes; `model` is a kind of forecaster, fitted to the first week."""
    return [_case(watched(cell), model, positions) for cell in cells]


def measure(found: Iterable[DriftCase], tell: Callable[[str], None] = lambda line: None) -> dict[str, Any]:
    """The figures of every variant and series, pooled, and along the operating curve on either half of the series."""
    found = list(found)
    rows = []
    for name, rule in VARIANTS.items():
        for case in found:
            rows.append({"detector": name, **_row(case, rule)})
            tell(f"{name}: {rows[-1]['series']} done")
    curve = []
    for least in LEASTS:
        rule = replace(VARIANTS["both"], least=least)
        at = [_row(case, rule, STEPS) for case in found]
        chosen = [row for row in at if row["series"] in CHOSEN_ON]
        rest = [row for row in at if row["series"] not in CHOSEN_ON]
        curve.append({"least": least, "chosen_on": pool(chosen), "others": pool(rest), "pooled": pool(at)})
        tell(f"least {least:g} done")
    pooled = {name: pool([row for row in rows if row["detector"] == name]) for name in VARIANTS}
    return {"served": SERVED, "rows": rows, "pooled": pooled, "curve": curve}


def follow(series: Series, rule: Rule, errors: Series) -> list[Drift]:
    """The drifts that daily ingests of a series find, each remembering the last."""
    drifts: list[Drift] = []
    day = round(DAY_S / series.step_s)
    for end in range(day, len(series) + day, day):
        drifts += detect(_until(series, end), rule, drifts[-1] if drifts else None, _until(errors, end))
    return drifts


def pool(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Sums over series: alarms per series-month, share of steps found within the time allowed, median delay."""
    months, changes = sum(row["months"] for row in rows), sum(row["changes"] for row in rows)
    delays = [delay for row in rows for delay in row["delays"]]
    return {
        "months": months,
        "false_alarms": sum(row["false_alarms"] for row in rows),
        "false_alarms_per_month": sum(row["false_alarms"] for row in rows) / months if months else 0.0,
        "changes": changes,
        "share_found": sum(row["found"] for row in rows) / changes if changes else 0.0,
        "delay_median": statistics.median(delays) if delays else None,
    }


def _row(case: DriftCase, rule: Rule, shapes: tuple[str, ...] = SHAPES) -> dict[str, Any]:
    """What one rule finds in one series; `changes`, `found` and `delays` are of the steps alone, not of the ramp."""
    series, drifts = case.watched.series, follow(case.watched.series, rule, case.errors)
    false = [drift for drift in drifts if case.watched.counts(drift.found)]
    hits: dict[str, list[float]] = {shape: [] for shape in SHAPES}
    asked = dict.fromkeys(SHAPES, 0)
    for at, shape, changed, errors in case.changed:
        if shape not in shapes:
            continue
        begin = series.start + at * series.step_s
        known = [drift for drift in drifts if drift.found <= begin]
        later = [d for d in detect(changed, rule, known[-1] if known else None, errors) if d.found > begin]
        asked[shape] += 1
        right = [d for d in later if d.signal != "load" or (d.factor > 1) == (shape != "-30 %")]
        if right:
            hits[shape].append((right[0].found - begin) / series.step_s)
    delays = [delay for shape in STEPS for delay in hits[shape]]
    return {
        "series": case.watched.name,
        "months": case.watched.months,
        "false_alarms": len(false),
        "false_at": [drift.found for drift in false],
        "changes": sum(asked[shape] for shape in STEPS),
        "found": len(delays),
        "delays": delays,
        "by_shape": {shape: len(hits[shape]) / asked[shape] for shape in SHAPES if asked[shape]},
    }


def _case(each: Watched, model: str, positions: int) -> DriftCase:
    series = each.series
    learnt = 0 if model in NAIVE else min(round(7 * DAY_S / series.step_s), len(series) // 2)
    forecaster = CATALOGUE[model](Task(series.step_s, _AHEAD, _LEVELS), _until(series, learnt))
    errors = errors_of(forecaster, series)
    errors.values[:learnt] = np.nan  # it has seen what came there
    changed = []
    for at in each.positions(positions, _SEED):
        for shape in SHAPES:
            after = broken(series, at, shape)
            changed.append((at, shape, after, errors_after(forecaster, after, errors, at)))
    return DriftCase(each, errors, changed)


def _until(series: Series, end: int) -> Series:
    return Series(series.start, series.step_s, series.values[:end])
