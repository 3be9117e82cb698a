"""A session in which a replay's queries are nobody else's, and how they are started there."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EMPTY = "spark.sql.streaming.noDataMicroBatches.enabled"
_ALONE = threading.Lock()
"""Held while a session's setting is another one: replays of one job are started in several threads."""


def own_session(spark: SparkSession) -> SparkSession:
    """Return a session with the settings, views and functions of another one, and queries of its own.

    In the live query's session the end of a replay would end `spark.streams.awaitAnyTermination()`, in which many a
    driver waits for its live query, and with it the application.

    Args:
        spark: the live query's; what is set or registered in it later is not taken over.
    """
    cloned: Any = spark._jsparkSession.cloneSession()
    return type(spark)(spark.sparkContext, cloned)


def start_replay(writer: Any, output_mode: str, spark: SparkSession) -> Any:
    """Start a replay's query and return it; of totals no batch runs without records: it would only shrink the state.

    Args:
        writer: of the query.
        output_mode: of it: `update` for totals. A change log tells a window when the watermark has passed it.
        spark: its session.
    """
    if output_mode != "update":
        return writer.start()
    with _ALONE:
        before = spark.conf.get(_EMPTY, "true") or "true"
        spark.conf.set(_EMPTY, "false")
        try:
            return writer.start()
        finally:
            spark.conf.set(_EMPTY, before)
