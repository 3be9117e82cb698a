"""Words to a running agent on the compacted topic `control`: its mode, and the clock of a replay."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from tidecast.clock import Clock
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
    if mode not in Control.MODES:
        raise ValueError(f"mode={mode!r}: one of {', '.join(Control.MODES)} is expected")
    _send(bootstrap, mode_key(job), Control(job_name(job), time.time(), mode=mode), security, prefix)


def set_clock(
    bootstrap: str, job: str, clock: Clock | None, security: Mapping[str, Any] | None = None, prefix: str = ""
) -> None:
    """Announce a replay's clock to an agent attached with `clock=None`; None withdraws it, and the agent waits again.

    Raises:
        ConnectionError: the broker did not take the message within 10 s.
    """
    announced = () if clock is None else (None, clock.wall_start, clock.trace_start, clock.scale)
    _send(bootstrap, clock_key(job), Control(job_name(job), time.time(), *announced), security, prefix)


def _send(bootstrap: str, key: str, word: Control, security: Mapping[str, Any] | None, prefix: str) -> None:
    from kafka.errors import KafkaError

    try:
        client = producer(bootstrap, security, bootstrap_timeout_ms=int(SEND_S * 1000), max_block_ms=int(SEND_S * 1000))
        try:
            client.send(prefix + TOPIC, key=key.encode(), value=encode(word)).get(timeout=SEND_S)
        finally:
            client.close(timeout=1)
    except KafkaError as error:
        raise ConnectionError(
            f"topic {prefix + TOPIC!r} at {bootstrap} did not take {key}: {error!r}. Is it there?"
        ) from None
