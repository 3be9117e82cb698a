"""What a job's agent makes of a mode that a person has given it."""

from __future__ import annotations

import time
from contextlib import closing

from configs.errors import CorrectableError
from configs.sections import Kafka
from pipelines.kafka.broker import Follower, Record
from pipelines.kafka.connection import BrokerError
from tidecast.messages import REPEATED, Control, MessageError, MetricSample, Reject, decode, encode

ANSWER_S = 5.0
"""Seconds within which an agent answers that runs and reaches the broker: it measures each second."""
NEWEST = {"rejects": 500, "metrics": 0}


class RefusedModeError(CorrectableError, RuntimeError):
    """A job's agent has refused the mode, and stays in the one that it was in; the message repeats why."""


def await_answer(kafka: Kafka, word: Control) -> str:
    """Wait for what a job's agent makes of a mode, ANSWER_S (5 s) and the time to connect at most.

    Args:
        kafka: the broker.
        word: that the broker has acknowledged just now.

    Returns:
        "" where its metrics say that it is in this mode; else what is known instead, in words.

    Raises:
        RefusedModeError: it has put the word on the topic `rejects`, e.g. for the sender's clock or its signature.
    """
    value, seen = encode(word).decode()[:REPEATED], ""
    try:
        with closing(Follower(kafka, [*NEWEST])) as follower:
            follower.seek_to_newest(NEWEST)
            until = time.monotonic() + ANSWER_S
            while seen != word.mode and time.monotonic() < until:
                for record in follower.poll(0.2):
                    seen = _mode(record, word.job, value) or seen
    except BrokerError as error:  # the word is sent all the same
        return f"whether its agent obeys is not known: {error}"
    if seen == word.mode:
        return ""
    if not seen:
        return (
            f"no sign of its agent for {ANSWER_S:g} s: it obeys once it is attached. See `tidecast job show {word.job}`"
        )
    return (
        f"its agent is in mode {seen} still after {ANSWER_S:g} s: it goes at most to that of its attach; "
        "its driver's log (logger `tidecast`) says what else keeps it"
    )


def _mode(record: Record, job: str, value: str) -> str | None:
    """The mode that an agent's metrics name; None where a record names none."""
    try:
        if record.topic == "metrics":
            sample = decode(MetricSample, record.value) if record.key == job else None
            return sample.mode if sample is not None else None
        reject = decode(Reject, record.value)
    except MessageError:
        return None
    if reject.topic == "control" and reject.value == value:
        raise RefusedModeError(f"the {reject.by} refuses the mode, and stays in its own: {reject.reason}")
    return None
