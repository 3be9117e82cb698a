"""The forecast that a closed window leaves, as a record and as a message. Pure: no store, no clock."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np

from models.forecast.core.forecaster import Forecaster
from models.forecast.core.gaps import Streak
from models.forecast.core.series import Floats, Series
from pipelines.serve.step.generations import Generation
from pipelines.serve.step.records import ForecastValue
from tidecast.messages import Forecast, encode

_JSON = msgspec.json.Encoder()
_FORECAST = msgspec.json.Decoder(Forecast)


@dataclass(frozen=True)
class ForecastOrigin:
    """What a forecast says beside its numbers, all of it from the log, so that a replay says the same.

    Attributes:
        job: its name.
        version: window it is made after.
        step_s: seconds per window.
        wall_time: when the record that closed the window was measured.
        time_scale: seconds of job time per wall second.
        epoch: of the server, as claimed on `control`.
        windows: since the job's first one, gaps included.
        rate: of the window, records/s; None where it is not known.
    """

    job: str
    version: int
    step_s: float
    wall_time: float
    time_scale: float
    epoch: int
    windows: int
    rate: float | None


def message(quantiles: Floats, trust: str, made: Forecaster, by: Generation, at: ForecastOrigin) -> Forecast:
    """The forecast after a window as it goes on the topic: finite quantiles (horizon, levels), records/s."""
    return Forecast(
        job=at.job, time=(at.version + 1) * at.step_s, wall_time=at.wall_time, time_scale=at.time_scale,
        step_s=at.step_s, levels=list(made.levels), quantiles=np.maximum(quantiles, 0.0).tolist(), model=by.model,
        version=by.model_version, alias="champion", kind=trust, history_steps=at.windows, epoch=at.epoch,
        last_rps=at.rate,
    )  # fmt: skip


def record(issued: Forecast | None, reason: str, streak: Streak, by: Generation) -> ForecastValue:
    """The forecast as it is stored, with everything it was made by; without one, with the reason (seed 6.1, step 3)."""
    text = b"" if issued is None else encoded(issued)
    since, doubted = streak.row - 1, streak.doubted
    return ForecastValue(by.number, by.model_version, by.digests, streak.imputed, since, doubted, reason, text)


def encoded(issued: Forecast) -> bytes:
    """The message's bytes, as `tidecast.messages.encode` has them, at a thirtieth of its time; numbers are finite."""
    return encode(issued) if issued.last_rps is None else _JSON.encode(issued)


def issued_in(value: ForecastValue) -> Forecast | None:
    """The forecast that a record holds; None without one."""
    return _FORECAST.decode(value.message) if value.message else None


def origin_of(issued: Forecast) -> int:
    """The window a forecast was made after."""
    return round(issued.time / issued.step_s) - 1


def series(windows: list[tuple[int, float]], first: int, last: int, step_s: float) -> Series:
    """Of windows (version, records/s) those from `first` to `last` as a series; NaN where one is missing."""
    rates = dict(windows)
    return Series(first * step_s, step_s, np.array([rates.get(v, np.nan) for v in range(first, last + 1)]))
