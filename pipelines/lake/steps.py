"""Loads by step, aggregated in Spark, so that the driver needs memory for steps only, not for records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from models.forecast.core.series import GRAIN, MAX_STEPS, Series, average_pieces

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def step_sums(records: DataFrame, step_s: float) -> DataFrame:
    """Sum records per job and time step; a record that lies in several steps counts in each by its share of time.

    Steps begin at multiples of `step_s` since the epoch. Spark evaluates the result lazily and raises then. A record of
    over 10⁶ (MAX_STEPS) steps is put into its first step only, with its end as `until`.

    Args:
        records: columns job, time (epoch seconds), span_s (seconds, above 0), arrival_rps (records/s); each covers
            [time, time + span_s).
        step_s: seconds per step.

    Returns:
        Columns job, step (index since the epoch), weight (seconds of the step that records cover, summed over records),
        total (number of records of the load in the step), until (latest end of an input record in it, epoch seconds).

    Raises:
        AnalysisException: a column is missing.
    """
    from pyspark.sql import functions as F

    step, grain = f"{step_s:.17g}D", f"{GRAIN:.17g}D"
    seen = f"greatest(least(until, (step + 1) * {step}) - greatest(time, step * {step}), 0D)"
    placed = records.selectExpr(
        "*", "time + span_s AS until", f"floor(time / {step} + {grain}) AS begin",
        f"greatest(ceil((time + span_s) / {step} - {grain}) - 1, floor(time / {step} + {grain})) AS last",
    )  # fmt: skip
    # A record that straddles more steps than a series may have is placed by its end, not by a row for each of them.
    pieces = placed.selectExpr("*", f"explode(sequence(begin, if(last - begin > {MAX_STEPS}, begin, last))) AS step")
    return (
        pieces.selectExpr("job", "step", "until", f"{seen} AS seen", f"{seen} * arrival_rps AS amount")
        .groupBy("job", "step")
        .agg(F.sum("seen").alias("weight"), F.sum("amount").alias("total"), F.max("until").alias("until"))
    )


def mean_loads(records: DataFrame, step_s: float) -> dict[str, Series]:
    """Return {job: its mean load in every time step, records/s} for all jobs that have records; runs a Spark job.

    A step of which less than half is covered is NaN; an incomplete last step is left out.

    Args:
        records: columns as `step_sums` takes them: job, time, span_s, arrival_rps.
        step_s: seconds per step.

    Raises:
        SeriesError: the times of a job span more than `MAX_STEPS` (10⁶) steps.
        AnalysisException: a column is missing.
    """
    sums: Any = step_sums(records, step_s).orderBy("job", "step").toPandas()
    found = {}
    for job, of_job in sums.groupby("job"):
        step, weight, total, until = (of_job[name].to_numpy() for name in ("step", "weight", "total", "until"))
        found[str(job)] = average_pieces(step, weight, total, float(until.max()), step_s)
    return found
