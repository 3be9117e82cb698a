"""The state of a followed series as bytes (MessagePack): data only, nothing executable."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from models.forecast.core.forecaster import Forecaster, State
from models.forecast.core.series import Floats, Series

_FORM = 2
"""Format version of the bytes; raised whenever their meaning changes."""
_GRAIN = 1e-3  # of a step: how far a state's time may lie from the history's steps


class OnlineError(ValueError):
    """No such series, or bytes that are no state of it; the message names the value and the remedy."""


class _Kept(msgspec.Struct, array_like=True, frozen=True):
    """A state; `made_by` is kind, step_s, horizon and levels of what carried it, `values` (kept,) float64.

    `filled` has a bit for each of these. Older releases of this form wrote none: their fills count as measured. Form 1
    had a list here.
    """

    form: int
    made_by: list[Any]
    time: float
    seen: int
    carried: bytes
    values: bytes
    filled: bytes | list[Any] = b""


_encoder = msgspec.msgpack.Encoder(enc_hook=lambda part: _plain(part))
_decoder = msgspec.msgpack.Decoder(_Kept)


def write_state(forecaster: Forecaster, state: State) -> bytes:
    """Serialise a series' state to MessagePack: its newest values, and the numbers and arrays that are carried.

    Raises:
        NotImplementedError: `state.carried` holds something other than dataclasses, tuples, numbers and arrays.
    """
    carried, values = _encoder.encode(state.carried), state.values.tobytes()
    filled = np.packbits(state.filled).tobytes()
    return _encoder.encode(_Kept(_FORM, _made_by(forecaster), state.time, state.seen, carried, values, filled))


def read_state(forecaster: Forecaster, kept: bytes, carried: Any) -> State:
    """Restore a state from the bytes of `write_state`, bit by bit, with arrays of its own.

    Args:
        forecaster: whose state it must be: same kind, step, horizon and levels. Its weights are not compared.
        kept: the bytes.
        carried: the type of `State.carried`, such as `ExpertState`.

    Raises:
        OnlineError: the bytes are damaged, of another format version, of another forecaster, or not of that type.
    """
    try:
        stored = _decoder.decode(kept)
        if stored.form != _FORM:
            raise OnlineError(
                f"the state has form {stored.form}, this code reads {_FORM}. Admit the job on its history."
            )
        if stored.made_by != (made := _made_by(forecaster)):
            raise OnlineError(f"the state is of {stored.made_by}, the forecaster {made}. Admit the job on its history.")
        values = np.frombuffer(bytearray(stored.values))
        bits = np.frombuffer(bytes(stored.filled).ljust(len(values), b"\0"), dtype=np.uint8)
        filled = np.unpackbits(bits, count=len(values)).astype(bool)
        return State(stored.time, values, filled, stored.seen, _reader(carried).decode(stored.carried))
    except (msgspec.MsgspecError, ValueError, TypeError) as error:
        if isinstance(error, OnlineError):
            raise
        raise OnlineError(f"{len(kept)} bytes that are no state: {error}. Admit the job on its history.") from None


def values_since(state: State, history: Series, step_s: float) -> Floats:
    """Return the values of a history that follow a state.

    Args:
        state: at the end of an earlier part of the history.
        history: may be empty, and may begin before the state's time.
        step_s: seconds per step of the state's forecaster.

    Returns:
        (N,) records/s, a view, N maybe 0; NaN where one is missing.

    Raises:
        OnlineError: the history has other steps, ends before the state's time, begins after it, or has no step border
            within a thousandth of a step of it.
    """
    if not len(history):
        return history.values
    position = (state.time - history.start) / history.step_s
    at = round(position)
    if history.step_s != step_s or abs(position - at) > _GRAIN or not 0 <= at <= len(history):
        raise OnlineError(
            f"the state is of time {state.time:.3f} in steps of {step_s:g} s, the history from {history.start:.3f} to "
            f"{history.end:.3f} in steps of {history.step_s:g} s. Give the samples that led to this state."
        )
    return history.values[at:]


def _made_by(forecaster: Forecaster) -> list[Any]:
    return [forecaster.kind, forecaster.step_s, forecaster.horizon, list(forecaster.levels)]


@cache
def _reader(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    return msgspec.msgpack.Decoder(kind, dec_hook=_array)


def _plain(part: Any) -> Any:
    if isinstance(part, np.ndarray):
        return [part.dtype.str, part.shape, part.tobytes()]
    if isinstance(part, np.generic):
        return part.item()
    raise NotImplementedError(type(part))


def _array(_: type, written: Any) -> NDArray[Any]:
    kind, shape, raw = written
    return np.frombuffer(bytearray(raw), dtype=kind).reshape(shape)
