"""Records as the autoscaler receives them; usual metrics, forecasts and heartbeats are decoded within microseconds."""

from __future__ import annotations

from typing import Any

import msgspec

from pipelines.serve.step.samples import read_sample
from pipelines.serve.step.usual import decode_usual, usual_decoder
from tidecast.messages import Decision, Forecast, Heartbeat, Outcome, decode_keyed
from tidecast.orders import ReplayProgress
from tidecast.wire import check_key, check_times

_KINDS = dict(forecasts=Forecast, heartbeats=Heartbeat, outcomes=Outcome, replays=ReplayProgress, decisions=Decision)


def read_record(row: dict[str, Any], job: str, now: float) -> Any:
    """Decode and validate one record of a job as `tidecast.messages.decode_keyed` does; metrics as `read_sample`.

    Args:
        row: its "topic" (without prefix; metrics, forecasts, heartbeats, outcomes, replays or decisions) and "value"
            (bytes, or None).
        job: its key.
        now: wall time, epoch seconds, against which the times in it are checked.

    Raises:
        MessageError: the record is refused.
        KeyError: it is of another topic, or the row lacks a column.
    """
    topic, raw = row["topic"], row["value"] or b""
    if topic == "metrics":
        return read_sample(raw, now, job)
    kind: Any = _KINDS[topic]
    usual = decode_usual(_DECODERS[topic], raw) if topic in _DECODERS else None
    if usual is None:
        return decode_keyed(kind, job, raw, now)
    message = kind(**msgspec.structs.asdict(usual))
    if isinstance(message, Forecast):
        message.check()
    check_times(message, now)
    check_key(job, message)
    return message


_DECODERS = {"forecasts": usual_decoder(Forecast), "heartbeats": usual_decoder(Heartbeat)}
