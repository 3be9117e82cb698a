"""The main managed job: events per key and window of event time, with a simulated service time per record.

`python -m pipelines.jobs.word_count --run-dir DIR [--no-agent]`. Each record on `results` is a window's counts so far
under a key of its own (`windows.result_key`), so that a repeated batch changes nothing: the last record of a key holds.
A key's total is the sum of its windows. What comes after its window is final is dropped and counted (`late_dropped`);
`tidecast backfill word_count` reads a range again and corrects its windows.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from configs.errors import SettingsError
from pipelines.jobs.event_columns import with_event
from pipelines.jobs.launch import Launch, why_not_read_again
from pipelines.jobs.running import run_job
from pipelines.jobs.service import OUTPUT, SOURCE, TYPED, Stage, service_stage
from pipelines.jobs.windows import JOB, WINDOW_MS, result_key_column, watermark_delay_ms
from pipelines.jobs.withheld import withheld_hour
from pipelines.kafka.spark import spark_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from tidecast.replay import Replayable
    from tidecast.signed import SignedFrame


REPLAY_TASKS = 2
"""Tasks of a replay's batch: a third as many as executors at most, so that live records find some free, and few of them
load classes at once, 5 to 6 s each on two cores. What a batch reads of one partition comes to little, as most of a
range is not of its event time."""


def plan(events: SignedFrame) -> DataFrame:
    """Count events (`n`) and add their sequence numbers up (`seq_sum`) per key and window: totals to merge by both."""
    from tidecast.signed import count, sum_of

    return events.window(WINDOW_MS).totals(n=count(), seq_sum=sum_of("seq"))


def signed_events(served: DataFrame, delay_ms: int) -> SignedFrame:
    """Return what the service stage let through as signed records under their keys; the refused are left out.

    The query's Spark metrics "events" hold the numbers `seen`, `late` and `rejected` (null key) of each batch.

    Args:
        served: columns of `service.TYPED`: key (null: rejected), seq (integer), late (boolean), at (epoch ms).
        delay_ms: how far behind the newest event time a record is still expected.
    """
    from pyspark.sql import functions as F

    from tidecast.signed import signed

    observed = served.observe(
        "events",
        F.count(F.lit(1)).alias("seen"),
        F.count_if("late").alias("late"),
        F.count_if(F.col("key").isNull()).alias("rejected"),
    )
    rows = observed.where("key IS NOT NULL").select("key", "seq", "at")
    # With a sign, though all insert: totals without one keep another state, and a checkpoint of before were refused.
    return signed(rows, "at", ["key"], mult=F.lit(1), delay_ms=delay_ms).select("seq")


def to_records(totals: DataFrame) -> DataFrame:
    """Return totals as records for the topic `results`.

    Args:
        totals: as `plan` makes them.

    Returns:
        Columns topic ("results"), key (`windows.result_key`) and value: JSON of key, begin and end of the window (epoch
        ms), n (its events) and seq_sum (of their sequence numbers); null where none are left.
    """
    from pyspark.sql import functions as F

    begin, end = F.col("_window_start").alias("begin"), F.col("_window_end").alias("end")
    value = F.when(F.col("_net") > 0, F.to_json(F.struct("key", begin, end, "n", "seq_sum")))
    key = result_key_column(JOB, "key")
    return totals.select(F.lit("results").alias("topic"), key.alias("key"), value.alias("value"))


def counts(events: DataFrame, stage: Stage, delay_ms: int) -> DataFrame:
    """Serve and count events: the job from Kafka's records to those for `results`, for live records and for replays.

    Args:
        events: columns of Spark's Kafka source.
        stage: the service (`service_stage`).
        delay_ms: how far behind the newest event time a record is still expected.
    """
    served = events.selectExpr(*SOURCE).mapInArrow(stage, OUTPUT).selectExpr(*TYPED)
    return to_records(plan(signed_events(served, delay_ms)))


def events_of(events: DataFrame, begin_ms: int, end_ms: int) -> DataFrame:
    """Return the valid events of a range of event time, and few others; judged without Python, and not served yet.

    Args:
        events: columns of Spark's Kafka source.
        begin_ms: of the range, epoch ms.
        end_ms: likewise, not part of it.
    """
    from pyspark.sql import functions as F

    at = F.col("event.time") * 1000
    # A ms more on either side: where times are rounded is the stage's to say.
    inside = F.col("reason").isNull() & (at >= begin_ms - 1) & (at < end_ms + 1)
    return with_event(events).where(inside).drop("event", "reason")


def start_query(launch: Launch) -> StreamingQuery:
    """Start the job's query, from `events` through service stage and windows to `results`; returns while it runs.

    Raises:
        BrokerError, KeyError: as `Launch.events`.
        SettingsError: likewise; or an hour of the load is to be corrected by a backfill, which cannot be read here.
    """
    if (why := why_not_read_again(launch.spark, JOB)) and withheld_hour(launch.settings.replay):
        raise SettingsError(
            f"{why}. A backfill of the run is to correct the records that replay.withheld_share="
            f"{launch.settings.replay.withheld_share:g} withholds: set TIDECAST_REPLAY__WITHHELD_SHARE=0."
        )
    return launch.to_kafka(counts(launch.events(), _stage(launch), watermark_delay_ms(launch.settings.replay)))


def replayable(launch: Launch, live: StreamingQuery) -> Replayable:
    """Return how ranges of the job are read again and correct `results`.

    Args:
        launch: of the job.
        live: its query.

    Raises:
        BrokerError, SettingsError: as `Launch.events`.
    """
    from tidecast.backfill import replay_into_topic
    from tidecast.backfill.topic.into import WINDOW

    def again(events: DataFrame, begin_ms: int, end_ms: int) -> DataFrame:
        # Nothing of the range is late for a replay of it: the watermark stays before its begin.
        few = events_of(events, begin_ms, end_ms).coalesce(REPLAY_TASKS)
        return counts(few, _stage(launch), end_ms - begin_ms + 2)

    kafka = launch.settings.kafka
    source = {**spark_options(kafka), "kafka.fetch.max.wait.ms": "20"}
    own = rf"(?s)\A{JOB}:.*{WINDOW}"  # others write to the topic, too: what the replay does not count is deleted
    return replay_into_topic(
        launch.spark, kafka.topic("results"), again, source, live, str(launch.run_dir.resolve() / JOB), own
    )  # fmt: skip


def _stage(launch: Launch) -> Stage:
    return service_stage(launch.settings.job.service_ms / 1000, launch.settings.kafka.without_signing_keys(), JOB)


if __name__ == "__main__":
    sys.exit(run_job(JOB, start_query, replay=replayable, keyed=True))
