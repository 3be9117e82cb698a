"""A record of `metrics` decoded within microseconds; an unusual one is left to `tidecast.messages.decode`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from tidecast.fields import Bounds, Field, Matching, fields_of
from tidecast.messages import SCHEMA, MetricSample, decode
from tidecast.wire import RECORD_MOST, check_key, check_times

_ALWAYS_THERE = {"interval": {"time_scale", "span_s", "arrival_rps"}, "batch": {"time_scale", "span_s"}}
"""Fields that a usual sample of a kind has; one without them is left to the slow reader."""


def read_sample(raw: bytes, now: float, key: str | None = None) -> MetricSample:
    """Decode and validate one metrics message; as `tidecast.messages.decode`, but faster for the usual ones.

    Args:
        raw: the message, JSON.
        now: wall time, epoch seconds, against which the times in it are checked.
        key: of the Kafka record, which must be the job's name; None for a sample that came by socket.

    Raises:
        MessageError: no valid sample, a time more than 300 s in the future, or the key is not the job.
    """
    sample = _quick(raw, now) or decode(MetricSample, raw, now)
    if key is not None:
        check_key(key, sample)
    return sample


def fields_by_name(message: Any) -> dict[str, Any]:
    """Return the fields of a message by name; also of a sample that `read_sample` read."""
    return msgspec.structs.asdict(message) if isinstance(message, msgspec.Struct) else dict(vars(message))


def _quick(raw: bytes, now: float) -> MetricSample | None:
    """Decode a plain interval or batch; None for every other record, which `decode` then reads or refuses."""
    if len(raw) > RECORD_MOST:
        return None
    for decoder in _DECODERS:
        try:
            quick: Any = decoder.decode(raw)
            break
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):  # the last one of text that is no UTF-8
            continue
    else:
        return None
    values = msgspec.structs.astuple(quick)
    # A name that stands twice adds a colon and no value. So does a null, but agents of this version write none.
    if raw.count(b":") != len(values) - values.count(None):
        return None
    check_times(quick, now)
    sample: MetricSample = quick
    return sample


def _quick_field(one: Field, kind: str) -> tuple[Any, ...]:
    """The field of a sample as msgspec has it: its type and limits, and what stands for it where it is missing."""
    if one.name == "kind":
        return one.name, Literal[kind]
    if one.name == "schema":
        return one.name, Literal[SCHEMA]
    hint = one.kind
    if isinstance(one.limits, Bounds):
        least, most, above = one.limits
        hint = Annotated[hint, msgspec.Meta(gt=least, le=most) if above else msgspec.Meta(ge=least, le=most)]
    elif isinstance(one.limits, Matching):
        hint = Annotated[hint, msgspec.Meta(pattern=rf"\A{one.limits.pattern.pattern}\Z")]
    if one.name in _ALWAYS_THERE[kind] or one.default is None:
        return one.name, hint
    return one.name, hint | None, one.default()


_DECODERS = [
    msgspec.json.Decoder(
        msgspec.defstruct(
            f"Quick{kind.capitalize()}", [_quick_field(one, kind) for one in fields_of(MetricSample)], frozen=True,
            forbid_unknown_fields=True, kw_only=True,
        )
    )
    for kind in _ALWAYS_THERE
]  # fmt: skip
