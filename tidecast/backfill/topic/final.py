"""Which windows of a live query are final: no later micro-batch of it tells them again."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from tidecast.backfill.spec import instant


def watermark_ms(live: Any) -> int | None:
    """Return the watermark up to which a running query drops what comes, ms of event time; None before it has told one.

    It is that of the newest micro-batch that ran: the next one drops by it. A query that had nothing to do since it was
    started tells the one that it goes on with.

    Args:
        live: the query.
    """
    told = [json.loads(progress.json) for progress in live.recentProgress]
    ran = [one for one in told if "addBatch" in (one.get("durationMs") or {})]
    stamp = ((ran or told or [{}])[-1].get("eventTime") or {}).get("watermark")
    return None if stamp is None else round(datetime.fromisoformat(stamp).timestamp() * 1000)


def open_windows(live: Any, end_ms: int) -> str:
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
