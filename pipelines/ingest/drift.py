"""Whether a job's load, or the error of its served forecasts, changed for good: asked once an ingest stored rows.

Nothing else is stored: the newest event of a job holds the fields of its drift, and the next check begins there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from configs.settings import Settings
from models.adapt.drift import KEPT_DAYS, Drift, detect_drifts
from models.forecast.core.forecaster import DAY_S
from models.forecast.core.series import Series
from pipelines.lake.load import moment
from pipelines.lake.tables import Lake, exists

if TYPE_CHECKING:
    import pandas as pd

Event = dict[str, Any]
"""What an event says of a drift: its fields, `job`, `factor`, and `text` for a person. JSON values only."""


def look(lake: Lake, settings: Settings, jobs: Iterable[str], reported: Iterable[Mapping[str, Any]]) -> list[Event]:
    """Detect the lasting changes of these jobs' loads and forecast errors that were not reported yet.

    Reads the newest `KEPT_DAYS` days of every job; runs Spark jobs on the lake's session.

    Args:
        lake: where the ingest has just stored metrics.
        settings: `training.step_s` is the length of a step.
        jobs: names of jobs whose loads are looked at.
        reported: earlier events, as this function returned them, in any order.

    Returns:
        At most one event per job; a job without rows has none.

    Raises:
        LakeError: nothing was ever ingested.
        SeriesError: the times of a job span too many steps.
        KeyError: a reported event lacks a field of `Event`.
    """
    reported = list(reported)
    found = []
    for job, series in lake.loads(list(jobs), settings.training.step_s)[0].items():
        _, series = series.split(round(KEPT_DAYS * DAY_S / series.step_s))
        served = lake.served(job, KEPT_DAYS * DAY_S) if exists(lake.root, "forecasts") and len(series) else None
        event = check(job, series, reported, served_errors(series, served))
        if event is not None:
            found.append(event)
    return found


def check(
    job: str, series: Series, reported: Iterable[Mapping[str, Any]], errors: Series | None = None
) -> Event | None:
    """Return the newest drift of a job that was found since its last reported one, or None.

    The same series and reports give the same event, and None once that event is among the reports.

    Args:
        job: whose load it is.
        series: records/s; NaN where a step is missing.
        reported: earlier events, of any job, in any order.
        errors: log(actual/forecast) at the same steps, NaN where unknown; without them the load alone is looked at.

    Returns:
        The fields of `models.adapt.drift.Drift` (time and found in epoch seconds of job time), and `job`, `factor`
        (1.3: it rose by 30 % against what is usual at that time of the week) and `text`.

    Raises:
        SeriesError: the errors are not at the steps of the series.
        KeyError: a reported event lacks `job`, `found` or a field of `Drift`.
    """
    of_job = [event for event in reported if event["job"] == job]
    last = max(of_job, key=lambda event: float(event["found"]), default=None)
    known = Drift(**{field.name: last[field.name] for field in fields(Drift)}) if last else None
    drifts = detect_drifts(series, known, errors)
    if not drifts:
        return None
    drift = drifts[-1]
    what = "load" if drift.signal == "load" else "forecast error"
    text = (
        f"{job}: the {what} changed by {drift.factor - 1:+.0%} against what is usual at that time of the week, "
        f"since about {moment(drift.time)} (certain at {moment(drift.found)}, {drift.kind})"
    )
    return {"job": job, **asdict(drift), "factor": drift.factor, "text": text}


def served_errors(series: Series, forecasts: pd.DataFrame | None) -> Series | None:
    """Compute log(actual/median) per step, from forecasts with their farthest step there.

    Args:
        series: what came, records/s.
        forecasts: columns time, wall_time, step_s, levels, quantiles, as `Lake.served` returns them; those with another
            `step_s` than the series are left out, and of several for one time the first by wall_time counts.

    Returns:
        At the steps of the series, NaN where there was no such forecast or one of the two is not above 0; None where
        every step is NaN.

    Raises:
        KeyError: the forecasts lack one of these columns.
    """
    if forecasts is None:
        return None
    fitting = forecasts[forecasts["step_s"] == series.step_s].sort_values("wall_time").drop_duplicates("time")
    medians = np.full(len(series), np.nan)
    for time, levels, quantiles in zip(fitting["time"], fitting["levels"], fitting["quantiles"], strict=True):
        at = round((time - series.start) / series.step_s) + len(quantiles) - 1
        if 0 <= at < len(medians):
            medians[at] = quantiles[-1][int(np.argmin(np.abs(np.array(levels) - 0.5)))]
    positive = (medians > 0) & (series.values > 0)
    if not positive.any():
        return None
    ratio = np.divide(series.values, medians, out=np.ones(len(medians)), where=positive)
    return Series(series.start, series.step_s, np.where(positive, np.log(ratio), np.nan))
