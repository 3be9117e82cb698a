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

from pipelines.bench.fastpath.figures import percentiles_in_us
from pipelines.bench.fastpath.load import BEGUN, JOBS, STEP_S, SampleFeed
from pipelines.serve.fast.core import Core, IncomingSample
from pipelines.serve.fast.server import retention_rules
from pipelines.serve.fast.swapping import swap_model
from pipelines.serve.models.model_set import ModelSet
from pipelines.serve.models.ready import prepare_model
from pipelines.serve.net.socket_server import BATCH
from pipelines.serve.step.keys import forecast_key
from pipelines.store import Store
from pipelines.store.writing.flusher import Flusher

HISTORY = 20_000
"""Windows kept per job, as shipped."""
FLEET = tuple(f"fleet-{number:03}" for number in range(500))


class NothingSent:
    """A stand-in for the broker's client that drops every record and reports it as taken."""

    def send(self, topic: str, key: str, value: bytes, headers: Sequence[tuple[str, bytes]], taken: Any = None) -> None:
        """Drop a record and call `taken`, where there is one, with True."""
        if taken is not None:
            taken(True)


@contextmanager
def open_core(
    folder: Path, model: ModelSet, jobs: Sequence[str], windows: int = BEGUN
) -> Iterator[tuple[Core, SampleFeed]]:
    """Open the fast path's core (the server without its socket), a model serving its jobs; gives (core, sample feed).

    The store in `folder` is made if absent, flushed to the disk ten times a second as in the server, and closed with
    the context; its files stay. The feed gives the jobs' next samples.

    Args:
        folder: of the store.
        model: that serves every job.
        jobs: their names.
        windows: of 5 minutes of history that every job gets first.

    Raises:
        StoreError: another process writes the store, or it is damaged, full or not writable.
        ModelSetError, SeriesError, OnlineError: the model cannot serve these windows.
    """
    with Store.open(folder, keep=retention_rules(HISTORY)) as store, Flusher(store):
        core, feed = Core(store, STEP_S, set(jobs), epoch=1), SampleFeed(jobs)
        history = [IncomingSample(raw) for _, raw in feed.history(windows)]
        for at in range(0, len(history), BATCH):
            core.process(history[at : at + BATCH])
        for job in jobs:
            swap_model(core, prepare_model(core.windows, job, f"{job}-forecaster", "1", model))
        core.outbox.send(NothingSent())
        yield core, feed


def time_in_process(folder: Path, model: ModelSet, runs: int, events: int, warm: int) -> list[list[int]]:
    """Time the fast path without a socket: from a sample's bytes to its forecast's record in the store, for one job.

    Args:
        folder: for the store, which stays; a new one.
        model: that serves the job.
        runs: how many times `events` are measured.
        events: per run, one after the other.
        warm: events before the first run, which do not count.

    Returns:
        Nanoseconds of every event, a list per run.

    Raises:
        AssertionError: a sample made no forecast.
        StoreError: another process writes the store, or it is damaged, full or not writable.
        ModelSetError, SeriesError, OnlineError: the model cannot serve the history.
    """
    with open_core(folder, model, JOBS[:1]) as (core, feed):
        _time_closed_loop(core, feed, warm)
        with frozen_heap():
            return [_time_closed_loop(core, feed, events) for _ in range(runs)]


def _time_closed_loop(core: Core, feed: SampleFeed, events: int) -> list[int]:
    took_ns, job, key, store, now = [], JOBS[0], forecast_key(JOBS[0], STEP_S), core.store, perf_counter_ns
    for window, raw in [feed.take(job) for _ in range(events)]:
        began = now()
        core.process([IncomingSample(raw)])
        record = store.get(key)
        took_ns.append(now() - began)
        assert record is not None and record.version == window, f"no forecast after window {window}"
        core.outbox.send(NothingSent())
    return took_ns


def time_fleet(folder: Path, model: ModelSet, seconds: int) -> dict[str, Any]:
    """Time how fast one core serves 500 jobs: a sample each, `seconds` times over, one after the other.

    The process is pinned to one core meanwhile (Linux only).

    Args:
        folder: for the store, which stays; a new one.
        model: that serves every job.
        seconds: rounds of one sample per job, at least 1.

    Returns:
        `jobs` (500); `second_ms`, milliseconds that a round took: `p50`, `p90`, `p99`, `p99_9` and `max` over the
        rounds; `times_real_time`, 1 s ÷ its median; `latency_us`, the same percentiles and `count` of microseconds from
        the moment when all 500 samples are there to the end of each one's transaction.

    Raises:
        StoreError: another process writes the store, or it is damaged, full or not writable.
        ModelSetError, SeriesError, OnlineError: the model cannot serve the history.
    """
    second_ns: list[int] = []
    latency_ns: list[int] = []
    allowed = os.sched_getaffinity(0)
    with open_core(folder, model, FLEET, BEGUN // 4) as (core, feed), frozen_heap():
        os.sched_setaffinity(0, {max(allowed)})
        try:
            for _ in range(seconds):
                samples = [IncomingSample(feed.take(job)[1]) for job in FLEET]
                began = perf_counter_ns()
                for at in range(0, len(FLEET), BATCH):
                    answers = core.process(samples[at : at + BATCH])
                    latency_ns += [perf_counter_ns() - began] * len(answers)
                second_ns.append(perf_counter_ns() - began)
                core.outbox.send(NothingSent())
        finally:
            os.sched_setaffinity(0, allowed)
    second = percentiles_in_us(second_ns)
    return {
        "jobs": len(FLEET),
        "second_ms": {name: value / 1e3 for name, value in second.items() if name != "count"},
        "times_real_time": 1e6 / second["p50"],
        "latency_us": percentiles_in_us(latency_ns),
    }


@contextmanager
def frozen_heap() -> Iterator[None]:
    """Freeze the objects alive now, so that the garbage collector skips them within the context; blocks 0.1 s first."""
    gc.collect()
    gc.freeze()
    time.sleep(0.1)
    try:
        yield
    finally:
        gc.unfreeze()
