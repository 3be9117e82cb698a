"""Words to a running agent on the compacted topic `control`: their keys, and how its mode is set."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from tidecast.connection.transport import producer
from tidecast.fields import job_name
from tidecast.messages import Control, encode

TOPIC = "control"
SEND_S = 10.0


def mode_key(job: str) -> str:
    """Key under which a job's newest mode is kept."""
    return f"{job}:mode"


def clock_key(job: str) -> str:
    """Key under which a job's newest clock is kept."""
    return f"{job}:clock"


def set_mode(bootstrap: str, job: str, mode: str, security: Mapping[str, Any] | None = None, prefix: str = "") -> None:
    """Switch an agent to `observe`, `freeze` or `act`, at most to what it was attached with; later agents obey it too.

    Raises:
        ValueError: no such mode.
        ConnectionError: the broker did not take the message within 10 s.
    """
    from kafka.errors import KafkaError

    if mode not in Control.MODES:
        raise ValueError(f"mode={mode!r}: one of {', '.join(Control.MODES)} is expected")
    word, patience_ms = Control(job_name(job), time.time(), mode=mode), int(SEND_S * 1000)
    key, topic = mode_key(job), prefix + TOPIC
    try:
        client = producer(bootstrap, security, bootstrap_timeout_ms=patience_ms, max_block_ms=patience_ms)
        try:
            client.send(topic, key=key.encode(), value=encode(word)).get(timeout=SEND_S)
        finally:
            client.close(timeout=1)
    except KafkaError as error:
        raise ConnectionError(f"topic {topic!r} at {bootstrap} did not take {key}: {error!r}. Is it there?") from None
