"""The records of all jobs of a session, sent when they are due, and what was sent of each."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from configs.sections import Kafka
from pipelines.bench.team.real.job import events_of
from pipelines.bench.team.real.mix import SPEED, DayLoad
from pipelines.jobs.events import LoadEvent, encode_event
from pipelines.jobs.load_generator import key_name
from pipelines.kafka.connection import BrokerError
from pipelines.kafka.publisher import Publisher

TICK_S, LINGER_MS, ACKNOWLEDGED_S = 0.05, 20, 60.0
WARM_RPS, WARM_SEQ = 6.0, 1_000_000_000
"""Records/s of each job before the loads begin, and the first one's sequence number."""


class SentLoad(NamedTuple):
    """What a job was sent.

    Attributes:
        events: all of them, those before the load began too.
        partition, offset: (N,) places of the load's own records on the job's topic.
        produced_at: (N,) epoch seconds of these.
    """

    events: list[LoadEvent]
    partition: NDArray[np.int64]
    offset: NDArray[np.int64]
    produced_at: NDArray[np.float64]


class _JobFeed:
    """The records of one job."""

    def __init__(self, publisher: Publisher, job: str, load: DayLoad, partitions: int) -> None:
        self._publisher, self._topic, self._partitions = publisher, events_of(job), partitions
        self._plan, self._start = load.plan, load.trace.live_start
        self._warm: list[tuple[LoadEvent, Any]] = []
        self._sent: list[tuple[LoadEvent, float, Any]] = []

    def warm_up(self, since_s: float) -> None:
        while len(self._warm) < since_s * WARM_RPS:
            number = len(self._warm)
            event = LoadEvent(WARM_SEQ + number, self._start, key_name(number % 50))
            self._warm.append((event, self._send(event, number, time.time())))

    def go_on(self, since_s: float) -> None:
        due = int(np.searchsorted(self._plan.send_at, since_s, side="right"))
        for at in range(len(self._sent), due):
            happened = round(self._start + float(self._plan.event_at[at]) * SPEED, 3)
            event, now = LoadEvent(int(self._plan.seq[at]), happened, key_name(int(self._plan.key[at]))), time.time()
            self._sent.append((event, now, self._send(event, at, now)))

    def over(self) -> bool:
        return len(self._sent) == len(self._plan)

    def sent(self) -> SentLoad:
        events = [event for event, _ in self._warm] + [event for event, _, _ in self._sent]
        places = [future.value for *_, future in self._sent]
        return SentLoad(
            events, np.array([one.partition for one in places], np.int64),
            np.array([one.offset for one in places], np.int64), np.array([at for _, at, _ in self._sent], float),
        )  # fmt: skip

    def missing(self) -> int:
        futures = [future for _, future in self._warm] + [future for *_, future in self._sent]
        return sum(not (future.is_done and future.succeeded()) for future in futures)

    def _send(self, event: LoadEvent, number: int, now: float) -> Any:
        return self._publisher.send_bytes(
            self._topic, event.key.encode(), encode_event(event), partition=number % self._partitions, timestamp_s=now
        )


class TeamFeed:
    """Sends a few records of every job from the start on, and their loads from `begin` on."""

    def __init__(self, kafka: Kafka, loads: Mapping[str, DayLoad]) -> None:
        """Start to send.

        Raises:
            BrokerError: the broker does not answer.
        """
        self._publisher = Publisher(kafka, linger_ms=LINGER_MS, enable_idempotence=True)  # each record counts, once
        self._over = threading.Event()
        self._jobs = {job: _JobFeed(self._publisher, job, load, kafka.event_partitions) for job, load in loads.items()}
        self._began: float | None = None
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="loads", daemon=True)
        self._thread.start()

    def __enter__(self) -> TeamFeed:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def begin(self, at: float) -> None:
        """Begin with the loads at an epoch second."""
        self._began = at

    def over(self) -> bool:
        """Return whether all loads were sent.

        Raises:
            Exception: what the sending thread has met.
        """
        if self._failure is not None:
            raise self._failure
        return all(one.over() for one in self._jobs.values())

    def end(self) -> dict[str, SentLoad]:
        """End the loads, and return what was sent, by job.

        Raises:
            BrokerError: a record was not acknowledged.
        """
        self.close()
        if missing := sum(one.missing() for one in self._jobs.values()):
            raise BrokerError(f"{missing} records were not acknowledged within {ACKNOWLEDGED_S:.0f} s.")
        return {job: one.sent() for job, one in self._jobs.items()}

    def close(self) -> None:
        """Send no more; a second call does nothing."""
        if not self._over.is_set():
            self._over.set()
            self._thread.join(ACKNOWLEDGED_S)
            self._publisher.close()

    def _run(self) -> None:
        try:
            started = time.time()
            while not self._over.wait(TICK_S):
                now = time.time()
                for one in self._jobs.values():
                    if self._began is None:
                        one.warm_up(now - started)
                    else:
                        one.go_on(now - self._began)
        except Exception as error:  # told to whoever waits for the session
            self._failure = error
