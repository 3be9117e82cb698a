"""How many events stand in each window, approximately. `python -m pipelines.jobs.plans.key_estimates --run-dir DIR`.

By theta sketches, which take retractions; their size follows from the contract's `error.different`. Each result has
its bound.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from configs.contract import Contract
from models.policy.core.sustained import sustained_rates
from pipelines.jobs.launch import Launch
from pipelines.jobs.plans.records import signed_events
from pipelines.jobs.plans.sized import sized
from pipelines.jobs.running import run_job
from pipelines.jobs.windows import WINDOW_MS, result_key_column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from tidecast.signed import SignedFrame

JOB = "key_estimates"


def plan(events: SignedFrame, contract: Contract, speed: float) -> DataFrame:
    """Count the different sequence numbers that stand (`different`), per key and window of ten minutes.

    Args:
        events: under their keys.
        contract: with the largest error.
        speed: seconds of the events' time per wall second.
    """
    from tidecast.signed import approx_distinct

    expected = sustained_rates(contract).most_rps * WINDOW_MS / 1000 / speed
    different = sized(contract, "different", partial(approx_distinct, "seq", once=True), max(expected, 1.0))
    return events.window(WINDOW_MS).estimates(different=different)


def to_records(estimates: DataFrame) -> DataFrame:
    """Return estimates as records for the topic `windows`: JSON of estimate, low, high, eps, pf and n."""
    from pyspark.sql import functions as F

    told = F.struct(
        "different.estimate", "different.low", "different.high", "different.eps", "different.pf", "different.n"
    )
    value = F.when(F.col("_net") > 0, F.to_json(told))
    key = result_key_column(JOB, "key")
    return estimates.select(F.lit("windows").alias("topic"), key.alias("key"), value.alias("value"))


def start_query(launch: Launch) -> StreamingQuery:
    """Start the job's query, from `events` to `windows`; returns while it runs.

    Raises:
        BrokerError, SettingsError, KeyError: as `Launch.events`; or the contract limits no error, or too much.
    """
    contract = launch.contract or Contract(job=JOB)
    made = plan(signed_events(launch.events()), contract, launch.settings.replay.speed)
    return launch.to_kafka(to_records(made), topic="windows")


if __name__ == "__main__":
    sys.exit(run_job(JOB, start_query, topics=("events", "windows"), room="plans"))
