"""The thread that asks the broker: end offsets twice a second, one `interval` metric a second."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any

from tidecast.connection.transport import consumer
from tidecast.job import Job
from tidecast.messages import MetricSample
from tidecast.spark.sensors import Curve, Offsets, Partition, arrived, lag

log = logging.getLogger("tidecast")

SAMPLE_S = 0.5
PUBLISH_S = 1.0
ANSWER_MS = 5000
REDISCOVER_S = 10.0
"""How often new partitions of the topics are looked for."""
PAST_S = tuple(2.0**i for i in range(17, -1, -1))
"""Ages at which the past of a topic is looked up once, so that the latency of what was waiting already is known too."""


class Arrivals:
    """Arrival rate and lag of a job's Kafka topics, at the broker that the query reads; `step` every `SAMPLE_S`."""

    def __init__(self, job: Job, bootstrap: str, security: Mapping[str, Any]) -> None:
        self._job, self._bootstrap, self._security = job, bootstrap, security
        self._client: Any = None
        self._partitions: list[Any] = []
        self._discovered = 0.0
        self._published: tuple[float, Offsets] | None = None

    def step(self) -> None:
        """Sample the end offsets; publish an interval when one is due. Raises when the broker does not answer."""
        if not self._job.topics:
            return  # found in the first batch's progress, if the query reads Kafka at all
        if self._client is None:
            client_id = f"tidecast-{self._job.name}-arrivals"
            self._client = consumer(self._bootstrap, self._security, client_id=client_id)
        if time.time() - self._discovered > REDISCOVER_S:
            self._discover()
        asked = time.time()
        found = self._client.end_offsets(self._partitions, timeout_ms=ANSWER_MS)
        wall = (asked + time.time()) / 2
        ends = {(p.topic, p.partition): end for p, end in found.items()}
        with self._job.lock:
            for partition, end in ends.items():
                self._job.curves.setdefault(partition, Curve()).add(wall, end)
            self._job.ends = ends
        self._publish(wall, ends)

    def close(self) -> None:
        """Leave the broker."""
        if self._client is not None:
            self._client.close(timeout_ms=1000)

    def _publish(self, wall: float, ends: Offsets) -> None:
        job = self._job
        if self._published is None:
            self._published = wall, ends
            return
        since, before = self._published
        if wall - since < PUBLISH_S - SAMPLE_S / 2:
            return
        self._published = wall, ends
        if job.clock is None or since < job.clock.wall_start:
            return  # a replay that has not begun has no time of its own
        # After an outage the interval spans it whole: nothing that arrived is left out.
        sample = MetricSample(
            job=job.name,
            kind="interval",
            time=round(job.clock.at(since), 3),
            wall_time=round(wall, 3),
            time_scale=job.clock.scale,
            span_s=round((wall - since) * job.clock.scale, 3),
            arrival_rps=round(arrived(before, ends) / (wall - since), 3),
            lag_records=lag(ends, job.committed),
            executors=len(job.live()),
            pending_executors=job.pending(),
            cores=job.cores(),
            task_ceiling=job.ceiling(),
            mode=job.mode,
        )
        job.outbox.send("metrics", job.name, sample)

    def _discover(self) -> None:
        from kafka import TopicPartition

        known = {(p.topic, p.partition) for p in self._partitions}
        found = {topic: self._client.partitions_for_topic(topic) for topic in self._job.topics}
        if missing := [topic for topic, numbers in found.items() if not numbers]:
            raise LookupError(f"topic {missing[0]!r} is not on the broker at {self._bootstrap}")
        self._partitions = [TopicPartition(topic, p) for topic, numbers in found.items() for p in sorted(numbers)]
        self._discovered = time.time()
        self._look_back([p for p in self._partitions if (p.topic, p.partition) not in known])

    def _look_back(self, partitions: list[Any]) -> None:
        """Where the topics' ends were at some moments of the past, by the records' own timestamps."""
        if not partitions:
            return
        now = time.time()
        ends = self._client.end_offsets(partitions, timeout_ms=ANSWER_MS)
        knots: dict[Partition, list[tuple[float, int]]] = {}
        for age in PAST_S:
            asked = {p: int((now - age) * 1000) for p in partitions}
            for p, found in self._client.offsets_for_times(asked, timeout_ms=ANSWER_MS).items():
                knots.setdefault((p.topic, p.partition), []).append(
                    (now - age, ends[p] if found is None else found.offset)
                )
        with self._job.lock:
            for partition, known in knots.items():
                curve = self._job.curves.setdefault(partition, Curve())
                for wall, end in known:
                    curve.add(wall, end)
