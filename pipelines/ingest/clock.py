"""Whether the ingest's own clock is behind: told by several jobs whose newest records are ahead, or by the broker."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from configs.contract import jobs_with_contract
from configs.errors import FinalError
from tidecast.messages import FUTURE_S

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class ClockError(FinalError):
    """Records are ahead, and so many that this computer's clock seems to be behind; none of them may be committed."""


def refuse_if_behind(rows: DataFrame, kind: type, now: float, contracts: Path) -> None:
    """Raise where rows would be refused as of the future because this computer's clock is behind.

    One job that is ahead has a wrong clock itself, and its rows are refused. Where the newest rows of most keys, two
    at least, or the broker's own stamps (topics with `message.timestamp.type=LogAppendTime`) are ahead, the clock
    that all were judged by is the likelier one to be wrong. Rows that were refused would stay so for good, as a re-run
    judges by the first run's time: so none is taken, and the next run finds all.

    Args:
        rows: as `parse_records` returns them.
        kind: their class.
        now: epoch seconds by which they were judged.
        contracts: folder of job contracts. Where rows have their job as key, those of others count for nothing: anybody
            may make up some, which are ahead for good.

    Raises:
        ClockError: the clock seems to be behind.
        Exception: as pyspark raises it, where the rows cannot be computed.
    """
    from pyspark.sql import functions as F

    newest = F.max_by("ahead_s", "kafka_offset").alias("ahead_s")
    by_key = rows.groupBy("kafka_key").agg(newest, F.max("stamped_s").alias("stamped_s"))
    counted = F.lit(True) if hasattr(kind, "KEY") else F.col("kafka_key").isin(jobs_with_contract(contracts))
    their_s = F.when(counted, F.col("ahead_s"))
    any_ahead, keys, ahead, most_s, stamped_s = by_key.agg(
        F.count("ahead_s"), F.count(F.when(counted, 1)), F.count(their_s), F.max(their_s), F.max("stamped_s")
    ).collect()[0]
    if not any_ahead:
        return
    if stamped_s is not None and stamped_s > now + FUTURE_S:
        who = f"the broker itself stamped records {stamped_s - now:.0f} s ahead"
    elif ahead > 1 and 2 * ahead > keys:
        who = f"the newest records of {ahead} of {keys} jobs are up to {most_s:.0f} s ahead"
    else:
        return
    shown = f"{datetime.fromtimestamp(now, UTC):%Y-%m-%d %H:%M:%S} UTC"
    raise ClockError(
        f"{who} of this computer's clock ({shown}), which seems to be behind: nothing of the topic was taken. Set this "
        "clock (NTP), or, where it is right, those of the senders; the next run takes all of it."
    )
