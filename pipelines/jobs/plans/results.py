"""A plan's results as records to merge by key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.jobs.windows import result_key_column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tidecast.signed import SignedFrame


def to_records(results: SignedFrame, job: str) -> DataFrame:
    """Return the changes of windowed results as records for the topic `windows`, to be merged by key.

    An insertion is the result as JSON, a retraction a tombstone. The last record of a key holds: the changes of a
    group are told in order by one task, and a micro-batch that is repeated tells the same.

    Args:
        results: of an aggregate in windows, under one key column or none.
        job: name of the job.
    """
    from pyspark.sql import functions as F

    key = result_key_column(job, *results.keys)
    value = F.when(F.col("_mult") > 0, F.to_json(F.struct(*results.values)))
    return results.changes.select(F.lit("windows").alias("topic"), key.alias("key"), value.alias("value"))
