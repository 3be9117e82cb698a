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
    """Build the `Forecast` message after a window.

    Args:
        quantiles: (horizon, levels) records/s, finite; negative ones become 0.
        trust: what the forecast rests on, as `Online.basis` says; goes into `kind`.
        made: the forecaster, for its levels.
        by: the loaded model, for its name and version.
        at: job, window and times.
    """
    return Forecast(
        job=at.job, time=(at.version + 1) * at.step_s, wall_time=at.wall_time, time_scale=at.time_scale,
        step_s=at.step_s, levels=list(made.levels), quantiles=np.maximum(quantiles, 0.0).tolist(), model=by.model,
        version=by.model_version, alias="champion", kind=trust, history_steps=at.windows, epoch=at.epoch,
        last_rps=at.rate,
    )  # fmt: skip


def record(issued: Forecast | None, reason: str, streak: Streak, by: Generation) -> ForecastValue:
    """Build the stored record of a forecast, with the model and the gaps it was made by.

    Args:
        issued: the message; None where nothing may be forecast.
        reason: why there is none ("warming" or "model_error"); "" with one.
        streak: how the job's windows have come lately, the newest included.
        by: the loaded model that serves the window.

    Raises:
        MessageError: the message cannot be encoded.
    """
    text = b"" if issued is None else encoded(issued)
    since, doubted = streak.row - 1, streak.doubted
    return ForecastValue(by.number, by.model_version, by.digests, streak.imputed, since, doubted, reason, text)


def encoded(issued: Forecast) -> bytes:
    """Encode a forecast whose numbers are finite as JSON, the same bytes as `tidecast.messages.encode` but faster."""
    return encode(issued) if issued.last_rps is None else _JSON.encode(issued)


def issued_in(value: ForecastValue) -> Forecast | None:
    """Decode the message in a forecast's record; None where the record holds none.

    Raises:
        msgspec.DecodeError: the stored message is no `Forecast`.
    """
    return _FORECAST.decode(value.message) if value.message else None


def origin_of(issued: Forecast) -> int:
    """Return the index of the window that the forecast was made after."""
    return round(issued.time / issued.step_s) - 1


def series(windows: list[tuple[int, float]], first: int, last: int, step_s: float) -> Series:
    """Build the series of windows `first` to `last`, both included, from (window index, records/s).

    A window that is missing is NaN; one outside is left out.
    """
    rates = dict(windows)
    return Series(first * step_s, step_s, np.array([rates.get(v, np.nan) for v in range(first, last + 1)]))
