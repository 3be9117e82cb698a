"""A record of `metrics` read within a microsecond; whatever is odd about it is left to the messages' own reader."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from typing import Annotated, Any

import msgspec

from tidecast.messages import FUTURE_S, SCHEMA, MessageError, MetricSample, decode

END_S = 253_402_300_800.0
"""End of the year 9999. Times of floats beyond a few thousand of these no longer tell one second from the next."""
LAG_MOST = (1 << 63) - 1
"""What a lag may be at most: more is no whole number of the store's encoding."""


def read_sample(raw: bytes, now: float) -> MetricSample:
    """The sample in a record, as `tidecast.messages.decode` has it, at a twentieth of its time.

    Args:
        raw: JSON.
        now: wall time; a record from the far future is refused.

    Raises:
        MessageError: as `decode`; also times before 1970 or after 9999, job time far ahead where the job's clock is
            the wall's, and a lag that no store could keep.
    """
    try:
        quick: Any = _QUICK.decode(raw)
    except msgspec.MsgspecError:  # a rare record: what is wrong with it is worded in one place
        return _storable(decode(MetricSample, raw, now), now)
    if quick.kind == "interval" and _plain(quick) and quick.wall_time <= now + FUTURE_S:
        return _storable(quick, now)
    return _storable(decode(MetricSample, raw, now), now)


def _plain(quick: Any) -> bool:
    """Whether nothing is left for the slow reader to object to."""
    finite = math.isfinite(quick.time + quick.wall_time + quick.span_s + quick.time_scale)
    return (
        finite
        and quick.schema == SCHEMA
        and quick.span_s > 0
        and quick.time_scale > 0
        and quick.arrival_rps is not None
        and math.isfinite(quick.arrival_rps)
    )


def _storable(sample: MetricSample, now: float) -> MetricSample:
    if min(sample.time, sample.wall_time) < 0:
        raise MessageError(f"time={sample.time}, wall_time={sample.wall_time}: times after 1970 are expected")
    if sample.time + sample.span_s > END_S:
        raise MessageError(f"time={sample.time}, span_s={sample.span_s}: times before the year 10000 are expected")
    if sample.lag_records is not None and sample.lag_records > LAG_MOST:
        raise MessageError(f"lag_records of {sample.lag_records.bit_length()} bits: at most 2^63 - 1 is expected")
    ahead = sample.time - now
    if sample.time_scale == 1 and ahead > FUTURE_S:
        raise MessageError(f"time={sample.time} is {ahead:.0f} s ahead of the reader; set the sender's clock")
    return sample


def _quick_type() -> type[msgspec.Struct]:
    """`MetricSample` as a msgspec struct: the same fields, types, defaults and least values."""
    hints = typing.get_type_hints(MetricSample)
    fields: list[Any] = []
    for spec in dataclasses.fields(MetricSample):
        hint, least = hints[spec.name], spec.metadata.get("least")
        if least is not None:
            kinds = [Annotated[t, msgspec.Meta(ge=least)] for t in typing.get_args(hint) if t is not types.NoneType]
            hint = kinds[0] | None
        given = spec.default is not dataclasses.MISSING and spec.name != "schema"  # which a record must say itself
        default = (spec.default,) if given else ()
        fields.append((spec.name, hint, *default))
    return msgspec.defstruct("QuickSample", fields, frozen=True, forbid_unknown_fields=True, kw_only=True)


_QUICK = msgspec.json.Decoder(_quick_type())
