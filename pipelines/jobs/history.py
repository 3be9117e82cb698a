"""Earlier days of a load as back-dated records on `metrics`: history enters through the same gate as live data."""

from __future__ import annotations

import time
from contextlib import closing

import numpy as np

from configs.bounds import DAY_S
from configs.errors import SettingsError
from configs.sections import Newcomer, Replay
from configs.settings import Settings
from models.forecast.core.series import Floats, Series, SeriesError
from pipelines.kafka.publisher import Publisher
from pipelines.traces.shipped import find_shipped
from pipelines.traces.trace import highest_rps, load_trace
from tidecast.messages import MetricSample


def publish_history(settings: Settings) -> int:
    """Publish the steps of the trace before the live part as back-dated intervals on `metrics`; return how many.

    Blocks until all are acknowledged. `time` is trace time, `wall_time` the moment of sending.

    Raises:
        TraceError: the trace cannot be used.
        BrokerError: no broker, no topic `metrics`, or a record was not accepted in time.
    """
    trace = load_trace(settings.replay)
    return _publish(settings, settings.job.name, *trace.history(), trace.step_s)


def publish_newcomer(settings: Settings, newcomer: Newcomer) -> int:
    """Publish the first days of load of a job with a short history as back-dated `metrics` records; return how many.

    The job and its load are those of the settings' section `replay.newcomer`. Steps without a value are left out.
    Blocks until all are acknowledged, at most 120 s after the last.

    Raises:
        SettingsError, TraceError, SeriesError: as `newcomer_load`.
        BrokerError: no broker, no topic `metrics`, or a record was not accepted in time.
        ValueError: kafka-python has no such security option.
    """
    load = newcomer_load(settings.replay, newcomer)
    known = np.flatnonzero(np.isfinite(load.values))
    times = np.asarray(load.start + known * load.step_s, dtype=np.float64)
    return _publish(settings, newcomer.job, times, load.values[known], load.step_s)


def newcomer_load(replay: Replay, newcomer: Newcomer) -> Series:
    """Return the first `newcomer.days` days of load of a job with a short history, scaled to peak `highest_rps`.

    Returns:
        Records per wall second for each step; NaN where the series lacks one.

    Raises:
        SettingsError: no such series, it is the one that is replayed, it is shorter than these days, or 0 throughout
            them.
        TraceError, SeriesError: its file is gone, cannot be read or is damaged.
    """
    named = f"replay.newcomer.trace={newcomer.trace!r}"
    try:
        shipped = find_shipped(newcomer.trace)
    except SeriesError as error:
        raise SettingsError(f"{named}: {error}") from None
    if shipped.name == replay.trace:
        raise SettingsError(f"{named}: the main job has this load, and would teach what it is. Choose another series.")
    series = shipped.series()
    steps = round(newcomer.days * DAY_S / series.step_s)
    if not 0 < steps <= len(series):
        has = f"{named} has {len(series) * series.step_s / DAY_S:.1f} days in steps of {series.step_s:g} s"
        raise SettingsError(f"replay.newcomer.days={newcomer.days:g}: {has}. Choose as many, or another series.")
    values = series.values[:steps]
    peak = float(np.nanmax(values, initial=0.0))
    if peak == 0:
        raise SettingsError(f"{named}: its first {newcomer.days:g} days are 0. Choose more days or another series.")
    return Series(series.start, series.step_s, values * highest_rps(replay) / peak)


def _publish(settings: Settings, job: str, times: Floats, rates: Floats, step_s: float) -> int:
    """`time` is the step's begin in trace time; the record itself is stamped with the moment it is published."""
    with closing(Publisher(settings.kafka)) as publisher:
        for begin, rate in zip(times.tolist(), rates.tolist(), strict=True):
            sample = MetricSample(
                job, "interval", begin, time.time(), settings.replay.speed, span_s=step_s, arrival_rps=rate
            )
            publisher.send("metrics", job, sample)
    return len(times)
