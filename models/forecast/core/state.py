"""What is kept of a followed series beside its samples, as bytes: data only, nothing that could run."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from models.forecast.core.forecaster import State
from models.forecast.core.ring import Ring
from models.forecast.core.series import Floats, Series

_FORM = 1
"""Of the bytes; one more wherever their meaning changes."""
_GRAIN = 1e-3  # of a step: how far a state's time may lie from the history's steps


class OnlineError(ValueError):
    """No such series, or bytes that are no state of it; the message names the value and the remedy."""


class Kept(msgspec.Struct, array_like=True, frozen=True):
    """A state; the samples of a kind whose series lie in a `Ring` are not among it.

    Attributes:
        form: of these bytes.
        made_by: kind, step_s, horizon, levels and size of what carried it.
        time: epoch seconds at which the next step begins.
        seen: steps since the series began.
        carried: what the kind carries, as it wrote it.
        values: (kept,) float64, the newest values, where the kind keeps them here; else empty.
        filled: numbers of the kept steps that were missing, from the series' first one.
        stand_ins: (len(filled),) float64: what stands there instead.
    """

    form: int
    made_by: list[Any]
    time: float
    seen: int
    carried: bytes
    values: bytes = b""
    filled: list[int] = []
    stand_ins: bytes = b""


_encoder = msgspec.msgpack.Encoder(enc_hook=lambda found: _plain(found))
_decoder = msgspec.msgpack.Decoder(Kept)


def made_by(forecaster: Any, size: int = 0) -> list[Any]:
    """What must be the same in the forecaster that goes on with a state; its version is the caller's to compare."""
    return [forecaster.kind, forecaster.step_s, forecaster.horizon, list(forecaster.levels), size]


def write(made: list[Any], ring: Ring, carried: bytes) -> bytes:
    """The bytes of a series' state; its measured samples are not among them."""
    filled, stand_ins = list(ring.filled), b""
    if filled:
        stand_ins = ring.values[np.array(filled) - ring.seen].tobytes()
    return _encoder.encode(Kept(_FORM, made, ring.time, ring.seen, carried, b"", filled, stand_ins))


def write_whole(made: list[Any], state: State | Ring, carried: Any) -> bytes:
    """The bytes of a series' state, its values included: where much is carried, they make it little larger."""
    return _encoder.encode(Kept(_FORM, made, state.time, state.seen, encode(carried), state.values.tobytes()))


def read(made: list[Any], kept: bytes) -> Kept:
    """The state in those bytes.

    Raises:
        OnlineError: they are not one, or that of another forecaster.
    """
    try:
        found = _decoder.decode(kept)
    except msgspec.MsgspecError as error:
        raise OnlineError(f"{len(kept)} bytes that are no state: {error}. Admit the job on its history.") from None
    if len(found.stand_ins) != 8 * len(found.filled):
        raise OnlineError(f"{len(found.filled)} steps were filled by {len(found.stand_ins)} bytes. Admit the job.")
    if found.form != _FORM or found.made_by != made:
        raise OnlineError(f"the state is of {found.made_by}, the forecaster {made}. Admit the job on its history.")
    return found


def parted(found: Kept, history: Series) -> tuple[Floats, Series]:
    """The samples of a history before and after a state's time, NaN where one was missing; an empty one has none.

    Raises:
        OnlineError: it ends before the state, begins after it, or has other steps.
    """
    if not len(history):
        return history.values, history
    end = (found.time - history.start) / history.step_s
    at = round(end)
    if abs(end - at) > _GRAIN or not 0 <= at <= len(history):
        raise OnlineError(
            f"the state is of time {found.time:.3f}, the history from {history.start:.3f} to {history.end:.3f} in steps"
            f" of {history.step_s:g} s. Give the samples that led to this state."
        )
    return history.values[:at], Series(found.time, history.step_s, history.values[at:])


def refill(found: Kept, older: Floats, ring: Ring) -> None:
    """Put a ring where it was when the state was kept, from the values in there or from the samples before it.

    Raises:
        OnlineError: they do not reach back far enough, or others of them are missing than were then.
    """
    if found.values:
        if len(found.values) != 8 * ring.kept:
            raise OnlineError(f"{len(found.values)} bytes of values, {8 * ring.kept} are expected. Admit the job.")
        ring.load(np.frombuffer(found.values), found.seen, found.time, ())
        return
    many = min(found.seen, ring.kept)
    if len(older) < many:
        raise OnlineError(f"the history has {len(older)} steps before the state, {many} are needed. Admit the job.")
    values = np.full(ring.kept, np.nan)
    values[ring.kept - many :] = older[len(older) - many :]
    numbers = np.array(found.filled, dtype=np.int64) - found.seen
    if not np.array_equal(numbers, np.flatnonzero(np.isnan(values[ring.kept - many :])) - many):
        raise OnlineError("other steps of the history are missing than were when the state was kept. Admit the job.")
    values[numbers] = np.frombuffer(found.stand_ins)
    ring.load(values, found.seen, found.time, found.filled)


def encode(carried: Any) -> bytes:
    """Dataclasses and named tuples of numbers and arrays as bytes."""
    return _encoder.encode(carried)


def decode(kind: Any, raw: bytes) -> Any:
    """What `encode` wrote of this type, bit by bit.

    Raises:
        OnlineError: it is something else.
    """
    try:
        return _reader(kind).decode(raw)
    except (msgspec.MsgspecError, ValueError, TypeError) as error:
        raise OnlineError(f"{len(raw)} bytes that are no {kind}: {error}. Admit the job on its history.") from None


@cache
def _reader(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    return msgspec.msgpack.Decoder(kind, dec_hook=_array)


def _plain(found: Any) -> Any:
    if isinstance(found, np.ndarray):
        return [found.dtype.str, found.shape, found.tobytes()]
    if isinstance(found, np.generic):
        return found.item()
    raise NotImplementedError(type(found))


def _array(_: type, written: Any) -> NDArray[Any]:
    kind, shape, raw = written
    return np.frombuffer(bytearray(raw), dtype=kind).reshape(shape)
