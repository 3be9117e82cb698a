"""Whether a job's load, or the error of its served forecasts, changed for good: asked once an ingest stored rows.

What was reported is the memory: each event carries what `check` made of the drift, and the next look begins there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from configs.settings import Settings
from models.adapt.drift import KEPT_DAYS, Drift, detect
from models.forecast.core.forecaster import DAY_S
from models.forecast.core.series import Series
from pipelines.lake.load import moment
from pipelines.lake.tables import Lake, exists

if TYPE_CHECKING:
    import pandas as pd

Event = dict[str, Any]
"""What an event says of a drift: its fields, `job`, `factor`, and `text` for a person. JSON values only."""


def look(lake: Lake, settings: Settings, jobs: Iterable[str], reported: Iterable[Mapping[str, Any]]) -> list[Event]:
    """The drifts of these jobs that were not reported yet, at most one of each, with the Spark session of the lake.

    Args:
        lake: where the ingest has just stored metrics.
        settings: the length of a step is that of the training.
        jobs: whose loads are looked at.
        reported: what earlier events said, in any order.
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
    """The newest drift of a job since the last one reported; None where nothing new has changed for good.

    A second call with the same series gives the same drift, and none once it was reported: one event per break, however
    often rows are ingested.

    Args:
        job: whose load it is.
        series: records/s as far as the lake has them.
        reported: what earlier events said, of any job.
        errors: log(actual/forecast) at the same steps; None: the load alone is looked at.
    """
    of_job = [event for event in reported if event["job"] == job]
    last = max(of_job, key=lambda event: float(event["found"]), default=None)
    known = Drift(**{field.name: last[field.name] for field in fields(Drift)}) if last else None
    drifts = detect(series, known, errors)
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
    """log(actual/median) of the served forecasts, furthest step ahead, at every step; None where none was served.

    Args:
        series: what came.
        forecasts: columns time, wall_time, step_s, levels, quantiles; the first of a time counts, and only those with
            the series' step.
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
