"""The fast path's event: a sample in; window, state, forecast, cursor and outbox out, in one transaction.

Whoever calls is the only thread that writes. Up to 32 arrivals that wait share one transaction, each with its own ts
and in their order, so that the store holds the same whether they came one by one or together.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from models.forecast.core.series import SeriesError
from pipelines.serve.fast.closing import Closing, Left
from pipelines.serve.fast.outbox import StoreOutbox
from pipelines.serve.fast.restoring import ModelCache, StoreWindows, read
from pipelines.serve.net.wire import Answer, Found, Refused, took
from pipelines.serve.step.following import SILENT_S, Following, Serving
from pipelines.serve.step.keys import filling_name, forecast_key, sample_key
from pipelines.serve.step.records import SampleValue, packed, unpacked
from pipelines.serve.step.samples import read_sample
from pipelines.serve.step.windower import Filled, Window
from pipelines.store import Store
from pipelines.store.writing.event import Event, EventBatch
from tidecast.messages import Heartbeat, MessageError, MetricSample, Reject

CURSOR = "cursor"
"""Meta name of the place in the log to read on from."""
_GRAIN_S = 1e-3


class Arrival(NamedTuple):
    """A sample as it came by socket or from the log.

    Attributes:
        raw: the message, JSON.
        at: (topic, partition, offset) of a record of the log; None for what came by socket.
        cursor: where to read on in the log after it, MessagePack; empty for what came by socket.
        key: of a record of the log; None for what came by socket.
    """

    raw: bytes
    at: tuple[str, int, int] | None = None
    cursor: bytes = b""
    key: str | None = None


Effect = Refused | tuple[str, Sequence[Left | Found]]
"""What an arrival did, once its transaction stands: refused, or the verdict and its forecasts."""


class Core:
    """Every job's state on the fast path, with its store, outbox and counts; called by one thread at a time.

    Attributes:
        counts: what came and what became of it, by name: "windows", "duplicates", "stale", "refused CODE", "swaps", ...
    """

    def __init__(self, store: Store, step_s: float, known: Collection[str], epoch: int, follows: bool = False) -> None:
        """Go on where the store stopped; jobs are read from it when they are first met.

        Args:
            store: open for writing.
            step_s: seconds per window.
            known: names of the jobs with a contract, looked up with every sample.
            epoch: number of the server's claim, in every forecast.
            follows: whether the Kafka log is followed: forecasts are sent there, and a sample by socket is taken only
                where it continues what was taken, because gaps are decided from the log alone.

        Raises:
            StoreError: the outbox cannot be read.
        """
        self.store, self.step_s, self.known, self._follows = store, step_s, known, follows
        self.cache, self.outbox, self.counts = ModelCache(store), StoreOutbox(store), Counter[str]()
        self.windows, self.closing = StoreWindows(store, step_s), Closing(follows)
        self.serving = Serving(self.windows, self.cache.find, epoch)
        self.sent: dict[str, int] = {}
        """Newest window by job that a forecast was sent for, as the end of the topic tells."""
        self.heartbeats: list[Heartbeat] = []
        """Due to be sent, where a log is followed; the outbox is for what must not be lost."""
        self._jobs: dict[str, Following] = {}
        self._touched: dict[str, Following] = {}
        self._values: dict[tuple[str, int], tuple[Window, Left | None]] = {}

    def job(self, name: str) -> Following:
        """Return the state of a job, read from the store on the first call.

        Raises:
            StoreError: it cannot be read.
            SeriesError: its model cannot be started on the stored windows.
        """
        if name not in self._jobs:
            self._jobs[name] = read(self.store, self.serving, name)
        return self._jobs[name]

    def needed(self) -> set[tuple[str, str, str]]:
        """Return the digests (weights, scaler, hyper-parameters) of models in use and of each job's newest."""
        jobs = self._jobs.values()
        return {g.digests for one in jobs for g in one.generations if g is one.generations[-1] or g.number == one.at}

    def forget(self, name: str) -> None:
        """Drop the job's state in memory; the next call of `job` reads it from the store again."""
        self._jobs.pop(name, None)

    def last_sent(self, job: str) -> int | None:
        """Return the job's newest window with a forecast, in the store or on the topic; None without one."""
        stored = self.store.get(forecast_key(job, self.step_s))
        known = [v for v in (stored.version if stored else None, self.sent.get(job)) if v is not None]
        return max(known, default=None)

    def take(self, arrivals: Sequence[Arrival], now: float | None = None) -> list[Answer]:
        """Take samples in their order in one transaction, and return as many answers in that order.

        Closes windows, steps models, puts forecasts into the store and, if a log is followed, into the outbox; a
        refused record of the log goes to `/quarantine` and `rejects`. Updates `counts`.

        Args:
            arrivals: from socket or log.
            now: wall time, epoch seconds; None for the clock's.

        Returns:
            `Took` with verdict and forecasts, or `Refused` with code "message", "unknown_job", "gap" or "conflict".

        Raises:
            StoreError: nothing was kept; the same arrivals may be given again.
        """
        now = time.time() if now is None else now
        try:
            with self.store.batch() as batch:
                effects = [self._one(batch, arrival, now) for arrival in arrivals]
        except BaseException:
            for name in self._touched:  # they have taken in what the store has not
                self.forget(name)
            self.heartbeats.clear()
            raise
        else:
            self.committed(self._values)
        finally:
            for following in self._touched.values():
                following.unsaved.clear()
            for kept in (self.closing.leaving, self._touched, self._values):
                kept.clear()
        return [_answer(effect) for effect in effects]

    def committed(self, windows: Iterable[tuple[str, int]]) -> None:
        """After a commit, queue its outbox entries for sending, and drop what was adopted for its windows.

        `windows` are (job, window index). Nothing is sent yet.
        """
        self.outbox.committed(self.closing.leaving)
        self.closing.leaving.clear()
        for window in windows:
            self.closing.adopted.pop(window, None)

    def _one(self, batch: EventBatch, arrival: Arrival, now: float) -> Effect:
        try:
            sample = read_sample(arrival.raw, now, arrival.key)
            if sample.job not in self.known:
                return self._refuse(batch, arrival, "unknown_job", f"job {sample.job!r} has no contract", now)
            following = self.job(sample.job)
            filled = following.fill(sample)
        except (MessageError, SeriesError) as error:
            return self._refuse(batch, arrival, "message", str(error), now)
        if filled.late:
            return self._again(batch, arrival, sample, filled.again, now)
        until = following.filling.until
        if arrival.at is None and self._follows and sample.time > until + _GRAIN_S:
            why = f"time={sample.time}: what was taken ends at {until}; the log decides what lies between"
            return self._refuse(batch, arrival, "gap", why, now)
        return self._fresh(batch, arrival, following, sample, filled, now)

    def _fresh(
        self, batch: EventBatch, arrival: Arrival, following: Following, sample: MetricSample, filled: Filled,
        now: float,
    ) -> Effect:  # fmt: skip
        """A sample whose time is new: the windows that it closes, and the one in progress."""
        left = []
        self._touched[sample.job] = following
        following.filling = filled.filling
        for window in filled.closed[:-1]:
            with batch.event() as event:
                left.append(self._close(event, following, window, sample))
        with batch.event() as event:
            if filled.closed:
                left.append(self._close(event, following, filled.closed[-1], sample))
            event.set_meta(filling_name(sample.job), packed(filled.filling))
            if arrival.at is not None:
                event.set_meta(CURSOR, arrival.cursor)
        if self._follows and now - sample.wall_time < SILENT_S:  # a replay of old records proves nothing now
            self.heartbeats += following.beat(sample, sample.wall_time)
        self.counts["windows"] += len(filled.closed)
        return "applied" if filled.closed else "pending", [one for one in left if one is not None]

    def _close(self, event: Event, following: Following, window: Window, sample: MetricSample) -> Left | None:
        left = self.closing.close(event, following, window, sample.wall_time, sample.time_scale)
        self._values[sample.job, window.version] = window, left
        return left

    def _again(
        self, batch: EventBatch, arrival: Arrival, sample: MetricSample, window: Window | None, now: float
    ) -> Effect:
        """A sample whose time is over: the same again, another for the same window, or a late part of one."""
        stored = None if window is None else self._stored(sample.job, window.version)
        if window is None or stored is None:
            self.counts["stale"] += 1
            self._pass(batch, arrival)
            return "stale", []
        if not math.isclose(stored.rate, window.rate, rel_tol=1e-9) or stored.lag != window.lag:
            why = f"window {window.version} of {sample.job} is closed with {stored.rate} records/s, not {window.rate}"
            return self._refuse(batch, arrival, "conflict", why, now)
        self.counts["duplicates"] += 1
        self._pass(batch, arrival)
        _, left = self._values.get((sample.job, window.version), (None, None))
        if left is not None:
            return "duplicate", [left]
        record = self.store.get(forecast_key(sample.job, self.step_s), window.version)
        return "duplicate", [] if record is None else [Found.of(record)]

    def _stored(self, job: str, version: int) -> SampleValue | Window | None:
        if (job, version) in self._values:
            return self._values[job, version][0]
        record = self.store.get(sample_key(job, self.step_s), version)
        return None if record is None else unpacked(SampleValue, record.value)

    def _refuse(self, batch: EventBatch, arrival: Arrival, code: str, why: str, now: float) -> Refused:
        """A sample that cannot be accepted: a record of the log is kept aside, the client is answered."""
        self.counts[f"refused {code}"] += 1
        if arrival.at is not None:
            self._pass(batch, arrival, Reject.of(*arrival.at, "serving", why, arrival.raw, now))
        return Refused(code, why)

    def _pass(self, batch: EventBatch, arrival: Arrival, reject: Reject | None = None) -> None:
        """Put the cursor behind a record of the log that leaves nothing, or its reject."""
        if arrival.at is None:
            return
        with batch.event() as event:
            if reject is not None:
                self.closing.set_aside(event, self.store, reject)
            event.set_meta(CURSOR, arrival.cursor)


def _answer(effect: Effect) -> Answer:
    if isinstance(effect, Refused):
        return effect
    verdict, forecasts = effect
    return took(verdict, [one.found() if isinstance(one, Left) else one for one in forecasts])
