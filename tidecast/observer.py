"""The thread that polls Spark: finished batches, executors, and what became of decisions."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence

from tidecast.job import Job
from tidecast.spark.actuator import ActuatorError
from tidecast.spark.cluster import Cluster, Stage
from tidecast.spark.progress import Batch, ProgressReader
from tidecast.spark.sensors import Latency, OffsetCurve, batch_latency, guess_first_starts, lag_records
from tidecast.spark.set_back import WatchedClock
from tidecast.spark.yarn import YarnQueue

log = logging.getLogger("tidecast")

POLL_S = 0.25  # seconds between two polls
SPREAD_S = 10.0  # least seconds between two batches whose tasks are asked for their spread
FEW = 20  # records of a batch of which the fixed cost of tasks is most
TIDY_S = 1.0  # seconds between two checks for executors that came too late


class Observer:
    """Reports batches, executors and outcomes of one query; call `poll` every POLL_S."""

    def __init__(self, job: Job, cluster: Cluster) -> None:
        self._job, self._cluster = job, cluster
        self._reader, self._queue = ProgressReader(cluster.jquery), YarnQueue(cluster)
        self._tidied = self._spread_at = 0.0
        self._subscribed = bool(job.topics)
        self._warned_no_topics = False
        self._began: float | None = None
        self._timed_at = time.monotonic()
        self._clock, self._forward_at = WatchedClock(), -math.inf

    def poll(self) -> None:
        """Read Spark's state once: queue metrics of finished batches and outcomes of decisions, update `job`.

        A batch metric holds rows, records/s, seconds, latency (s), lag (records), executors, and where the time went:
        phases, garbage collection, spill, waiting; every SPREAD_S (10 s) also how far its tasks and its
        executors lie apart. Once the agent has taken the executors over, also asks, at most once in TIDY_S (1 s),
        for those that are missing and, in mode "act", for surplus ones to leave that registered late. When the query
        has ended, queues its last batches and sets `job.stop`, which ends the agent.

        Raises:
            py4j.protocol.Py4JError: the JVM does not answer or has ended.
            ValueError, KeyError, TypeError: a progress report of Spark lacks a field or has another form.
        """
        job, ended = self._job, not self._cluster.jquery.isActive()
        try:
            self.look()
            now = time.monotonic()
            with job.lock:
                if job.owns_executors and now - self._tidied > TIDY_S:
                    self._tidied = now
                    self._tidy()
        finally:
            if ended:  # also where its last batches cannot be read: it has no others
                self._tell_end()
                job.stop.set()

    def look(self) -> None:
        """Queue the batches and outcomes that `poll` has not told, and change nothing; raises what `poll` does."""
        self._follow_clock()
        executors = self._cluster.executors()
        for batch in self._reader.new_batches():
            self._handle(batch)
        job = self._job
        full = self._queue.full(len(executors)) if self._lacks_executors() else ""
        with job.lock:
            job.executors = executors
            if full:
                job.tracker.note_full(full, time.time())
            outcomes = job.tracker.observe_executors(job.live(), job.leaving(), time.time(), job.time)
        for outcome in outcomes:
            log.info("%s: %s %s: %s", job.name, outcome.decision_id, outcome.status, outcome.reason)
            job.outbox.enqueue("outcomes", job.name, outcome)

    def _tell_end(self) -> None:
        job = self._job
        if not job.owns_executors:
            log.info("%s: the query has ended, the agent ends with it", job.name)
            return
        log.warning(
            "%s: the query has ended, and its agent with it; %d executors stay, Spark adds none by itself; after "
            "starting it again, attach again", job.name, len(job.live()),
        )  # fmt: skip

    def _follow_clock(self) -> None:
        """Where the wall clock was set, go on as if it had always shown what it shows now."""
        if (by_s := self._clock.set_by_s()) == 0:
            return
        if by_s < 0:
            log.warning(
                "%s: this computer's clock was set back by %.0f s. A query with a trigger interval begins its next "
                "micro-batch only when the clock shows the time at which that was due: restart the job if no batches "
                "come.", self._job.name, -by_s,
            )  # fmt: skip
        self._forward_at = self._clock.now_s() if by_s > 0 else -math.inf
        with self._job.lock:
            self._job.tracker.move(by_s)
            for curve in self._job.curves.values() if by_s > 0 else ():  # set back, they are told by the next offsets
                curve.move(by_s)

    def _lacks_executors(self) -> bool:
        with self._job.lock:
            return self._job.tracker.awaits_room(len(self._job.live()), time.time())

    def _tidy(self) -> None:
        try:
            done = self._job.actuator.reconcile()
        except ActuatorError as error:
            done = str(error)
        if done:
            log.info("%s: %s", self._job.name, done)

    def _handle(self, batch: Batch) -> None:
        job = self._job
        stages = self._cluster.batch_stages(batch.run_id, batch.batch_id)
        spread = self._spread_due(batch, stages)
        used = self._cluster.executors_used(stages) if spread or job.tracker.awaits_use() else {}
        with job.lock:
            if not self._subscribed:
                self._find_topics(batch)
            job.bottleneck.add_batch(batch.rows, [(s.tasks, s.run_s) for s in stages])
            self._time(batch)
            job.record_s = mean_record_s(job.record_s, batch.rows, [s.run_s for s in stages])
            for partition, end in batch.latest.items():
                job.curves.setdefault(partition, OffsetCurve()).add(batch.latest_at, end)
            starts = batch.starts or guess_first_starts(job.curves, batch.ends, batch.rows)
            latency = batch_latency(job.curves, starts, batch.ends, batch.finished)
            for partition, end in batch.ends.items():
                if curve := job.curves.get(partition):  # none of a batch that a restarted query repeats
                    curve.forget_before(end)
            job.committed = batch.ends or None
            waiting = lag_records(job.ends, job.committed)
            # Spark gives tasks to every executor: to those that are leaving, and to another query's.
            own = {*job.actuator.live()} if used and job.tracker.awaits_use() else set()
            job.tracker.observe_batch(batch, own & used.keys(), waiting)
        told: dict[str, float] = {}
        if spread:
            tasks = self._cluster.task_spread(max(stages, key=lambda stage: stage.run_s))
            told = {**(tasks._asdict() if tasks else {}), **({"busiest_s": max(used.values())} if used else {})}
        self._publish(batch, stages, latency, waiting, told)

    def _time(self, batch: Batch) -> None:
        """Note how long a batch takes, and from batch to batch; one without records tells nothing of those with.

        It grows to what has passed by the steady clock at most: where a wall clock is set forward by an hour, the next
        batch of a query that is held back would read what comes in that hour.
        """
        began, now = batch.finished - batch.batch_s, time.monotonic()
        if batch.rows:
            self._job.batches, self._job.rows = self._job.batches + 1, batch.rows
            self._job.batch_s = batch.batch_s
        if batch.rows and self._began is not None:
            passed_s = max(now - self._timed_at, self._job.period_s)
            self._job.period_s = min(max(began - self._began, batch.batch_s), passed_s)
        self._began, self._timed_at = began if batch.rows else None, now

    def _spread_due(self, batch: Batch, stages: list[Stage]) -> bool:
        """Whether it is asked how far tasks and executors lie apart: not with every batch, as it costs the driver."""
        since_s = batch.finished - self._spread_at  # below 0 where the clock was set back
        if not stages or batch.rows < 1 or 0 <= since_s < SPREAD_S:
            return False
        self._spread_at = batch.finished
        return True

    def _find_topics(self, batch: Batch) -> None:
        """Those of its source, of which a pattern may match more or fewer later on."""
        if batch.ends:
            self._job.topics = tuple(sorted({topic for topic, _ in batch.ends}))
        elif not self._job.topics and not self._warned_no_topics:
            self._warned_no_topics = True
            log.warning("%s: reads no Kafka topic; arrivals and lag are not measured, batches are", self._job.name)

    def _publish(
        self, batch: Batch, stages: list[Stage], latency: Latency | None, waiting: int | None, told: dict[str, float]
    ) -> None:
        job, began = self._job, batch.finished - batch.batch_s
        if job.clock is None or batch.finished < job.clock.wall_start or batch.batch_s <= 0:
            return  # a replay that has not begun has no time of its own
        if began < self._forward_at:
            return  # Spark times it by the clock that was set meanwhile
        behind = None
        if batch.watermark is not None:
            behind = (job.clock.at(batch.finished) - batch.watermark) / job.clock.scale
        job.publish(
            "batch", began, batch.finished, time.time(), processed_rps=batch.processed_rps, lag_records=waiting,
            batch_id=batch.batch_id, batch_rows=batch.rows, batch_s=batch.batch_s,
            stage_s=max((s.wall_s for s in stages), default=None), watermark_lag_s=behind, state_rows=batch.state_rows,
            operator_rows=batch.operator_rows,
            **(latency._asdict() if latency else {}), **batch.phases._asdict(), **told,
            **(sum_stages(stages, batch.phases.state_commit_s or 0.0) if stages else {}),
        )  # fmt: skip


def mean_record_s(before: float | None, rows: int, runs: Sequence[float]) -> float | None:
    """Return the mean run time per record of the heaviest stage after one more batch, the newest weighing a fifth.

    Args:
        before: the mean so far; None before a batch that tells.
        rows: records of the batch; of FEW or fewer its tasks' fixed cost is most of it.
        runs: run time of each stage, summed over its tasks.
    """
    if rows <= FEW or not runs:
        return before
    now = max(runs) / rows
    return now if before is None else before + (now - before) / 5


def sum_stages(stages: list[Stage], state_commit_s: float) -> dict[str, float | int]:
    """Sum what tasks did over a batch's stages; the last one writes the sink, and often commits state.

    Args:
        stages: of one batch.
        state_commit_s: seconds that its tasks took to commit state, which are no waiting for the sink.

    Returns:
        `run_s`, `gc_s`, `sink_wait_s` (seconds, summed over tasks) and `spilled_bytes`, fields of `MetricSample`.

    Raises:
        ValueError: there are no stages.
    """
    last = max(stages, key=lambda stage: stage.stage_id)
    return {
        "run_s": sum(stage.run_s for stage in stages),
        "gc_s": sum(stage.gc_s for stage in stages),
        "sink_wait_s": max(last.wait_s - state_commit_s, 0.0),
        "spilled_bytes": sum(stage.spilled_bytes for stage in stages),
    }
