"""The drifts that the ingest has reported, as Airflow keeps them: events of an asset."""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from models.alerts.knowledge import DriftSeen
from pipelines.airflow.names import DRIFT, INGEST_DAG
from tidecast.fields import LATEST_S

_log = logging.getLogger(__name__)
DriftEvent = dict[str, Any]
"""What an event says of a drift: the fields of `Drift`, `job`, `factor`, and `text` for a person. JSON values only."""
_NUMBERS, _TEXTS = ("time", "found", "before", "after", "factor"), ("job", "kind", "signal", "text")
_ROUNDED = 0.01  # by which the logarithm of a factor that somebody has rounded may differ


def valid_drifts(extras: Iterable[Any]) -> list[DriftEvent]:
    """Return those extras of asset events that tell of a drift as the ingest does; others are logged and left out.

    A person may make an event in Airflow, with anything in its extra or nothing, and an older release may have said
    less.

    Args:
        extras: what each event says, in any order.

    Returns:
        Those that are mappings with finite numbers `time`, `found`, `before`, `after` and `factor`, and texts `job`,
        `kind`, `signal` and `text`, as they came; neither moment is after the year 2100, and `factor` is about
        exp(after − before).
    """
    found = []
    for extra in extras:
        if wrong := _problem(extra):
            _log.warning("an event of the asset %s is none that %s made and is left out: %s", DRIFT, INGEST_DAG, wrong)
        else:
            found.append(extra)
    return found


def reported_at(event: Mapping[str, Any]) -> float | None:
    """Return when an asset event was made by what Airflow tells of it, epoch seconds; None where that is no moment."""
    try:
        return datetime.fromisoformat(event["timestamp"]).timestamp()
    except (KeyError, TypeError, ValueError):
        return None


def newest_drifts(events: Iterable[Mapping[str, Any]]) -> dict[str, DriftSeen]:
    """Return the newest drift of each job by what Airflow tells of asset events, newest first; others are left out.

    An event that lacks a field, or has something else in its place, is left out, too.
    """
    found: dict[str, DriftSeen] = {}
    for event in events:
        if event.get("name") != DRIFT:
            continue
        if (reported := reported_at(event)) is None:
            _log.warning("an event of the asset %s is left out: timestamp=%r", DRIFT, event.get("timestamp"))
            continue
        for drift in valid_drifts([event.get("extra")]):
            found.setdefault(drift["job"], DriftSeen(reported, float(drift["factor"])))
    return found


def _problem(extra: Any) -> str:
    """What keeps an extra from being a drift; empty where nothing does."""
    if not isinstance(extra, Mapping):
        return f"extra={extra!r}, a mapping is expected"
    for name in (*_NUMBERS, *_TEXTS):
        if name not in extra:
            return f"it has no {name}"
        value = extra[name]
        if name in _NUMBERS and not _is_number(value):
            return f"{name}={value!r}, a finite number is expected"
        if name in _TEXTS and not (isinstance(value, str) and value):
            return f"{name}={value!r}, a text is expected"
    for name in ("time", "found"):
        if extra[name] > LATEST_S:
            return f"{name}={extra[name]!r}, epoch seconds are expected, and no milliseconds"
    factor, change = extra["factor"], float(extra["after"]) - float(extra["before"])
    if factor <= 0 or abs(math.log(factor) - change) > _ROUNDED:
        return (
            f"factor={factor!r}, exp(after - before) is expected, and before and after as logarithms of the ratio to "
            f"what is usual; their difference is {change!r}"
        )
    return ""


def _is_number(value: Any) -> bool:
    """Whether it is finite as a float; JSON has greater integers."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
