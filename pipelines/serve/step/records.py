"""The values of the fast path's records: msgpack of small structs, so that a reader needs nothing but this module."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from pipelines.serve.step.generations import Generation


class SampleValue(msgspec.Struct, frozen=True, array_like=True):
    """A closed window, as in `pipelines.serve.step.windower.Window`; its version is the record's.

    `time_scale` is that of the record that closed it; when that was measured is the event time.
    """

    rate: float
    lag: int | None
    busy_s: float
    time_scale: float


class StateValue(msgspec.Struct, frozen=True, array_like=True):
    """What serving carries for a job from window to window.

    Attributes:
        generation: of the set whose state this is; hidden state belongs to one model version. 0 before any.
        first: the job's first window.
        imputed, row, warming: as in `models.forecast.core.gaps.Streak`.
        carried: the model's own state, as `models.forecast.online` packs it; empty before a model serves, and where
            it is so large that it is kept only now and then, under its own key.
    """

    generation: int
    first: int
    imputed: int
    row: int
    warming: bool
    carried: bytes


class ForecastValue(msgspec.Struct, frozen=True, array_like=True):
    """A forecast and everything it was made by.

    Attributes:
        generation: which swap of the job's model; the version of the set's members in the store.
        model_version: in the registry.
        digests: of weights, scaler and hyper-parameters; all of one generation.
        imputed: windows that were missing in the newest gap and were stepped over; 0 without one.
        since_gap: samples since that gap's end.
        doubted: whether a planner had better ignore it, because the gap was long and is recent.
        reason: why there is none ("warming", "model_error"); empty with one.
        message: the `Forecast` as on the topic, JSON; empty without one.
    """

    generation: int
    model_version: str
    digests: tuple[str, str, str]
    imputed: int
    since_gap: int
    doubted: bool
    reason: str
    message: bytes


class Outgoing(msgspec.Struct, frozen=True, array_like=True):
    """A message that waits to be sent: it leaves the outbox when the broker has it.

    Attributes:
        topic, job: where it goes, and its key there.
        key, version: of the record in the store that it was made with; the message's headers name them.
        note: a further header, where there is one.
        value: the message.
    """

    topic: str
    job: str
    key: str
    version: int
    note: bytes
    value: bytes


class Status(msgspec.Struct, frozen=True, array_like=True):
    """What the server says of itself ten times a second, so that whoever asks does not disturb it.

    Attributes:
        wall_time: when that was.
        process: its id.
        epoch: its claim on `control`.
        counts: what came and what became of it, by name.
        waiting: messages that wait for the broker.
    """

    wall_time: float
    process: int
    epoch: int
    counts: dict[str, int]
    waiting: int


STATUS = "status"
"""Under which the status is kept beside the objects."""
V = TypeVar("V", SampleValue, StateValue, ForecastValue, Generation, Outgoing, Status)
_ENCODER = msgspec.msgpack.Encoder()
_KINDS = (SampleValue, StateValue, ForecastValue, Generation, Outgoing, Status)
_DECODERS: dict[Any, Any] = {kind: msgspec.msgpack.Decoder(kind) for kind in _KINDS}


def packed(value: msgspec.Struct) -> bytes:
    """The value as it is stored."""
    return _ENCODER.encode(value)


def unpacked(kind: type[V], value: bytes) -> V:
    """The stored value."""
    found: V = _DECODERS[kind].decode(value)
    return found
