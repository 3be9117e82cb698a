"""How right the served forecasts were, by model version and by steps ahead."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from models.forecast.core.series import Series, resample


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


def against(forecasts: pd.DataFrame, actual: Series) -> pd.DataFrame:
    """Compare forecasts with what came: one row per forecast and step ahead.

    Columns: `version`, `model`, `kind`, `issued` (wall time), `time` (trace time the step begins), `ahead` (steps, 1 is
    the first), `low`, `median`, `upper`, `high` (records/s; the levels nearest to 0.5 and 0.9, low and high the
    outermost), `came` (records/s, NaN if the step was not seen), `last` (the last complete step when it was issued). Of
    forecasts of one version for the same time, the first counts.

    Args:
        forecasts: a `tidecast.messages.Forecast` per row.
        actual: the load as it came.
    """
    columns = ["version", "model", "kind", "issued", "time", "ahead", "low", "median", "upper", "high", "came", "last"]
    rows = []
    for f in forecasts.drop_duplicates(["version", "time"]).itertuples():
        middle, upper = (int(np.abs(np.subtract(f.levels, level)).argmin()) for level in (0.5, 0.9))
        last = _value(actual, f.time - f.step_s)
        for ahead, q in enumerate(f.quantiles, 1):
            time = f.time + (ahead - 1) * f.step_s
            quantiles = (q[0], q[middle], q[upper], q[-1])
            rows.append((f.version, f.model, f.kind, f.wall_time, time, ahead, *quantiles, _value(actual, time), last))
    return pd.DataFrame(rows, columns=columns)


def error(steps: pd.DataFrame) -> dict[str, Any]:
    """Measure the error of forecast steps (rows of `against`); steps that were not seen are left out.

    Returns:
        `n` steps; `wape` = Σ|median - came| / Σ came; `rmse` in records/s; `coverage_90`, the share at or under the
        upper quantile; `wape_last_value`, the WAPE of the last complete step as forecast. None where there is nothing
        to divide.
    """
    seen = steps[steps["came"].notna()]
    miss = (seen["median"] - seen["came"]).abs()
    naive = seen[seen["last"].notna()]
    return {
        "n": len(seen),
        "wape": _ratio(miss.sum(), seen["came"].sum()),
        "rmse": round(math.sqrt(float((miss**2).mean())), 3) if len(seen) else None,
        "coverage_90": round(float((seen["came"] <= seen["upper"]).mean()), 4) if len(seen) else None,
        "wape_last_value": _ratio((naive["last"] - naive["came"]).abs().sum(), naive["came"].sum()),
    }


def by_version(steps: pd.DataFrame) -> dict[str, Any]:
    """Measure the error of each model version.

    Args:
        steps: rows of `against`.

    Returns:
        By version: `model`, `kind`, the figures of `error`, and `by_step`: the same per `ahead`, where any step was
        seen.
    """
    found = {}
    for version, mine in steps.groupby("version", sort=False):
        per_step = [{"ahead": int(ahead), **error(part)} for ahead, part in mine.groupby("ahead")]
        names = {"model": mine["model"].iloc[0], "kind": mine["kind"].iloc[0]}
        found[str(version)] = {**names, **error(mine), "by_step": [p for p in per_step if p["n"]]}
    return found


def _value(series: Series, time: float) -> float:
    step = round((time - series.start) / series.step_s)
    return float(series.values[step]) if 0 <= step < len(series) else math.nan


def _ratio(part: float, whole: float) -> float | None:
    return round(float(part / whole), 4) if whole > 0 else None
