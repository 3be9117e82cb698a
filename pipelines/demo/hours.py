"""The event hours of a run, and their way into the lake."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from configs.settings import Settings
from pipelines.airflow.rest import Orchestrator
from pipelines.traces.trace import load_trace


def ingest(dags: Orchestrator, settings: Settings, start: datetime, end: datetime) -> int:
    """Ingest the event hours [start, end) by the DAG, as its trigger dialog would; returns the metrics stored."""
    partition = f"{start:%Y-%m-%dT%H}/{end:%Y-%m-%dT%H}"
    run_id = dags.trigger("ingest_metrics", {"partition": partition})
    dags.wait_run("ingest_metrics", run_id)
    counts = dags.result("ingest_metrics", run_id, "ingest")
    return int(counts["metrics"]["stored"])


def history_window(settings: Settings) -> tuple[datetime, datetime]:
    """Event hours of the history."""
    start = _live_start(settings)
    return _hour(start - timedelta(days=settings.replay.history_days)), _hour(start)


def live_window(settings: Settings) -> tuple[datetime, datetime]:
    """Event hours of the live part, to the end of its last hour."""
    start = _live_start(settings)
    return _hour(start), _hour(start + timedelta(hours=settings.replay.live_hours)) + timedelta(hours=1)


def _live_start(settings: Settings) -> datetime:
    return datetime.fromtimestamp(load_trace(settings.replay).live_start, UTC)


def _hour(time: datetime) -> datetime:
    return time.replace(minute=0, second=0, microsecond=0)
