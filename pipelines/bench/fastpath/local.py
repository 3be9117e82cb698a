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

from pipelines.bench.fastpath.figures import percentiles_us
from pipelines.bench.fastpath.load import BEGUN, JOBS, STEP_S, SampleFeed
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
FLEET = tuple(f"fleet-{number:03}" for number in range(500))


class NothingSent:
    """In the place of the broker's client: everything is taken at once."""

    def send(self, topic: str, key: str, value: bytes, headers: Sequence[tuple[str, bytes]], taken: Any = None) -> None:
        """Take it."""
        if taken is not None:
            taken(True)


@contextmanager
def served(
    folder: Path, made: ModelSet, jobs: Sequence[str], windows: int = BEGUN
) -> Iterator[tuple[Core, SampleFeed]]:
    """A core over a store that is flushed ten times a second as in the server; the set serves jobs with a history."""
    with Store.open(folder, keep=keeps(HISTORY)) as store, Flusher(store):
        core, feed = Core(store, STEP_S, set(jobs), epoch=1), SampleFeed(jobs)
        history = [Arrival(raw) for _, raw in feed.history(windows)]
        for at in range(0, len(history), BATCH):
            core.take(history[at : at + BATCH])
        for job in jobs:
            swap(core, prepare(core.windows, job, f"{job}-forecaster", "1", made))
        core.outbox.send(NothingSent())
        yield core, feed


def in_process(folder: Path, made: ModelSet, runs: int, events: int, warm: int) -> list[list[int]]:
    """Nanoseconds from a sample's bytes to its forecast's record, for every event of one job, a list per run."""
    with served(folder, made, JOBS[:1]) as (core, feed):
        _closed(core, feed, warm)
        with frozen():
            return [_closed(core, feed, events) for _ in range(runs)]


def _closed(core: Core, feed: SampleFeed, events: int) -> list[int]:
    took, job, key, store, now = [], JOBS[0], forecast_key(JOBS[0], STEP_S), core.store, perf_counter_ns
    for window, raw in [feed.take(job) for _ in range(events)]:
        began = now()
        core.take([Arrival(raw)])
        record = store.get(key)
        took.append(now() - began)
        assert record is not None and record.version == window, f"no forecast after window {window}"
        core.outbox.send(NothingSent())
    return took


def fleet(folder: Path, made: ModelSet, seconds: int) -> dict[str, Any]:
    """500 jobs with a sample each, second after second, as fast as one core goes.

    Returns:
        `jobs`; `second_ms`, what one sample of every job took, by percentile; `times_real_time`, 1 s ÷ its median;
        `latency_us`, from a sample's arrival to the end of its transaction where all arrive at once.
    """
    walls: list[int] = []
    waits: list[int] = []
    allowed = os.sched_getaffinity(0)
    with served(folder, made, FLEET, BEGUN // 4) as (core, feed), frozen():
        os.sched_setaffinity(0, {max(allowed)})
        try:
            for _ in range(seconds):
                samples = [Arrival(feed.take(job)[1]) for job in FLEET]
                began = perf_counter_ns()
                for at in range(0, len(FLEET), BATCH):
                    answers = core.take(samples[at : at + BATCH])
                    waits += [perf_counter_ns() - began] * len(answers)
                walls.append(perf_counter_ns() - began)
                core.outbox.send(NothingSent())
        finally:
            os.sched_setaffinity(0, allowed)
    second = percentiles_us(walls)
    return {
        "jobs": len(FLEET),
        "second_ms": {name: value / 1e3 for name, value in second.items() if name != "count"},
        "times_real_time": 1e6 / second["p50"],
        "latency_us": percentiles_us(waits),
    }


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
