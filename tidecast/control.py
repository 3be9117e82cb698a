"""The compacted topic `control`: the latest mode and the latest replay clock for every agent."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tidecast.fields import job_name
from tidecast.messages import Control, encode

TOPIC = "control"
SEND_S = 10.0  # timeout to connect, and again to send, seconds


def mode_key(job: str) -> str:
    """Return the key on topic `control` of a job's latest mode, `<job>:mode`."""
    return f"{job}:mode"


def clock_key(job: str) -> str:
    """Return the key on topic `control` of a job's latest clock, `<job>:clock`."""
    return f"{job}:clock"


def set_mode(
    bootstrap: str, job: str, mode: str, security: Mapping[str, Any] | None = None, prefix: str = "",
    signing_key: str | None = None, by: str | None = None,
) -> Control:  # fmt: skip
    """Publish the mode that a job's agent is to be in; agents that attach later follow it too.

    It cannot widen the mode that an agent was attached with. Blocks until the broker has the message: at most 10 s to
    connect, 10 s to find the topic and 10 s for the acknowledgement.

    Args:
        bootstrap: Kafka broker of Tidecast's topics, `host:port`.
        job: name of the job; whether it runs is not checked.
        mode: "observe" (change nothing), "act" (apply decisions) or "freeze" (keep the number of executors).
        security: client options under kafka-python's names.
        prefix: of the names of Tidecast's topics.
        signing_key: the job's, where its agent has one; of several, separated by commas, the first one signs.
        by: login of who gives it, for those who ask later; None: not said.

    Returns:
        The message that the broker has. An agent refuses it where this computer's clock is over 300 s ahead of its own.

    Raises:
        ValueError: no such mode, no valid job name (`MessageError`), a security option that is unknown or has no such
            value, or a signing key that is too short.
        ConnectionError: the broker cannot be reached (`UnreachableError`), does not take the message, or has not
            acknowledged it in time: it may have it all the same, and gets it no later.
    """
    from kafka.errors import KafkaError, KafkaTimeoutError, RetriableError

    from tidecast.connection.signing import HEADER, SigningKeys
    from tidecast.connection.transport import producer

    if mode not in Control.MODES:
        raise ValueError(f"mode={mode!r}: one of {', '.join(Control.MODES)} is expected")
    message, timeout_ms = Control(job_name(job), time.time(), mode=mode, by=by), int(SEND_S * 1000)
    key, topic, value = mode_key(job), prefix + TOPIC, encode(message)
    headers = [(HEADER, SigningKeys.read(signing_key).sign(topic, key, value))] if signing_key is not None else []
    try:
        client = producer(
            bootstrap, security, bootstrap_timeout_ms=timeout_ms, max_block_ms=timeout_ms,
            request_timeout_ms=timeout_ms // 2, delivery_timeout_ms=timeout_ms,
        )  # fmt: skip
        try:
            sent = client.send(topic, key=key.encode(), value=value, headers=headers)
            with suppress(RetriableError):  # which says nothing of whether the broker has it
                sent.get(timeout=SEND_S + 1)  # until the client has given it up
                return message
        finally:
            with suppress(KafkaTimeoutError):
                client.close(timeout=1)
    except KafkaError as error:
        raise ConnectionError(
            f"topic {topic!r} at {bootstrap} did not take {key}: {error!r}. Is it there? `tidecast autoscale` creates "
            "it."
        ) from None
    raise ConnectionError(
        f"topic {topic!r} at {bootstrap} has not acknowledged {key} within {SEND_S:g} s: whether it holds is not "
        f"known; `tidecast job show {job}` says."
    )


@dataclass(frozen=True)
class Clock:
    """Job time as a function of wall time, both epoch seconds: `trace_start + (wall - wall_start) * scale`.

    `scale` is how many job seconds pass in one wall second.
    """

    wall_start: float = 0.0
    trace_start: float = 0.0
    scale: float = 1.0

    def at(self, wall: float) -> float:
        """Convert wall time to job time, both in epoch seconds."""
        return self.trace_start + (wall - self.wall_start) * self.scale

    def wall_at(self, job_time: float) -> float:
        """Convert job time to wall time, both in epoch seconds."""
        return self.wall_start + (job_time - self.trace_start) / self.scale


WALL = Clock()
"""Job time is wall time."""


def clock_of(control: Control) -> Clock | None:
    """Return the clock in a control message; None if it lacks `wall_start`, `trace_start` or `time_scale`."""
    if control.wall_start is None or control.trace_start is None or not control.time_scale:
        return None
    return Clock(control.wall_start, control.trace_start, control.time_scale)
