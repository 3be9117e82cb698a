"""The forecast after a closed window, as a message and as a stored record. Pure: no store, no clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from models.forecast.core.gaps import Streak
from models.forecast.core.series import Floats, Series
from pipelines.serve.step.deployments import Deployment
from pipelines.serve.step.records import ForecastValue
from tidecast.messages import Forecast, encode

_JSON = msgspec.json.Encoder()
_FORECAST = msgspec.json.Decoder(Forecast)


@dataclass(frozen=True)
class ForecastContext:
    """What a forecast message holds beside its numbers, all of it from the log, so that a replay gives the same bytes.

    Attributes:
        job: its name.
        window: index of the window it is made after.
        step_s: seconds per window.
        wall_time: when the record that closed the window was measured, epoch seconds.
        time_scale: seconds of job time per wall second.
        epoch: number of the server's claim on `control`.
        history_windows: number of windows since the job's first one, gaps included.
        rate: of the window, records/s; None where it is not known.
        ahead_s: job seconds by which the window's number is ahead of the job's clock, which was set back.
    """

    job: str
    window: int
    step_s: float
    wall_time: float
    time_scale: float
    epoch: int
    history_windows: int
    rate: float | None
    ahead_s: float = 0.0


def build_message(
    quantiles: Floats, basis: str, levels: Sequence[float], deployment: Deployment, context: ForecastContext
) -> Forecast:
    """Build the `Forecast` message after a window.

    Args:
        quantiles: (horizon, levels) records/s, finite; negative ones become 0.
        basis: what the forecast rests on, as `Online.basis` says; goes into `kind`.
        levels: of the quantiles, between 0 and 1.
        deployment: names the model and its version.
        context: job, window and times.
    """
    return Forecast(
        job=context.job, time=(context.window + 1) * context.step_s - context.ahead_s,
        wall_time=context.wall_time, time_scale=context.time_scale, step_s=context.step_s, levels=list(levels),
        quantiles=np.maximum(quantiles, 0.0).tolist(), model=deployment.model, version=deployment.model_version,
        alias="champion", kind=basis, history_steps=context.history_windows, epoch=context.epoch, last_rps=context.rate,
    )  # fmt: skip


def build_record(issued: Forecast | None, reason: str, streak: Streak, deployment: Deployment) -> ForecastValue:
    """Build the stored record of a forecast, with the model and the gaps it was made by.

    Args:
        issued: the message; None where nothing may be forecast.
        reason: why there is none ("warming", "model_error" or "doubted"); "" with one.
        streak: how the job's windows have come lately, the newest included.
        deployment: that serves the window.

    Raises:
        MessageError: the message cannot be encoded.
    """
    text = b"" if issued is None else encode_forecast(issued)
    model = deployment.number, deployment.model_version, deployment.digests
    return ForecastValue(*model, streak.imputed, streak.row - 1, streak.doubted, reason, text)


def encode_forecast(issued: Forecast) -> bytes:
    """Encode a forecast whose numbers are finite as JSON, the same bytes as `tidecast.messages.encode` but faster."""
    return encode(issued) if issued.last_rps is None else _JSON.encode(issued)


def decode_forecast(value: ForecastValue) -> Forecast | None:
    """Decode the message in a forecast's record; None where the record holds none.

    Raises:
        msgspec.DecodeError: the stored message is no `Forecast`.
    """
    return _FORECAST.decode(value.message) if value.message else None


def origin_of(issued: Forecast) -> int:
    """Return the index of the window that the forecast was made after."""
    return round(issued.time / issued.step_s) - 1


def build_series(windows: list[tuple[int, float]], first: int, last: int, step_s: float) -> Series:
    """Build the series of windows `first` to `last`, both included, from (window index, records/s).

    A window that is missing is NaN; one outside is left out.
    """
    rates = dict(windows)
    return Series(first * step_s, step_s, np.array([rates.get(v, np.nan) for v in range(first, last + 1)]))
