"""The wall clock of Spark's JVM: a query waits by it for its next micro-batch, an hour where it is set back by one."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SET_BACK_S, PROMPT_S = 5.0, 1.0
"""Seconds by which a clock that is set back counts; and within which the JVM has to say what it shows."""


class JvmClock:
    """Says by how much the wall clock was set back since it was asked last, against the steady clock."""

    def __init__(self, spark: SparkSession) -> None:
        """Look at it for the first time."""
        context: Any = spark.sparkContext
        self._millis = context._jvm.java.lang.System.currentTimeMillis
        self._ahead_s = float("-inf")
        self.set_back_s()

    def now_s(self) -> float:
        """Return what it shows, epoch seconds."""
        return float(self._millis()) / 1000

    def set_back_s(self) -> float:
        """Return seconds by which it was set back since the last look; 0: by less than SET_BACK_S, or not at all."""
        began_s = time.monotonic()
        shown_s = self.now_s()
        if time.monotonic() - began_s > PROMPT_S:  # of a JVM that stood still it is not known when it was
            return 0.0
        before_s, self._ahead_s = self._ahead_s, shown_s - began_s
        fell_s = before_s - self._ahead_s
        return fell_s if fell_s > SET_BACK_S else 0.0


class ClockWatch(NamedTuple):
    """What is asked about the clock by which Spark waits for a query's next micro-batch.

    Attributes:
        set_back_s: by how much it was set back since it was asked last, seconds; 0: it was not.
        wait_until_right: returns once what is read is not refused as of the future, or after some minutes.
    """

    set_back_s: Callable[[], float]
    wait_until_right: Callable[[], None]
