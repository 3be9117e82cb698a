"""How right the served forecasts were, by model version and by steps ahead."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from models.forecast.core.series import Series, resample
from models.policy.core.view import nearest_level

UPPER = 0.9
"""Level under which most of the load should stay; of levels without it the nearest is taken."""


def actual_load(arrivals: pd.DataFrame, step_s: float) -> Series:
    """Return the arrival rate per trace step, records/s, from intervals of metrics; NaN where under half was seen.

    Args:
        arrivals: columns `time` (epoch seconds of the trace), `arrival_rps`, `span_s`; spans over a step are left out.
        step_s: trace seconds per step.

    Raises:
        SeriesError: a time, rate or span is not finite, or the times span too many steps.
        KeyError: a column is missing.
    """
    fitting = arrivals[arrivals["span_s"] <= step_s]
    times, rates, spans = (fitting[c].to_numpy(float) for c in ("time", "arrival_rps", "span_s"))
    return resample(times, rates, spans, step_s)


def match_forecasts(forecasts: pd.DataFrame, actual: Series) -> pd.DataFrame:
    """Set forecasts beside the load that followed: one row per forecast and step ahead.

    Of forecasts of one version for the same time, the first counts.

    Args:
        forecasts: fields of `tidecast.messages.Forecast`, one forecast per row.
        actual: the load, records/s, by trace time, in steps as long as the forecasts'.

    Returns:
        Columns `version`, `model`, `kind`; `time` (trace seconds at which the step begins); `ahead` (1 is the next
        step); `low`, `median`, `upper`, `high` (records/s at the lowest level, those nearest to 0.5 and 0.9, and the
        highest); `level` (that of `upper`, 0..1); `actual` (records/s; NaN where unknown); `last` (records/s in the
        last complete step before the forecast; NaN likewise).

    Raises:
        KeyError, AttributeError: a field is missing.
        ValueError: a forecast without levels.
    """
    columns = ["version", "model", "kind", "time", "ahead", "low", "median", "upper", "high", "level", "actual", "last"]
    rows = []
    for f in forecasts.drop_duplicates(["version", "time"]).itertuples():
        middle, upper = (nearest_level(tuple(f.levels), level) for level in (0.5, UPPER))
        last = _value(actual, f.time - f.step_s)
        for ahead, q in enumerate(f.quantiles, 1):
            time = f.time + (ahead - 1) * f.step_s
            told = (q[0], q[middle], q[upper], q[-1], f.levels[upper])
            rows.append((f.version, f.model, f.kind, time, ahead, *told, _value(actual, time), last))
    return pd.DataFrame(rows, columns=columns)


def forecast_error(steps: pd.DataFrame) -> dict[str, Any]:
    """Compute the error of forecast steps (rows of `match_forecasts`); steps whose load is unknown are left out.

    Returns:
        `n` steps; `wape` = Σ|median - actual| / Σ actual; `rmse` of the median, records/s; `coverage_90`, the share
        0..1 at or under the quantile nearest to 0.9; `wape_last_value`, the WAPE of the last complete step as forecast.
        None where there is nothing to divide by.

    Raises:
        KeyError: a column is missing.
    """
    seen = steps[steps["actual"].notna()]
    miss = (seen["median"] - seen["actual"]).abs()
    naive = seen[seen["last"].notna()]
    return {
        "n": len(seen),
        "wape": _ratio(miss.sum(), seen["actual"].sum()),
        "rmse": round(math.sqrt(float((miss**2).mean())), 3) if len(seen) else None,
        "coverage_90": round(float((seen["actual"] <= seen["upper"]).mean()), 4) if len(seen) else None,
        "wape_last_value": _ratio((naive["last"] - naive["actual"]).abs().sum(), naive["actual"].sum()),
    }


def error_by_version(steps: pd.DataFrame) -> dict[str, Any]:
    """Compute the forecast error of each model version from rows of `match_forecasts`.

    Returns:
        By version, in order of appearance: `model`, `kind`, `level` (0..1, nearest to 0.9, of the newest of its
        forecasts), the figures of `forecast_error` over all steps ahead, and
        `by_step`: a list of dicts with `ahead` and the same figures, without the steps ahead whose load is unknown.

    Raises:
        KeyError: a column is missing.
    """
    errors = {}
    for version, mine in steps.groupby("version", sort=False):
        per_step = [{"ahead": int(ahead), **forecast_error(part)} for ahead, part in mine.groupby("ahead")]
        names = {"model": mine["model"].iloc[0], "kind": mine["kind"].iloc[0], "level": float(mine["level"].iloc[-1])}
        errors[str(version)] = {**names, **forecast_error(mine), "by_step": [p for p in per_step if p["n"]]}
    return errors


def level_in_words(error: dict[str, Any]) -> str:
    """Return the level of a version's `coverage_90`, as "90 %"."""
    return f"{100 * error.get('level', UPPER):g} %"  # older summaries do not say


def _value(series: Series, time: float) -> float:
    step = round((time - series.start) / series.step_s)
    return float(series.values[step]) if 0 <= step < len(series) else math.nan


def _ratio(part: float, whole: float) -> float | None:
    return round(float(part / whole), 4) if whole > 0 else None
