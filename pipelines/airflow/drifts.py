"""The drifts that the ingest has reported, as Airflow keeps them: events of the asset `drift`."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from models.alerts.knowledge import DriftSeen

_log = logging.getLogger(__name__)
INGEST_DAG, DRIFT = "ingest_metrics", "drift"
"""The DAG that reports drifts, and the asset by which it does."""


def newest_drifts(events: Iterable[Mapping[str, Any]]) -> dict[str, DriftSeen]:
    """Return the newest drift of each job by what Airflow tells of asset events, newest first; others are left out.

    An event that lacks a field, or has something else in its place, is left out, too.
    """
    found: dict[str, DriftSeen] = {}
    for event in events:
        try:
            if event["name"] == DRIFT:
                reported = datetime.fromisoformat(event["timestamp"]).timestamp()
                found.setdefault(str(event["extra"]["job"]), DriftSeen(reported, float(event["extra"]["factor"])))
        except (KeyError, TypeError, ValueError):
            _log.warning("an asset event of %s is none of ours and is left out", INGEST_DAG)
    return found
