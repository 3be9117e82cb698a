"""The managed job: running counts per key of everything on `events`, at a service time per record.

`python -m pipelines.jobs.word_count --run-dir DIR [--no-agent]`. Not windowed: late events count too, and are reported.
What goes to `results` is each key's running total, so that a repeated batch changes nothing: the last record of a key
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


def totals(served: DataFrame) -> DataFrame:
    """Running total per key, as records for `results`: columns topic, key, value."""
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
    """Read, serve, count, publish."""
    settings = launch.settings
    stage = service_stage(settings.job.service_ms / 1000, settings.kafka.model_dump(), JOB)
    served = launch.events().selectExpr(*SOURCE).mapInArrow(stage, OUTPUT).selectExpr(*TYPED)
    return launch.to_kafka(totals(served))


if __name__ == "__main__":
    sys.exit(run_job(JOB, start_query))
