"""A record of `metrics` decoded within microseconds; an unusual one is left to `tidecast.messages.decode`."""

from __future__ import annotations

from typing import Any

import msgspec

from pipelines.serve.step.usual import decode_usual, usual_decoder
from tidecast.messages import MetricSample, decode
from tidecast.wire import check_key, check_times


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
    for decoder in _DECODERS:
        sample: MetricSample | None = decode_usual(decoder, raw)
        if sample is not None:
            check_times(sample, now)
            return sample
    return None


_DECODERS = [usual_decoder(MetricSample, {"arrival_rps"}, kind="interval"), usual_decoder(MetricSample, kind="batch")]
