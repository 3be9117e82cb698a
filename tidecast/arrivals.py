"""The thread that polls the broker: end offsets twice a second, one `interval` metric a second."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from tidecast.connection.transport import consumer
from tidecast.job import Job
from tidecast.spark.sensors import OffsetCurve, Offsets, count_arrived, lag_records
from tidecast.spark.set_back import WatchedClock

SAMPLE_S = 0.5  # seconds between two samples
PUBLISH_S = 1.0  # seconds that an interval metric covers, about
ANSWER_MS = 5000  # timeout of one offset look-up, ms
REDISCOVER_S = 10.0  # seconds between two searches for new partitions
PAST_S = tuple(2.0**i for i in range(17, -1, -1))
"""Ages, seconds, at which a topic's past offsets are looked up once, so that waiting records have a latency too."""


class Arrivals:
    """Measures arrival rate and lag of a job at the broker that its query reads; call `sample` every SAMPLE_S."""

    def __init__(self, job: Job, bootstrap: str, security: Mapping[str, Any]) -> None:
        self._job, self._bootstrap, self._security = job, bootstrap, security
        self._client: Any = None
        self._partitions: list[Any] = []
        self._looked_back: set[Any] = set()
        self._discovered = -REDISCOVER_S
        self._published: tuple[float, Offsets] | None = None
        self._clock = WatchedClock()

    def sample(self) -> None:
        """Read the topics' end offsets into `job.curves` and `job.ends`; once a second also queue an interval metric.

        That metric holds arrivals (records per wall second) and lag (records). Connects at the first call (waits up to
        10 s) and looks for new partitions every REDISCOVER_S (10 s); of a new one the end offsets of 1 s to 36 h ago
        are read too, with each search until the broker has told them. Does nothing while the job's topics are unknown;
        queues no metric before the job's clock has begun. After an outage one interval spans it.

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
        if new := [part for part in self._partitions if part not in self._looked_back]:
            self._look_back(new)
            self._looked_back |= {*new}  # only now: where the broker did not answer, the next search repeats it

    def _look_back(self, partitions: list[Any]) -> None:
        """Where the topics' ends were at some moments of the past, by the records' own timestamps."""
        now = time.time()
        ends = self._client.end_offsets(partitions, timeout_ms=ANSWER_MS)
        for age in PAST_S:
            asked = {p: int((now - age) * 1000) for p in partitions}
            found = self._client.offsets_for_times(asked, timeout_ms=ANSWER_MS)
            with self._job.lock:
                for p, at in found.items():
                    curve = self._job.curves.setdefault((p.topic, p.partition), OffsetCurve())
                    curve.add(now - age, ends[p] if at is None else at.offset)
