"""What a stream's operators had to leave out, from the progress that Spark reports of each micro-batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryProgress


def late_dropped(progress: StreamingQueryProgress) -> int:
    """Return how many records of a micro-batch came too late for an operator; each in several windows counts in each.

    Of what Spark's own aggregate dropped the rows that it had made of them are counted: one per key and window.

    Args:
        progress: of one micro-batch, as `query.lastProgress` or a listener has it.
    """
    by_spark = sum(operator.numRowsDroppedByWatermark for operator in progress.stateOperators)
    return by_spark + _observed(progress, "late_dropped")


def negative_keys(progress: StreamingQueryProgress) -> int:
    """Return how many groups had a net below 0 when they were closed: retractions of what never came."""
    return _observed(progress, "negative_keys")


def _observed(progress: StreamingQueryProgress, metric: str) -> int:
    rows = progress.observedMetrics.items()
    return sum(row[metric] or 0 for name, row in rows if name.startswith("signed "))
