"""The live records of a session, sent when they are due, with what is forecast of them; and older ones to replay."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from configs.sections import Kafka
from models.twin.experiment.foresight import IssuedForecasts
from pipelines.bench.backfill.loads import KEYS, PARTITIONS, Floats, Integers, LiveRecords
from pipelines.kafka.broker import topic_offsets
from pipelines.kafka.publisher import Publisher
from tidecast.messages import Forecast, Heartbeat, Message

TICK_S, LINGER_MS, BEAT_S = 0.05, 20, 5.0
NEW, RETRACTION = b"{}", b"-"
"""Values of records; a retraction has the time of the record that it takes back."""
_ACKNOWLEDGE_S = 30.0


Due = tuple[float, Callable[[float], tuple[str, str, Message]]]
"""Seconds since a load begins, and what then makes topic, key and message, given the epoch seconds."""


class SentRecords(NamedTuple):
    """Live records that were acknowledged, arrays of (N,): partition, offset, and epoch seconds of production."""

    partition: Integers
    offset: Integers
    produced_at: Floats


class LiveProducer:
    """Sends warming records from the start on, and a load's records and messages from `begin` on."""

    def __init__(self, kafka: Kafka, warm_rps: float) -> None:
        self._publisher, self._over = _publisher(kafka), threading.Event()
        self._warm_rps = warm_rps
        self._load: tuple[float, LiveRecords, list[Due]] | None = None
        self._stamp_s: Floats | None = None
        self._sent: list[tuple[int, float, Any]] = []
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="live records", daemon=True)
        self._thread.start()

    def begin(
        self, arrivals: LiveRecords, began: float, messages: Sequence[Due] = (), stamp_s: Floats | None = None
    ) -> None:  # fmt: skip
        """Begin with a load at an epoch second; until it comes nothing is sent.

        Args:
            arrivals: its records.
            began: the second.
            messages: in between.
            stamp_s: (N,) the records' own times since then; None: those at which they are sent.
        """
        self._stamp_s = stamp_s
        self._load = began, arrivals, sorted(messages, key=lambda one: one[0])

    def check(self) -> None:
        """Raise what the sending thread has met."""
        if self._failure is not None:
            raise self._failure

    def stop(self) -> SentRecords:
        """End the load and return its records; those of the warm-up are left out.

        Raises:
            BrokerError: a record was not acknowledged.
        """
        self.close()
        self.check()
        taken = [(part, future.value.offset, at) for part, at, future in self._sent if _acknowledged(future)]
        columns = list(zip(*taken, strict=True)) or [(), (), ()]
        return SentRecords(np.array(columns[0], np.int64), np.array(columns[1], np.int64), np.array(columns[2], float))

    def close(self) -> None:
        """End the load; a second call does nothing."""
        if not self._over.is_set():
            self._over.set()
            self._thread.join(10)
            self._publisher.close()

    def _run(self) -> None:
        try:
            started, number, said = time.time(), 0, 0
            while not self._over.wait(TICK_S):
                now = time.time()
                if self._load is None:
                    while number < (now - started) * self._warm_rps:
                        self._send(number % KEYS, number % PARTITIONS, now)
                        number += 1
                    continue
                began, arrivals, messages = self._load
                due = int(np.searchsorted(arrivals.at_s, now - began, side="right"))
                for i in range(len(self._sent), due):
                    at, taken = time.time(), int(arrivals.takes_back[i])
                    stamp, value = (at, NEW) if taken < 0 else (self._sent[taken][1], RETRACTION)
                    if self._stamp_s is not None:
                        stamp = began + float(self._stamp_s[i])
                    partition = int(arrivals.partition[i])
                    self._sent.append((partition, at, self._send(int(arrivals.key[i]), partition, stamp, value)))
                while said < len(messages) and messages[said][0] <= now - began:
                    self._publisher.send(*messages[said][1](now))
                    said += 1
        except Exception as error:  # told to whoever waits for the session
            self._failure = error

    def _send(self, key: int, partition: int, stamp: float, value: bytes = NEW) -> Any:
        return self._publisher.send_bytes("events", name_of(key), value, partition=partition, timestamp_s=stamp)


@contextmanager
def producing(kafka: Kafka, warm_rps: float) -> Iterator[LiveProducer]:
    """Context manager: live records are sent until its end, at first so many a second.

    Raises:
        BrokerError: the broker does not answer.
    """
    producer = LiveProducer(kafka, warm_rps)
    try:
        yield producer
    finally:
        producer.close()


def fill_range(kafka: Kafka, records: int, seed: int) -> tuple[dict[str, int], dict[str, int]]:
    """Send records to be replayed; return first offset and the one after the last, by partition.

    Raises:
        BrokerError: the broker does not take them.
    """
    before = topic_offsets(kafka, "events")
    keys = np.random.default_rng(seed).integers(KEYS, size=records).tolist()
    publisher = _publisher(kafka)
    try:
        for number, key in enumerate(keys):
            publisher.send_bytes("events", name_of(key), NEW, partition=number % PARTITIONS)
    finally:
        publisher.close()
    after = topic_offsets(kafka, "events")
    first, past = ({str(part): ends[1] for part, ends in places.items()} for places in (before, after))
    return first, past


def _publisher(kafka: Kafka) -> Publisher:
    """Idempotent: records are counted, and one that came twice would be one too many."""
    return Publisher(kafka, linger_ms=LINGER_MS, enable_idempotence=True)


def forecast_messages(job: str, issued: IssuedForecasts, began: float, seconds: float) -> list[Due]:
    """Return what a server of forecasts would send while a load lasts: each forecast in its time, and signs of life."""
    epoch = int(began * 1000)

    def forecast(number: int) -> Callable[[float], tuple[str, str, Message]]:
        return lambda now: ("forecasts", job, Forecast(
            job, began + number * issued.step_s, now, 1.0, issued.step_s, list(issued.levels),
            issued.quantiles[number].tolist(), "blend", "bench", "bench", "blend", number, epoch,
            last_rps=float(issued.last[number]),
        ))  # fmt: skip

    def beat(now: float) -> tuple[str, str, Message]:
        return "heartbeats", job, Heartbeat(job, "serving", now, now, 1.0, standing=str(epoch))

    count = min(len(issued.quantiles), int(seconds // issued.step_s) + 1)
    told = [(number * issued.step_s, forecast(number)) for number in range(count)]
    return [*told, *((at, beat) for at in np.arange(BEAT_S, seconds, BEAT_S).tolist())]


def name_of(key: int) -> bytes:
    """Return the key of a record, as it is sent."""
    return b"key-%03d" % key


def _acknowledged(future: Any) -> bool:
    deadline = time.monotonic() + _ACKNOWLEDGE_S
    while not future.is_done and time.monotonic() < deadline:
        time.sleep(TICK_S)
    return bool(future.is_done and future.succeeded())
