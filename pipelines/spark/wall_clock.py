"""The wall clock of Spark's JVM: a query waits by it for its next micro-batch, an hour where it is set back by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from tidecast.spark.set_back import WatchedClock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def jvm_clock(spark: SparkSession) -> WatchedClock:
    """Return the clock of a session's JVM, looked at for the first time."""
    context: Any = spark.sparkContext
    millis = context._jvm.java.lang.System.currentTimeMillis
    return WatchedClock(lambda: float(millis()) / 1000)


class ClockWatch(NamedTuple):
    """What is asked about the clock by which Spark waits for a query's next micro-batch.

    Attributes:
        set_back_s: by how much it was set back since it was asked last, seconds; 0: it was not.
        wait_until_right: returns once what is read is not refused as of the future, or after some minutes.
    """

    set_back_s: Callable[[], float]
    wait_until_right: Callable[[], None]
