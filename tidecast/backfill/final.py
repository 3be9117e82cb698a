"""Which windows of a live query are final: no later micro-batch of it tells them again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tidecast.backfill.spec import BackfillError, instant
from tidecast.spark.progress import event_s

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def watermark_ms(live: Any) -> int | None:
    """Return the watermark up to which a running query drops what comes, ms of event time; None before it has told one.

    It is that of the newest micro-batch that ran: the next one drops by it. A query that had nothing to do since it was
    started tells the one that it goes on with. One after the year 9999 is told as that year's end.

    Args:
        live: the query.
    """
    stamp = _event_time(live)[0].get("watermark")
    return None if stamp is None else round(event_s(stamp) * 1000)


def why_open(live: Any, end_ms: int) -> str:
    """Say in words that live records may still change windows of a range; nothing where they cannot.

    Args:
        live: the query.
        end_ms: of the range, event time.
    """
    watermark = watermark_ms(live)
    if watermark is not None and watermark >= end_ms:
        return ""
    at = "is not known yet" if watermark is None else f"is at {instant(watermark)}"
    return f"live records may still change windows before {instant(end_ms)}, the live query's watermark {at}"


def check_final(live: Any, end_ms: int, name: str) -> None:
    """Refuse a range whose windows live records may still change; one of which that is not known yet passes.

    Args:
        live: the query; one that has just started tells its watermark with its first micro-batch.
        end_ms: of the range, event time.
        name: of the replay.

    Raises:
        BackfillError: the windows are open, or the query's plan has no watermark, so that they always are.
    """
    told, ran = _event_time(live)
    if ran and "watermark" not in told:
        raise BackfillError(
            f"replay {name}: the live query has no watermark, so that none of its windows is ever final, and what it "
            "told of them after a correction would not be seen: give its plan one (withWatermark)"
        )
    if told and (why := why_open(live, end_ms)):
        raise BackfillError(f"replay {name}: {why}: end the range there, or go on with it (--resume) then")


def live_query(spark: SparkSession, query: str) -> Any:
    """Return the query of an id that runs in this application, in whichever session; None where none does.

    Args:
        spark: a session of the application.
        query: Spark's id of it; empty: unknown.
    """
    from pyspark.sql.streaming.query import StreamingQuery

    if not query:
        return None
    jvm: Any = spark._jvm
    shared: Any = spark._jsparkSession.sharedState()
    found = shared.activeStreamingQueries().get(jvm.java.util.UUID.fromString(query))
    return None if found is None else StreamingQuery(found)


def _event_time(live: Any) -> tuple[dict[str, Any], bool]:
    """What its newest micro-batch, or else its newest report, says of event time; and whether a micro-batch ran."""
    told = [json.loads(progress.json) for progress in live.recentProgress]
    ran = [one for one in told if "addBatch" in (one.get("durationMs") or {})]
    return (ran or told or [{}])[-1].get("eventTime") or {}, bool(ran)
