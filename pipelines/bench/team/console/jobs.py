"""Jobs whose records go on: what all of them say in a second, and a broker's topics that are told it."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

from configs.sections import Kafka
from pipelines.bench.team.console.records import batch, beat, fleet, interval, record
from pipelines.console.read.fold import ReadModel, fold
from pipelines.kafka.broker import Record
from pipelines.kafka.publisher import Publisher


def next_second(model: ReadModel, now: float) -> list[Record]:
    """Return what the jobs of `fleet` and their pools say at a moment: as before, each in the trouble that it is in."""
    records: list[Record] = []
    for number, (name, job) in enumerate(model.jobs.items()):
        if number % 40 != 2 and job.sample is not None:
            records += [
                interval(name, now, job.sample.arrival_rps or 0.0, job.sample.executors or 0, mode=job.sample.mode)
            ]
            records += [batch(name, now, 9.0 if number % 40 == 1 else 2.0)]
        records += [beat(name, now)] if number % 40 != 3 else []
    for state in model.pools.values():  # heard a second ago, the jobs too
        shares = [{**share, "heard_at": now - 1} for share in state.shares]
        records.append(record("pools", state.pool, replace(state, wall_time=now, shares=shares)))
    return records


class ToldTopics:
    """The topics of a broker that many jobs have told of their past, and go on telling, until `close`."""

    def __init__(self, kafka: Kafka, jobs: int, past_s: int) -> None:
        """Tell the past of so many jobs, as many seconds of each, and begin to go on in a thread.

        Raises:
            BrokerError: the broker does not take it.
        """
        self._publisher = Publisher(kafka, linger_ms=20)
        self._lock, self._ended = threading.Lock(), threading.Event()
        now = time.time()
        self._model = fold(ReadModel(), fleet(jobs, now, minutes=0.1), now)
        for one in fleet(jobs, now, past_s / 60, past_s):
            self._send(one)
        self._publisher.flush()
        self._thread = threading.Thread(target=self._go_on, name="jobs", daemon=True)
        self._thread.start()

    def _send(self, one: Record) -> None:
        self._publisher.send_bytes(one.topic, (one.key or "").encode(), one.value)

    def say(self, one: Record) -> float:
        """Send one record more, after which its job goes on; returns the wall time at which it was sent.

        Raises:
            BrokerError: the broker does not take it.
        """
        with self._lock:
            at = time.time()
            self._model = fold(self._model, [one], at)
            self._send(one)
        self._publisher.flush()
        return at

    def _go_on(self) -> None:
        began, second = time.monotonic(), 0
        while not self._ended.wait(max(0.0, began + second - time.monotonic())):
            with self._lock:
                for one in next_second(self._model, time.time()):
                    self._send(one)
            second += 1

    def close(self) -> None:
        """End it.

        Raises:
            BrokerError: the broker did not take a record.
        """
        self._ended.set()
        self._thread.join(10)
        self._publisher.close()
