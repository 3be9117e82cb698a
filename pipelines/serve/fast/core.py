"""The fast path's event: a sample in; window, state, forecast, cursor and outbox out, in one transaction.

Whoever calls is the only thread that writes. Samples that wait share a transaction, each with its own commit time.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from models.forecast.core.series import SeriesError
from pipelines.serve.fast.outbox import StoreOutbox
from pipelines.serve.fast.restoring import ModelCache, StoreWindows, restore_job
from pipelines.serve.fast.window_closer import PendingForecast, WindowCloser
from pipelines.serve.net.wire import Answer, Found, Refused, fit_put_result
from pipelines.serve.step.job import ServedJob
from pipelines.serve.step.keys import forecast_key, open_window_name, sample_key
from pipelines.serve.step.records import SampleValue, decode_value, encode_value
from pipelines.serve.step.samples import read_sample
from pipelines.serve.step.server_context import SILENT_S, ServerContext
from pipelines.serve.step.windower import SampleEffect, Window
from pipelines.store import Store
from pipelines.store.writing.event import Event, EventBatch
from tidecast.messages import Heartbeat, MessageError, MetricSample, Reject

CURSOR = "cursor"
"""Meta name of the place in the log to read on from."""
_GRAIN_S = 1e-3


class IncomingSample(NamedTuple):
    """A sample as it came by socket or from the log.

    Attributes:
        raw: the message, JSON.
        position: (topic, partition, offset) of a record of the log; None for what came by socket.
        cursor: where to read on in the log after it, MessagePack; empty for what came by socket.
        key: of a record of the log; None for what came by socket.
        refused: the answer, where the store takes nothing that comes of it; None for any other.
    """

    raw: bytes
    position: tuple[str, int, int] | None = None
    cursor: bytes = b""
    key: str | None = None
    refused: Refused | None = None


Effect = Refused | tuple[str, Sequence[PendingForecast | Found]]
"""What a sample did, once its transaction stands: refused, or (verdict, its forecasts)."""


class Core:
    """Every job's state on the fast path, with its store, outbox and counts; called by one thread at a time.

    Attributes:
        counts: what came and what became of it, by name: "windows", "duplicates", "stale", "refused CODE", "swaps", ...
    """

    def __init__(
        self, store: Store, step_s: float, known: Collection[str], epoch: int, follows_log: bool = False
    ) -> None:
        """Go on where the store stopped; jobs are read from it when they are first met.

        Args:
            store: open for writing.
            step_s: seconds per window.
            known: names of the jobs with a contract, looked up with every sample.
            epoch: number of the server's claim, in every forecast.
            follows_log: whether the Kafka log is followed: forecasts are sent there, and a sample by socket is taken
                only where it continues what was taken, because gaps are decided from the log alone.

        Raises:
            StoreError: the outbox cannot be read.
        """
        self.store, self.step_s, self.known, self._follows_log = store, step_s, known, follows_log
        self.cache, self.outbox, self.counts = ModelCache(store), StoreOutbox(store), Counter[str]()
        self.windows, self.closer = StoreWindows(store, step_s), WindowCloser(follows_log)
        self.server = ServerContext(self.windows, self.cache.find, epoch)
        self.newest_sent: dict[str, int] = {}  # newest window by job with a forecast on the topic, as its end tells
        self.heartbeats: list[Heartbeat] = []  # due to be sent, where a log is followed
        self._jobs: dict[str, ServedJob] = {}
        self._touched: dict[str, ServedJob] = {}
        self._values: dict[tuple[str, int], tuple[Window, PendingForecast | None]] = {}

    def job(self, name: str) -> ServedJob:
        """Return the state of a job, read from the store on the first call.

        Raises:
            StoreError, msgspec.DecodeError: it cannot be read.
        """
        if name not in self._jobs:
            self._jobs[name] = restore_job(self.store, self.server, name)
        return self._jobs[name]

    def digests_in_use(self) -> set[tuple[str, str, str]]:
        """Return the digests (of weights, scaler, hyper-parameters) of models that step a job or are a job's newest."""
        in_use = [(j, d) for j in self._jobs.values() for d in j.deployments]
        return {d.digests for j, d in in_use if d.number in (j.deployments[-1].number, j.deployment_number)}

    def forget(self, name: str) -> None:
        """Drop the job's state in memory; the next call of `job` reads it from the store again."""
        self._jobs.pop(name, None)

    def newest_forecast_window(self, job: str) -> int | None:
        """Return the job's newest window with a forecast, in the store or on the topic; None without one."""
        stored = self.store.get(forecast_key(job, self.step_s))
        return max((v for v in (stored and stored.version, self.newest_sent.get(job)) if v is not None), default=None)

    def process(self, samples: Sequence[IncomingSample], now: float | None = None) -> list[Answer]:
        """Process samples in their order in one store transaction, and return one answer for each, in that order.

        Closes windows, steps models, puts forecasts into the store and, if Kafka is followed, into its outbox. Refused
        records of the log go to `/quarantine` and `rejects`. Does not wait for the disk.

        Args:
            samples: from socket or log, usually at most 32.
            now: wall time, epoch seconds; None for the clock's.

        Returns:
            `PutResult`, or `Refused` with "message" (no valid sample), its own if it is `refused`, "unknown_job" (no
            contract), "gap" (by socket, not next to what was taken) or "conflict" (its window was closed with others).

        Raises:
            StoreError, msgspec.DecodeError, MessageError: nothing was kept; the same samples may be given again.
        """
        now = time.time() if now is None else now
        try:
            with self.store.batch() as batch:
                effects = [self._process_one(batch, incoming, now) for incoming in samples]
        except BaseException:
            for name in self._touched:  # they have taken in what the store has not
                self.forget(name)
            self.heartbeats.clear()
            raise
        else:
            self.after_commit(self._values)
        finally:
            for served in self._touched.values():
                served.unsaved.clear()
            for of_transaction in (self.closer.outgoing, self._touched, self._values):
                of_transaction.clear()
        return [one if isinstance(one, Refused) else _answer(*one) for one in effects]

    def after_commit(self, windows: Iterable[tuple[str, int]]) -> None:
        """Queue the outbox entries just committed for `outbox.send`, and forget what was adopted for `windows`.

        Those are the (job, window index) that the transaction closed; adopted forecasts were sent before a rebuild.
        """
        self.outbox.queue(self.closer.outgoing)
        self.closer.outgoing.clear()
        for window in windows:
            self.closer.adopted.pop(window, None)

    def _process_one(self, batch: EventBatch, incoming: IncomingSample, now: float) -> Effect:
        try:
            sample = read_sample(incoming.raw, now, incoming.key)
            if incoming.refused is not None:
                return self._refuse(batch, incoming, incoming.refused.code, incoming.refused.message, now)
            if sample.job not in self.known:
                return self._refuse(batch, incoming, "unknown_job", f"job {sample.job!r} has no contract", now)
            served = self.job(sample.job)
            effect = served.add_sample(sample, now)
        except (MessageError, SeriesError) as error:
            return self._refuse(batch, incoming, "message", str(error), now)
        if effect.late:
            return self._again(batch, incoming, sample, effect.repeated, now)
        until = served.open_window.until - effect.open_window.ahead_s  # as the job's clock has it
        if incoming.position is None and self._follows_log and sample.time > until + _GRAIN_S:
            taken = "nothing of the job was taken yet" if math.isinf(until) else f"what was taken ends at {until}"
            why = f"time={sample.time}: {taken}, and the log decides what follows. Send it to the topic metrics."
            return self._refuse(batch, incoming, "gap", why, now)
        return self._fresh(batch, incoming, served, sample, effect, now)

    def _fresh(
        self, batch: EventBatch, incoming: IncomingSample, served: ServedJob, sample: MetricSample,
        effect: SampleEffect, now: float,
    ) -> Effect:  # fmt: skip
        """A sample whose time is new: the windows that it closes, and the one in progress."""
        forecasts = []
        self._touched[sample.job] = served
        served.open_window = effect.open_window
        for window in effect.closed[:-1]:
            with batch.event() as event:
                forecasts.append(self._close(event, served, window, sample))
        with batch.event() as event:
            if effect.closed:
                forecasts.append(self._close(event, served, effect.closed[-1], sample))
            self.closer.renew_standing(event, self.store, served, sample, now)
            event.set_meta(open_window_name(sample.job), encode_value(effect.open_window))
            if incoming.position is not None:
                event.set_meta(CURSOR, incoming.cursor)
        if self._follows_log and now - sample.wall_time < SILENT_S:  # a replay of old records proves nothing now
            self.heartbeats += served.due_heartbeats(sample, sample.wall_time)
        self.counts["windows"] += len(effect.closed)
        return "applied" if effect.closed else "pending", [one for one in forecasts if one is not None]

    def _close(self, event: Event, served: ServedJob, window: Window, sample: MetricSample) -> PendingForecast | None:
        forecast = self.closer.close_window(event, served, window, sample.wall_time, sample.time_scale)
        self._values[sample.job, window.window_index] = window, forecast
        return forecast

    def _again(
        self, batch: EventBatch, incoming: IncomingSample, sample: MetricSample, window: Window | None, now: float
    ) -> Effect:
        """A sample whose time is over: the same again, another for the same window, or a late part of one."""
        stored = None if window is None else self._stored(sample.job, window.window_index)
        if window is None or stored is None:
            self.counts["stale"] += 1
            self._pass(batch, incoming)
            return "stale", []
        if not math.isclose(stored.rate, window.rate, rel_tol=1e-9) or stored.lag != window.lag:
            rates = f"{stored.rate} records/s, not {window.rate}"
            why = f"window {window.window_index} of {sample.job} is closed with {rates}"
            return self._refuse(batch, incoming, "conflict", why, now)
        self.counts["duplicates"] += 1
        self._pass(batch, incoming)
        if (forecast := self._values.get((sample.job, window.window_index), (None, None))[1]) is not None:
            return "duplicate", [forecast]
        record = self.store.get(forecast_key(sample.job, self.step_s), window.window_index)
        return "duplicate", [] if record is None else [Found.of(record)]

    def _stored(self, job: str, index: int) -> SampleValue | Window | None:
        if (job, index) in self._values:
            return self._values[job, index][0]
        record = self.store.get(sample_key(job, self.step_s), index)
        return None if record is None else decode_value(SampleValue, record.value)

    def _refuse(self, batch: EventBatch, incoming: IncomingSample, code: str, why: str, now: float) -> Refused:
        """A sample that cannot be accepted: a record of the log is kept aside, the client is answered."""
        self.counts[f"refused {code}"] += 1
        if incoming.position is not None:
            self._pass(batch, incoming, Reject.of(*incoming.position, "serving", why, incoming.raw, now))
        return Refused(code, why)

    def _pass(self, batch: EventBatch, incoming: IncomingSample, reject: Reject | None = None) -> None:
        """Put the cursor behind a record of the log that leaves nothing, or its reject."""
        if incoming.position is None:
            return
        with batch.event() as event:
            if reject is not None:
                self.closer.quarantine(event, self.store, reject)
            event.set_meta(CURSOR, incoming.cursor)


def _answer(verdict: str, forecasts: Sequence[PendingForecast | Found]) -> Answer:
    return fit_put_result(verdict, [one.found() if isinstance(one, PendingForecast) else one for one in forecasts])
