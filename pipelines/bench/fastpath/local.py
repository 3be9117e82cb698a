"""The fast path in this process: sample put to forecast readable, one job at a time; hundreds of jobs on one core."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from pipelines.bench.fastpath.load import BEGUN, JOBS, STEP_S, SampleFeed
from pipelines.bench.fastpath.store import percentiles_us
from pipelines.serve.fast.core import Arrival, Core
from pipelines.serve.fast.server import keeps
from pipelines.serve.fast.swapping import swap
from pipelines.serve.models.model_set import ModelSet
from pipelines.serve.models.ready import prepare
from pipelines.serve.net.socket_server import BATCH
from pipelines.serve.step.keys import forecast_key
from pipelines.store import Store
from pipelines.store.writing.flusher import Flusher

HISTORY = 20_000
"""Windows kept per job, as shipped."""
FLEET = 500


class NothingSent:
    """In the place of the broker's client: everything is taken at once."""

    def send(self, topic: str, key: str, value: bytes, headers: Sequence[tuple[str, bytes]], taken: Any = None) -> None:
        """Take it."""
        if taken is not None:
            taken(True)


class Local:
    """A core over a store, its jobs served by one set."""

    def __init__(self, store: Store, made: ModelSet, jobs: Sequence[str] = JOBS, begun: int = BEGUN) -> None:
        self.core, self.feed, self.jobs = Core(store, STEP_S, set(jobs), epoch=1), SampleFeed(jobs), tuple(jobs)
        history = [Arrival(raw) for _, raw in self.feed.history(jobs, begun)]
        for at in range(0, len(history), BATCH):
            self.core.take(history[at : at + BATCH])
        for job in jobs:
            swap(self.core, prepare(self.core.windows, job, f"{job}-forecaster", "1", made))
        self.sent()

    def sent(self) -> None:
        """Empty the outbox."""
        self.core.outbox.send(NothingSent())

    def closed(self, events: int, job: str) -> list[int]:
        """Nanoseconds from a sample's bytes to its forecast's record, one event after the other."""
        took, key, store, now = [], forecast_key(job, STEP_S), self.core.store, perf_counter_ns
        for window, raw in [self.feed.take(job) for _ in range(events)]:
            began = now()
            self.core.take([Arrival(raw)])
            record = store.get(key)
            took.append(now() - began)
            assert record is not None and record.version == window, f"no forecast after window {window}"
            self.sent()
        return took


def in_process(folder: Path, made: ModelSet, runs: int, events: int, warm: int) -> list[list[int]]:
    """Nanoseconds of every event of one job, a list per run."""
    with served(folder, made, JOBS[:1]) as local:
        local.closed(warm, JOBS[0])
        with frozen():
            return [local.closed(events, JOBS[0]) for _ in range(runs)]


def fleet(folder: Path, made: ModelSet, seconds: int) -> dict[str, Any]:
    """Hundreds of jobs with a sample each, second after second, as fast as one core goes.

    Returns:
        `jobs`; `second_ms`, what one sample of every job took, by percentile; `times_real_time`, 1 s ÷ its median;
        `latency_us`, from a sample's arrival to the end of its transaction where all arrive at once.
    """
    jobs = [f"fleet-{number:03}" for number in range(FLEET)]
    allowed = os.sched_getaffinity(0)
    with served(folder, made, jobs, begun=BEGUN // 4) as local, frozen():
        os.sched_setaffinity(0, {max(allowed)})
        try:
            walls, waits = [], []
            for _ in range(seconds):
                samples = [Arrival(local.feed.take(job)[1]) for job in jobs]
                began = perf_counter_ns()
                for at in range(0, FLEET, BATCH):
                    answers = local.core.take(samples[at : at + BATCH])
                    waits += [perf_counter_ns() - began] * len(answers)
                walls.append(perf_counter_ns() - began)
                local.sent()
        finally:
            os.sched_setaffinity(0, allowed)
    second = percentiles_us(walls)
    return {
        "jobs": FLEET,
        "seconds": seconds,
        "second_ms": {name: value / 1e3 for name, value in second.items() if name != "count"},
        "times_real_time": 1e6 / second["p50"],
        "latency_us": percentiles_us(waits),
    }


@contextmanager
def served(folder: Path, made: ModelSet, jobs: Sequence[str], begun: int = BEGUN) -> Iterator[Local]:
    """A store in a folder, flushed ten times a second as in the server, and jobs on it."""
    with Store.open(folder, keep=keeps(HISTORY)) as store, Flusher(store):
        yield Local(store, made, jobs, begun)


@contextmanager
def frozen() -> Iterator[None]:
    """As in serving: what is there is left alone by the collector, what comes is not."""
    gc.collect()
    gc.freeze()
    time.sleep(0.1)
    try:
        yield
    finally:
        gc.unfreeze()
