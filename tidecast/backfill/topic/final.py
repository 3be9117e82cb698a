"""Which windows of a live query are final: no later micro-batch of it tells them again."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from tidecast.backfill.spec import BackfillError, instant


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


def refuse_open_windows(live: Any, name: str, end_ms: int) -> None:
    """Refuse a range with windows that live records may still change.

    Args:
        live: the query.
        name: id of the replay.
        end_ms: of the range, event time.

    Raises:
        BackfillError: the query's watermark is before the range's end, or not known yet.
    """
    watermark = watermark_ms(live)
    if watermark is None or watermark < end_ms:
        at = "is not known yet" if watermark is None else f"is at {instant(watermark)}"
        raise BackfillError(
            f"replay {name}: live records may still change windows before {instant(end_ms)}, the live query's watermark"
            f" {at}: end the range there, or go on with the replay (--resume) once it is past"
        )
