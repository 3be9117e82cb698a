"""How a job's own time follows from wall time, as announced on the topic `control`; and a wall clock that is behind."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from configs.sections import Kafka
from pipelines.kafka.broker import Record, read_records
from pipelines.kafka.connection import BrokerError
from pipelines.kafka.signing import Signer
from tidecast.control import Clock, clock_key, clock_of
from tidecast.messages import Control, MessageError, decode
from tidecast.wire import FUTURE_S

LONGEST_S, LOOK_S = 120.0, 0.5
"""Seconds that a clock is waited for at most, and between two looks."""


def read_clock(kafka: Kafka, job: str) -> Clock | None:
    """Return how a job's time follows from wall time, as announced last; None where nothing was: it is wall time.

    Of a job with a signing key what is not signed counts for nothing.

    Raises:
        BrokerError, ValueError: the topic cannot be read; an unknown security option.
    """
    clock, signer = None, Signer.of(kafka)
    for record in read_records(kafka, "control"):
        clock = announced_clock(job, record, signer) or clock
    return clock


def announced_clock(job: str, record: Record, signer: Signer) -> Clock | None:
    """Return the clock that a record of `control` announces for a job; None for all else, and where it is unsigned."""
    if record.key != clock_key(job):
        return None
    try:
        signer.check_record(record, job)
        return clock_of(decode(Control, record.value))
    except MessageError:
        return None


def wait_while_behind(
    kafka: Kafka, now_s: Callable[[], float], stop: threading.Event, topic: str = "metrics", newest: int | None = 1
) -> None:  # fmt: skip
    """Wait while records of a topic are further ahead of a clock than messages may be, LONGEST_S (120 s) at most.

    For whoever sees that its own clock was set back: what it reads meanwhile it would refuse, and never see again.

    Args:
        kafka: the broker; while it does not answer nothing is waited for.
        now_s: the clock, epoch seconds.
        stop: ends the wait.
        topic: name without the prefix.
        newest: how many records of each partition are looked at; None: all.
    """
    until_s = time.monotonic() + LONGEST_S
    try:
        while time.monotonic() < until_s and not stop.is_set():
            latest_s = max((record.timestamp for record in read_records(kafka, topic, newest)), default=-math.inf)
            if latest_s <= now_s() + FUTURE_S or stop.wait(LOOK_S):
                break
    except BrokerError:
        return
