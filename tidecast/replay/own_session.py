"""A session in which a replay's queries are nobody else's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def own_session(spark: SparkSession) -> SparkSession:
    """Return a session with the settings, views and functions of another one, and queries of its own.

    In the live query's session the end of a replay would end `spark.streams.awaitAnyTermination()`, in which many a
    driver waits for its live query, and with it the application.

    Args:
        spark: the live query's; what is set or registered in it later is not taken over.
    """
    cloned: Any = spark._jsparkSession.cloneSession()
    return type(spark)(spark.sparkContext, cloned)
