"""The first managed job: running counts per key of everything on `events`, with a simulated service time per record.

`python -m pipelines.jobs.word_count --run-dir DIR [--no-agent]`. Not windowed: late events count too, and are reported.
Each record on `results` is a key's running total, so that a repeated batch changes nothing: the last record of a key
holds.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pipelines.jobs.running import Launch, run_job
from pipelines.jobs.service import OUTPUT, SOURCE, TYPED, service_stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

JOB = "word_count"


def running_totals(served: DataFrame) -> DataFrame:
    """Count events per key as running totals, as records for the topic `results`; rejected events are left out.

    The query's Spark metrics "events" hold the numbers `seen`, `late` and `rejected` (null key) of each batch.

    Args:
        served: columns of `service.TYPED`: key (null: rejected), seq (integer), late (boolean).

    Returns:
        Columns topic ("results"), key and value (JSON of key, n (its events) and seq_sum (of their sequence numbers)).
    """
    from pyspark.sql import functions as F

    observed = served.observe(
        "events",
        F.count(F.lit(1)).alias("seen"),
        F.count_if("late").alias("late"),
        F.count_if(F.col("key").isNull()).alias("rejected"),
    )
    counts = (
        observed.where("key IS NOT NULL")
        .groupBy("key")
        .agg(F.count(F.lit(1)).alias("n"), F.sum("seq").alias("seq_sum"))
    )
    return counts.select(
        F.lit("results").alias("topic"), F.col("key"), F.to_json(F.struct("key", "n", "seq_sum")).alias("value")
    )


def start_query(launch: Launch) -> StreamingQuery:
    """Start the job's query, from `events` through service stage and totals to `results`; returns while it runs.

    Raises:
        BrokerError, SettingsError, KeyError: as `Launch.events`.
    """
    settings = launch.settings
    stage = service_stage(settings.job.service_ms / 1000, settings.kafka.model_dump(), JOB)
    served = launch.events().selectExpr(*SOURCE).mapInArrow(stage, OUTPUT).selectExpr(*TYPED)
    return launch.to_kafka(running_totals(served))


if __name__ == "__main__":
    sys.exit(run_job(JOB, start_query))
