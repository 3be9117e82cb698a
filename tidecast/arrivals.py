"""The thread that polls the broker: end offsets twice a second, one `interval` metric a second."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any

from tidecast.connection.transport import consumer
from tidecast.job import Job
from tidecast.spark.sensors import OffsetCurve, Offsets, count_arrived, lag_records
from tidecast.spark.set_back import WatchedClock

log = logging.getLogger("tidecast")

SAMPLE_S = 0.5  # seconds between two samples
PUBLISH_S = 1.0  # seconds that an interval metric covers, about
ANSWER_MS = 5000  # timeout of one offset look-up, ms
REDISCOVER_S = 10.0  # seconds between two searches for new partitions
PAST_S = tuple(2.0**i for i in range(18))
"""Ages, seconds, at which a topic's past offsets are looked up once, so that waiting records have a latency too."""
PAST_AGAIN_S = 600.0  # longest wait before a look-up of the past that failed is repeated, seconds


class Arrivals:
    """Measures arrival rate and lag of a job at the broker that its query reads; call `sample` every SAMPLE_S."""

    def __init__(self, job: Job, bootstrap: str, security: Mapping[str, Any]) -> None:
        self._job, self._bootstrap, self._security = job, bootstrap, security
        self._client: Any = None
        self._partitions: list[Any] = []
        self._looked_back: set[Any] = set()
        self._discovered = -REDISCOVER_S
        self._past_at = self._past_wait_s = 0.0
        self._published: tuple[float, Offsets] | None = None
        self._clock = WatchedClock()

    def sample(self) -> None:
        """Read the topics' end offsets into `job.curves` and `job.ends`; once a second also queue an interval metric.

        That metric holds arrivals (records per wall second) and lag (records). Connects at the first call (waits up to
        10 s) and looks for new partitions every REDISCOVER_S (10 s); of a new one the end offsets of 1 s to 36 h ago
        are read too; where the broker does not tell them, it is asked again after 10, 20, 40 s and so on, at last
        every PAST_AGAIN_S (600 s). Does nothing while the job's topics are unknown; queues no metric before the job's
        clock has begun. After an outage one interval spans it.

        Raises:
            UnreachableError: the broker cannot be connected to; the message says why.
            LookupError: a topic is not on the broker, or may not be seen.
            kafka.errors.KafkaError: an offset look-up failed or took over ANSWER_MS (5 s).
            ValueError: a security option is unknown or has no such value.
        """
        if not self._job.topics:
            return  # they come with the first batch's progress, if the query reads Kafka at all
        if self._client is None:
            client_id = f"tidecast-{self._job.name}-arrivals"
            search = {"metadata_max_age_ms": int(REDISCOVER_S * 1000)}  # it asks the broker no more often by itself
            self._client = consumer(self._bootstrap, self._security, client_id=client_id, **search)
        if time.monotonic() - self._discovered > REDISCOVER_S:
            self._discover()
        requested_at = time.time()
        answer = self._client.end_offsets(self._partitions, timeout_ms=ANSWER_MS)
        sampled_at = (requested_at + time.time()) / 2
        ends = {(p.topic, p.partition): end for p, end in answer.items()}
        with self._job.lock:
            for partition, end in ends.items():
                self._job.curves.setdefault(partition, OffsetCurve()).add(sampled_at, end)
            self._job.ends = ends
        self._publish(sampled_at, ends)

    def close(self) -> None:
        """Close the Kafka client if there is one; waits up to 1 s."""
        if self._client is not None:
            self._client.close(timeout_ms=1000)

    def _publish(self, wall: float, ends: Offsets) -> None:
        job, last = self._job, None if self._clock.set_by_s() else self._published
        if last is not None and 0 <= wall - last[0] < PUBLISH_S - SAMPLE_S / 2:
            return
        self._published = wall, ends
        if last is None or wall <= last[0] or job.clock is None or last[0] < job.clock.wall_start:
            return  # the clock was set, or a replay that has not begun has no time of its own
        # After an outage the interval spans it whole: nothing that arrived is left out.
        since, before = last
        rate = count_arrived(before, ends) / (wall - since)
        job.publish("interval", since, wall, wall, arrival_rps=rate, lag_records=lag_records(ends, job.committed))

    def _discover(self) -> None:
        from kafka import TopicPartition

        found = {topic: self._client.partitions_for_topic(topic) for topic in self._job.topics}
        if missing := [topic for topic, numbers in found.items() if not numbers]:
            raise LookupError(
                f"topic {missing[0]!r}, which the query reads, is not on the broker at {self._bootstrap}, or may not "
                "be seen: give its user the right Describe; source_bootstrap= of attach names another broker"
            )
        self._partitions = [TopicPartition(topic, p) for topic, numbers in found.items() for p in sorted(numbers)]
        self._discovered = time.monotonic()
        new = [part for part in self._partitions if part not in self._looked_back]
        if new and self._discovered >= self._past_at:
            self._look_back(new)

    def _look_back(self, partitions: list[Any]) -> None:
        """Read the topics' past; where the broker does not tell it, samples go on without, and it is asked later."""
        from kafka.errors import KafkaError

        try:
            self._read_past(partitions)
        except KafkaError as error:
            if not self._past_wait_s:
                words = (
                    "%s: the broker does not tell the past of %s, so the latency of records that wait is unknown: %r"
                )
                log.warning(words, self._job.name, ", ".join(sorted({p.topic for p in partitions})), error)
            self._past_wait_s = min(2 * self._past_wait_s or REDISCOVER_S, PAST_AGAIN_S)
            self._past_at = time.monotonic() + self._past_wait_s
        else:
            self._looked_back |= {*partitions}
            self._past_wait_s = 0.0

    def _read_past(self, partitions: list[Any]) -> None:
        """Where the topics' ends were at some moments of the past, by the records' own timestamps."""
        now = time.time()
        ends = self._client.end_offsets(partitions, timeout_ms=ANSWER_MS)
        for age in PAST_S:
            asked = {p: int((now - age) * 1000) for p in partitions}
            found = self._client.offsets_for_times(asked, timeout_ms=ANSWER_MS)
            with self._job.lock:
                for p, at in found.items():
                    curve = self._job.curves.setdefault((p.topic, p.partition), OffsetCurve())
                    curve.add_past(now - age, ends[p] if at is None else at.offset)
