"""A job of the pool: events per key after a service time, from a topic of its own, JVM only.

`python -m pipelines.bench.team.real.job JOB --run-dir DIR`. Each record on `JOB.results` is a key's counts so far
under that key: the last one of a key holds.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pipelines.jobs.event_columns import with_event
from pipelines.jobs.launch import Launch
from pipelines.jobs.running import run_job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


def events_of(job: str) -> str:
    """Return the topic that a job reads."""
    return f"{job}.events"


def results_of(job: str) -> str:
    """Return the topic that it writes."""
    return f"{job}.results"


def total_per_key(events: DataFrame, service_ms: float, topic: str) -> DataFrame:
    """Count events (`n`) and add their sequence numbers up (`seq_sum`) per key, as records for a topic.

    Args:
        events: columns of Spark's Kafka source.
        service_ms: service time of each, a sleep in the JVM.
        topic: of the results.
    """
    from pyspark.sql import functions as F

    sleep = F.reflect(F.lit("java.lang.Thread"), F.lit("sleep"), F.lit(round(service_ms)).cast("long"))
    served = (
        with_event(events).where("reason IS NULL").select("event.key", "event.seq", sleep.alias("served"))
        .where("served IS NULL OR served IS NOT NULL")  # whoever does not use the answer does not wait for it
    )  # fmt: skip
    totals = served.groupBy("key").agg(F.count(F.lit(1)).alias("n"), F.sum("seq").alias("seq_sum"))
    value = F.to_json(F.struct("n", "seq_sum"))
    return totals.select(F.lit(topic).alias("topic"), "key", value.alias("value"))


def start_query(launch: Launch) -> StreamingQuery:
    """Start the job's query; returns while it runs.

    Raises:
        BrokerError, SettingsError, KeyError: as `Launch.records`.
    """
    events, results = launch.records(events_of(launch.job)), results_of(launch.job)
    return launch.to_kafka(total_per_key(events, launch.settings.job.service_ms, results), topic=results)


if __name__ == "__main__":
    name, *rest = sys.argv[1:]
    sys.exit(run_job(name, start_query, rest, topics=(events_of(name), results_of(name))))
