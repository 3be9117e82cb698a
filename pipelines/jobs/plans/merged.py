"""Managed jobs whose results are merged into a table of their run folder; they begin as their contract's recovery says.

After an outage such a job may begin with the newest records while the gap is filled as a replay (`tidecast.recovery`):
live and gap meet in the table. On a topic nobody could tell a window of which only a part was seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from configs.contract import Contract
from configs.errors import SettingsError
from configs.settings import Settings
from models.backfill.live.task_target import task_target_s
from pipelines.jobs.launch import Launch, why_not_read_again
from pipelines.kafka.clocks import read_clock
from pipelines.kafka.spark import spark_options
from tidecast.control import WALL

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from tidecast.recovery import Recovery
    from tidecast.replay import Replayable

RangePlan = Callable[["DataFrame", int, int], "DataFrame"]
"""From records, and begin and end of a range of event time, ms, to the totals of its windows."""
TOPIC = "events"
MODE = "update"
"""Output mode: totals of a window are told again as they change."""


def table_of(run_dir: Path, job: str) -> Path:
    """Return the absolute path of the table of a job's results."""
    return run_dir.resolve() / f"{job}.table"


class MergedJob:
    """The query of such a job, and how its gaps and ranges of it are read again beside it."""

    def __init__(
        self, plan: Callable[[DataFrame], DataFrame], keys: Sequence[str], again: RangePlan | None = None
    ) -> None:  # fmt: skip
        """Describe it; nothing runs before `start`.

        Args:
            plan: from records, with the columns of Spark's Kafka source, to totals in windows of one length.
            keys: columns of the totals' key, beside those of the window.
            again: the plan of a replay's stream, for which none of its range's records may be late; None: `plan`, which
                drops in a replay what comes later than it waits.
        """
        self._plan, self._keys, self._again = plan, tuple(keys), again
        self._recovery: Recovery | None = None

    def start(self, launch: Launch) -> StreamingQuery:
        """Start the live query: in order, or the newest records first where the contract says so; says which.

        Raises:
            BrokerError, KeyError: as `Launch.source`.
            SettingsError: likewise; or the newest records are to come first, and the gap cannot be filled.
            ConnectionError: the broker does not answer.
        """
        from tidecast.merge import MergeSink
        from tidecast.recovery import recover
        from tidecast.recovery.checkpoint import RecoveryError

        settings, order = launch.settings, launch.recovery.order
        if order == "live_first" and (why := why_not_read_again(launch.spark, launch.job)):
            raise SettingsError(f"{why}. State backpressure.recovery.order=in_order in {launch.job}.yaml")
        sink = MergeSink(str(table_of(launch.run_dir, launch.job)), self._keys)
        source = launch.source(TOPIC)
        clock = read_clock(settings.kafka, launch.job) or WALL
        task_s = task_target_s(launch.contract or Contract(job=launch.job))
        try:
            again = recover(
                launch.spark, launch.job, sink, source, str(launch.checkpoint), order, clock=clock, task_s=task_s
            )
        except RecoveryError as error:
            raise SettingsError(f"{launch.job}: {error}") from None
        print(f"{launch.job}: {again.text}", flush=True)
        writer = self._plan(again.records).writeStream.queryName(launch.job).outputMode(MODE)
        query: StreamingQuery = again.start(writer.trigger(processingTime=settings.job.trigger))
        self._recovery = again
        return query

    def replayable(self, launch: Launch, live: StreamingQuery) -> Replayable:
        """Return how gaps and ranges are read again and correct the table.

        Args:
            launch: that `start` was given.
            live: the query that it returned.

        Raises:
            ValueError: nothing was started.
        """
        if self._recovery is None:
            raise ValueError(f"{launch.job}: start its query first; what is to be filled follows from how it began")
        trigger = launch.settings.job.trigger
        return self._recovery.replay_into(self._plan, output_mode=MODE, trigger=trigger, ranged=self._again)

    def apart(self, job: str, spark: SparkSession, settings: Settings, run_dir: Path) -> Replayable:
        """Return how ranges are read again and correct the table where the live query is another application's.

        Raises:
            BrokerError: no broker is set.
            SettingsError: a security option that Spark's client cannot follow.
        """
        from tidecast.backfill import replay_into

        source = {**spark_options(settings.kafka), "kafka.fetch.max.wait.ms": "20"}
        return replay_into(
            spark, str(table_of(run_dir, job)), self._plan, source, output_mode=MODE, trigger=settings.job.trigger,
            ranged=self._again,
        )  # fmt: skip
