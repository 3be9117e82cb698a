"""What a job has written: its counts, once no more come, and the numbers of records between its queries."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

from configs.settings import Settings
from pipelines.jobs.chains.truth import Counts, newest_counts, read_count, wrong_keys
from pipelines.kafka.broker import topic_offsets
from pipelines.kafka.committed import read_committed

COUNTED_S, QUIET_S, ASK_S = 420.0, 15.0, 0.5
"""Seconds for the last counts, without a further count after which they are read, and between two looks."""


def await_counts(live: Settings, topic: str, truth: Counts) -> tuple[list[float], set[str]]:
    """Return when counts were written, and those that are not what the records come to once no more come.

    Args:
        live: with the broker.
        topic: of the counts.
        truth: what they should be.

    Raises:
        BrokerError: the broker does not answer.
    """
    until = time.monotonic() + COUNTED_S
    while True:
        _quiet(live, topic, until)
        read = [(one.at_s, *read_count(one.key, one.value)) for one in read_committed(live.kafka, topic)]
        wrong = wrong_keys(newest_counts((key, n, total) for _, key, n, total in read), truth)
        if not wrong or time.monotonic() > until:
            return [at_s for at_s, *_ in read], wrong


def read_numbers(live: Settings, topic: str) -> Iterator[int]:
    """Yield the numbers (`seq`) of a topic's committed records.

    Raises:
        BrokerError: the broker does not answer.
    """
    return (json.loads(one.value or b"{}")["seq"] for one in read_committed(live.kafka, topic))


def _quiet(live: Settings, topic: str, until: float) -> None:
    """Wait until no further count has come for a while."""
    known, since = topic_offsets(live.kafka, topic), time.monotonic()
    while time.monotonic() - since < QUIET_S and time.monotonic() < until:
        time.sleep(ASK_S)
        if (found := topic_offsets(live.kafka, topic)) != known:
            known, since = found, time.monotonic()
