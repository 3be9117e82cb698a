"""The values of the fast path's records: msgpack of small structs, so that a reader needs nothing but this module."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from pipelines.serve.step.deployments import Deployment


class SampleValue(msgspec.Struct, frozen=True, array_like=True):
    """A closed window as stored under `/sample`; its index is the version of the record.

    Attributes:
        rate: mean arrivals, records/s.
        lag: records not yet processed at its end; None where nobody reported it.
        busy_s: wall seconds that batches took since the window before was closed.
        time_scale: seconds of job time per wall second, of the metrics record that closed it.
    """

    rate: float
    lag: int | None
    busy_s: float
    time_scale: float


class StateValue(msgspec.Struct, frozen=True, array_like=True):
    """What is carried for a job from window to window, as stored under `/state`.

    Attributes:
        deployment: number of the deployment whose model has this state; 0 before any.
        first: index of the job's first window.
        imputed, row, warming: see `models.forecast.core.gaps.Streak` (how its windows have come lately).
        carried: the model's own state, as `models.forecast.online` packs it; empty before a model serves, and where it
            is above 8,192 bytes, for it is then kept every 256 windows, under `/checkpoint`.
    """

    deployment: int
    first: int
    imputed: int
    row: int
    warming: bool
    carried: bytes


class ForecastValue(msgspec.Struct, frozen=True, array_like=True):
    """A forecast, or the reason for none, with the model and the gaps it was made by; stored under `/forecast`.

    Attributes:
        deployment: number of the deployment that serves the window; version of its model's members in the store.
        model_version: in the registry.
        digests: of weights, scaler and hyper-parameters, hexadecimal.
        imputed: missing windows that were stepped over, see `models.forecast.core.gaps.Streak`; 0 without a gap.
        since_gap: windows since that gap's end, the first one not counted.
        doubted: whether that gap was long and is recent, so that no forecast is issued.
        reason: why there is none ("warming", "model_error", "doubted"); empty with one.
        message: the `Forecast` as on the topic, JSON; empty without one.
    """

    deployment: int
    model_version: str
    digests: tuple[str, str, str]
    imputed: int
    since_gap: int
    doubted: bool
    reason: str
    message: bytes


class OutgoingMessage(msgspec.Struct, frozen=True, array_like=True):
    """A message in the outbox that waits to be sent to Kafka.

    Attributes:
        topic, job: where it goes, and the record's key there.
        key, version: of the store's record that it was made with; the headers name them.
        note: for a forecast its `ForecastValue` without the message, as the header "record"; else empty.
        value: the message, JSON.
    """

    topic: str
    job: str
    key: str
    version: int
    note: bytes
    value: bytes


class Status(msgspec.Struct, frozen=True, array_like=True):
    """The server's status, stored ten times a second so that readers need not ask the server.

    Attributes:
        wall_time: when it was stored, epoch seconds.
        process: its id.
        epoch: number of its claim on `control`.
        counts: samples and events by what became of them, see `Core`.
        waiting: messages that wait for the broker.
        ahead_s: seconds by which the store's clock is ahead of the wall's, which may be set while the server runs; to
            about a second.
    """

    wall_time: float
    process: int
    epoch: int
    counts: dict[str, int]
    waiting: int
    ahead_s: float = 0.0


STATUS = "status"
"""Meta name under which the server's status is stored."""
V = TypeVar("V", SampleValue, StateValue, ForecastValue, Deployment, OutgoingMessage, Status)
_ENCODER = msgspec.msgpack.Encoder()
_KINDS = (SampleValue, StateValue, ForecastValue, Deployment, OutgoingMessage, Status)
_DECODERS: dict[Any, Any] = {kind: msgspec.msgpack.Decoder(kind) for kind in _KINDS}


def encode_value(value: msgspec.Struct) -> bytes:
    """Encode one of the record kinds of this module (or another struct) as MessagePack.

    Raises:
        TypeError, OverflowError: a field holds what MessagePack cannot.
    """
    return _ENCODER.encode(value)


def decode_value(kind: type[V], value: bytes) -> V:
    """Decode a stored value as one of the record kinds of this module.

    Raises:
        msgspec.DecodeError: the bytes are not MessagePack (or, as its ValidationError, no value of this kind).
    """
    decoded: V = _DECODERS[kind].decode(value)
    return decoded
