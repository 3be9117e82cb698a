"""Loads by step, aggregated in Spark or batch by batch, so that memory is needed for steps only, not for records."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from configs.bounds import DAY_S
from models.forecast.core.parts import select_miscounted, select_parts
from models.forecast.core.series import GRAIN, MAX_STEPS, Series, SeriesError, average_pieces, cut_records

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame

_log = logging.getLogger(__name__)


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


def sum_records(frames: Iterable[pd.DataFrame], step_s: float) -> pd.DataFrame:
    """Sum records per frame, job and time step as `step_sums` does, without Spark; for `loads_of_sums`.

    Args:
        frames: columns as `step_sums` takes them, without missing values; one is held at a time.
        step_s: seconds per step.

    Returns:
        Columns job, step, weight, total, until (latest end of a record that begins in the step, −∞ without one); a step
        of which two frames have records has two rows.

    Raises:
        KeyError: a column is missing.
    """
    import pandas as pd

    parts = [pd.DataFrame(columns=["job", "step", "weight", "total", "until"])]
    for frame in frames:
        for job, mine in frame.groupby("job"):
            times, rates, spans = (mine[name].to_numpy(np.float64) for name in ("time", "arrival_rps", "span_s"))
            pieces, *amounts = cut_records(times, rates, spans, step_s)
            steps, at = np.unique(pieces, return_inverse=True)
            weight, total = (np.bincount(at, amount) for amount in amounts)
            until = np.full(len(steps), -np.inf)
            np.maximum.at(
                until, np.searchsorted(steps, np.floor(times / step_s + GRAIN).astype(np.int64)), times + spans
            )
            parts.append(pd.DataFrame({"job": job, "step": steps, "weight": weight, "total": total, "until": until}))
    return pd.concat(parts[1:]) if parts[1:] else parts[0]


def newest_records(records: DataFrame, span_s: float) -> DataFrame:
    """Keep of every job the records that end in the last `span_s` seconds before the end of its newest one.

    Records that lie far from a job's others (`select_parts`, by day) are none of its newest. Runs a Spark job; the
    result is evaluated lazily and raises then.

    Args:
        records: columns job, time (epoch seconds) and span_s (seconds), and others.
        span_s: seconds of job time.

    Raises:
        AnalysisException: a column is missing.
    """
    from pyspark.sql import functions as F

    until = F.expr("time + span_s")
    by_day = records.groupBy("job", F.floor(until / DAY_S).alias("day"))
    days: pd.DataFrame = by_day.agg(F.sum("span_s").alias("covered"), F.max(until).alias("newest")).toPandas()
    newest = records.sparkSession.createDataFrame([*_newest_ends(days).items()], "job string, newest double")
    kept = records.join(F.broadcast(newest), "job").where(f"time + span_s > newest - {span_s:.17g}D")
    return kept.where("time + span_s <= newest").drop("newest")


def newest_frames(read: Callable[[float], Iterable[pd.DataFrame]], span_s: float) -> Iterator[pd.DataFrame]:
    """Keep of frames of records what `newest_records` keeps, without Spark; one frame is held at a time.

    Args:
        read: reads the frames, columns as `newest_records` takes them; called for all (−∞), then with the epoch seconds
            before which no record that is kept begins. It may leave those out then.
        span_s: seconds of job time.

    Raises:
        KeyError: a column is missing.
    """
    import pandas as pd

    parts = [pd.DataFrame({"job": [], "day": [], "covered": [], "oldest": [], "newest": []})]
    for frame in read(-math.inf):
        ended = frame.assign(newest=frame["time"] + frame["span_s"])
        by_day = ended.groupby(["job", ended["newest"].floordiv(DAY_S).rename("day")])
        amounts = by_day.agg(covered=("span_s", "sum"), oldest=("time", "min"), newest=("newest", "max"))
        parts.append(amounts.reset_index())
    days = pd.concat(parts[1:] or parts)
    ends = _newest_ends(days)
    kept = days["newest"] > days["job"].map(ends) - span_s
    for frame in read(float(days["oldest"][kept].min())):
        until, newest = frame["time"] + frame["span_s"], frame["job"].map(ends)
        yield frame[(until > newest - span_s) & (until <= newest)]


def _newest_ends(days: pd.DataFrame) -> dict[str, float]:
    """The end of each job's newest record, by the days of its records; of days that lie near the others."""
    return {
        str(job): float(of_job["newest"][near].max())
        for job, of_job in days.groupby("job")
        if (near := select_parts(of_job["day"].to_numpy(np.int64), of_job["covered"].to_numpy(np.float64), DAY_S)).any()
    }


def mean_loads(records: DataFrame, step_s: float, leave_out: bool = False) -> dict[str, Series]:
    """Return {job: its mean load in every time step, records/s} for all jobs that have records; runs a Spark job.

    A step of which less than half is covered is NaN; an incomplete last step is left out. So are, which is logged,
    steps that lie far from a job's others (`select_parts`); and NaN are loads far above them (`select_miscounted`).

    Args:
        records: columns as `step_sums` takes them: job, time, span_s, arrival_rps.
        step_s: seconds per step.
        leave_out: whether a job that makes no series is logged and left out, as one must not stop the others.

    Raises:
        SeriesError: the times of a job span more than `MAX_STEPS` (10⁶) steps, unless it is left out.
        AnalysisException: a column is missing.
    """
    return loads_of_sums(step_sums(records, step_s).orderBy("job", "step").toPandas(), step_s, leave_out)


def loads_of_sums(sums: pd.DataFrame, step_s: float, leave_out: bool = False) -> dict[str, Series]:
    """Return {job: its mean load} from the sums of `step_sums`, as `mean_loads` does.

    Args:
        sums: columns job, step, weight, total, until.
        step_s: seconds per step.
        leave_out: whether a job that makes no series is logged and left out.

    Raises:
        SeriesError: the times of a job span more than `MAX_STEPS` (10⁶) steps, unless it is left out.
        KeyError: a column is missing.
    """
    found = {}
    for job, of_job in sums.groupby("job"):
        step, weight, total, until = (of_job[name].to_numpy() for name in ("step", "weight", "total", "until"))
        kept = select_parts(step.astype(np.int64), weight.astype(np.float64), step_s)
        if not kept.all():
            away = step[~kept]
            _log.warning(
                "%s: %d of %d steps are left out, %s to %s (UTC): far from the others; is a clock wrong?",
                job, len(away), len(step), _day(away.min() * step_s), _day(away.max() * step_s),
            )  # fmt: skip
        try:
            load = average_pieces(step[kept], weight[kept], total[kept], float(until[kept].max()), step_s)
        except SeriesError as error:
            if not leave_out:
                raise SeriesError(f"{job}: {error}") from None
            _log.warning("%s is left out: %s", job, error)
            continue
        found[str(job)] = _without_miscounted(str(job), load)
    return found


def _without_miscounted(job: str, load: Series) -> Series:
    if not (wrong := select_miscounted(load.values)).any():
        return load
    at = int(np.argmax(wrong))
    _log.warning(
        "%s: %d of %d steps count as missing, the first of %.3g records/s on %s (UTC): far above the others; did the "
        "job's agent miscount?", job, wrong.sum(), len(load), load.values[at], _day(load.start + at * load.step_s),
    )  # fmt: skip
    return replace(load, values=np.where(wrong, np.nan, load.values))


def _day(epoch: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(epoch))
