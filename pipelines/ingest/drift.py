"""Whether a job's load, or the error of its served forecasts, changed for good: asked once an ingest stored rows.

Nothing else is stored: the newest event of a job holds the fields of its drift, and the next check begins there.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from configs.bounds import DAY_S
from configs.settings import Settings
from models.adapt.drift import KEPT_DAYS, Drift, detect_drifts
from models.forecast.core.series import Series
from pipelines.airflow.drifts import DriftEvent, valid_drifts
from pipelines.lake.load import format_minute
from pipelines.lake.tables import exists

if TYPE_CHECKING:
    import pandas as pd

    from pipelines.lake.file_lake import FileLake
    from pipelines.lake.tables import Lake

_log = logging.getLogger(__name__)


def find_drift_events(
    lake: Lake | FileLake, settings: Settings, jobs: Iterable[str], reported: Iterable[Any]
) -> tuple[list[DriftEvent], dict[str, str]]:
    """Find lasting changes of jobs' loads, or of the errors of their forecasts, that were not reported yet.

    Reads the newest `KEPT_DAYS` (42) days of every job; runs Spark jobs where the lake takes a session.

    Args:
        lake: where the ingest has just stored metrics.
        settings: `training.step_s` is the length of a step, seconds of job time.
        jobs: names of jobs whose loads are checked.
        reported: earlier events, as this function returned them, in any order; `valid_drifts` picks them.

    Returns:
        First, at most one event per job, its newest, with the keys that `newest_drift` gives; a job without rows has
        none, and neither has one whose times make no series, which is logged. Second, what was wrong by job, of those
        that could not be looked at.

    Raises:
        LakeError: nothing was ever ingested.
        Exception: as pyspark raises it, or an OSError, where a file of the loads cannot be read.
    """
    reported, step_s = valid_drifts(reported), settings.training.step_s
    newest_s = KEPT_DAYS * DAY_S + 2 * step_s  # one step may have begun, and the first one lack records
    found, wrong = [], {}
    for job, series in lake.read_loads(list(jobs), step_s, newest_s, leave_out=True)[0].items():
        _, series = series.split(round(KEPT_DAYS * DAY_S / series.step_s))
        try:
            known = len(series) > 0 and exists(lake.root, "forecasts")
            served = lake.read_served_forecasts(job, series.start) if known else None
            event = newest_drift(job, series, reported, log_forecast_errors(series, served))
        except Exception as error:  # whatever it is, the other jobs are looked at
            _log.exception("%s: drifts were not looked for", job)
            wrong[job] = f"{type(error).__name__}: {error}"
            continue
        if event is not None:
            found.append(event)
    return found, wrong


def newest_drift(
    job: str, series: Series, reported: Iterable[Mapping[str, Any]], errors: Series | None = None
) -> DriftEvent | None:
    """Return the newest lasting change of a job's load or forecast errors since the last reported one, or None.

    The same series and reports give the same event, and None once that event is among the reports.

    Args:
        job: whose load it is.
        series: records/s; NaN where a step is missing.
        reported: earlier events, of any job, in any order; one that was found over a day behind the end of the series
            is none of an ingest and does not count.
        errors: log(actual/forecast) at the same steps, NaN where unknown; without them the load alone is checked.

    Returns:
        `job`; `time` (estimated begin) and `found` (when it was certain), epoch seconds of job time; `kind` of
        detector, "page_hinkley" or "adwin"; `signal`, "load" or "forecast_error"; `before` and `after`, medians over
        the day before and since, of the load as log ratio to what is usual at that time of the week, of errors as mean
        |log ratio| above their usual range (0: usual); `factor`, exp(after − before) (1.3: + 30 %); `text`.

    Raises:
        SeriesError: the errors are not at the steps of the series.
        KeyError: a reported event lacks `job`, or one of this job lacks `found` or a field of `Drift`.
    """
    # One that a person dated into the future would keep the job from being looked at until then.
    of_job = [event for event in reported if event["job"] == job and event["found"] <= series.end + DAY_S]
    last = max(of_job, key=lambda event: float(event["found"]), default=None)
    known = Drift(**{field.name: last[field.name] for field in fields(Drift)}) if last else None
    drifts = detect_drifts(series, known, errors)
    if not drifts:
        return None
    drift = drifts[-1]
    what = "load" if drift.signal == "load" else "forecast error"
    text = (
        f"{job}: the {what} changed by {drift.factor - 1:+.0%} against what is usual at that time of the week, "
        f"since about {format_minute(drift.time)} (certain at {format_minute(drift.found)}, {drift.kind})"
    )
    return {"job": job, **asdict(drift), "factor": drift.factor, "text": text}


def log_forecast_errors(series: Series, forecasts: pd.DataFrame | None) -> Series | None:
    """Compute log(actual / forecast median) for every step, from the forecast of which it is the farthest step.

    Args:
        series: actual load, records/s.
        forecasts: columns time, wall_time, step_s, levels, quantiles, as `Lake.read_served_forecasts` returns them;
            those with another `step_s` than the series are left out, and of several for one time the first by wall_time
            counts. None gives None.

    Returns:
        A series at the same steps (natural logarithm), NaN where there was no such forecast or load or median is not
        above 0; None if all of it would be NaN. The median is the quantile whose level is nearest 0.5.

    Raises:
        KeyError: the forecasts lack one of these columns.
        IndexError, ValueError: a forecast has no steps or no levels, or its time is NaN.
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
