"""A job's forecast from the fast path's store as of a micro-batch's time, in place of the topic `forecasts`."""

from __future__ import annotations

import dataclasses
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import DecodeError

from models.forecast.core.gaps import DOUBTED
from pipelines.serve.step.keys import forecast_key
from pipelines.serve.step.records import STATUS, ForecastValue, Status, decode_value
from pipelines.store import Reader, StoreError
from tidecast.messages import Forecast, MessageError, decode


class StoreReading(NamedTuple):
    """What a read of the store found.

    Attributes:
        forecast: fields as in `tidecast.messages.Forecast`; None without a usable one.
        used: for the decision's log: `as_of` and the record's `ts` (ns of the store's clock), its `version` (index of
            the window) and `generation` (which loaded model), or the reason for no forecast as `problem`.
    """

    forecast: dict[str, Any] | None
    used: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class StoreForecasts:
    """Reads a job's forecasts from the store at `folder`; picklable, so that each worker opens the store itself.

    Attributes:
        folder: of the store.
        step_s: length of the windows whose forecasts are read, job seconds.
    """

    folder: Path
    step_s: float

    def read(self, job: str, batch_s: float) -> StoreReading:
        """Read the forecast that was a job's newest at a micro-batch's time; the same if the batch is tried again.

        If the newest commit of the store (the fast path's LMDB files) is older than that time, the forecast is the
        newest at that commit. Its `wall_time` is raised to the moment that was read, by four windows at most: of a job
        whose records do not reach the server it grows old. Where the wall clock was set since the server began, the
        time is shifted to the store's clock, which does not follow, and back.

        Args:
            job: name of the job.
            batch_s: wall time, epoch seconds, at which the micro-batch was planned; the same if it is tried again.

        Returns:
            The forecast and what it was read as; without a forecast, `used["problem"]` says why: no store, none yet,
            warming up, a model error, a recent gap in the metrics, a value of another release, or an invalid record.
            `used` lacks `as_of` only where the store could not be read.
        """
        try:
            reader = _reader(self.folder)
            ahead = _ahead_ns(reader)
            as_of = min(round(batch_s * 1e9) + ahead, reader.frontier()[0])
            record = reader.get_at_time(forecast_key(job, self.step_s), as_of)
        except StoreError as error:
            _reader.cache_clear()  # a store that was made anew, or is not there yet, is opened again
            return StoreReading(None, {"problem": str(error)})
        if record is None:
            return StoreReading(None, {"as_of": as_of, "problem": "no forecast yet"})
        used = {"as_of": as_of, "ts": record.ts, "version": record.version}
        try:
            value = decode_value(ForecastValue, record.value)
        except DecodeError as error:
            return StoreReading(None, {**used, "problem": f"a value of another release: {error}"})
        used["generation"] = value.deployment
        if not value.message or value.doubted:  # an earlier release stored those of it
            missing = f"{value.imputed} windows before it were missing"
            return StoreReading(None, {**used, "problem": missing if value.doubted else value.reason})
        try:
            forecast = decode(Forecast, value.message, batch_s)  # the store's clock does not follow the wall's steps
        except MessageError as error:
            return StoreReading(None, {**used, "problem": str(error)})
        # It is as fresh as the store is: the server that keeps it alive has nothing newer to say. But no longer than
        # until a window would have come after which none is issued: then the server does not hear of the job.
        until = forecast.wall_time + (1 + DOUBTED) * forecast.step_s / forecast.time_scale
        wall_time = max(forecast.wall_time, min((as_of - ahead) / 1e9, until))
        fresh = dataclasses.replace(forecast, wall_time=wall_time)
        return StoreReading(dataclasses.asdict(fresh), used)


def _ahead_ns(reader: Reader) -> int:
    """By how much the store's clock is ahead of the wall's, as its server says; 0 where it does not."""
    try:
        return round(decode_value(Status, reader.get_meta(STATUS) or b"").ahead_s * 1e9)
    except DecodeError:  # none yet, or of another release
        return 0


@lru_cache(maxsize=1)
def _reader(folder: Path) -> Reader:
    """One per process, opened where it is used."""
    return Reader.open(folder)
