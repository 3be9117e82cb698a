"""The fast path over HTTP, for people and dashboards: forecasts as of a time, health, Prometheus' figures.

A process of its own with a reader of its own: what is asked here costs the serving loop nothing, not even its lock on
the interpreter. It listens on the loopback and demands a bearer token, except for the bare word that it lives.
"""

from __future__ import annotations

import hmac
import json
import time
from collections.abc import Collection
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, HTTPException, Query, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from pipelines.serve.http.status import STATUS, read_status
from pipelines.serve.step.keys import forecast_key
from pipelines.serve.step.records import ForecastValue, unpacked
from pipelines.store import NotStable, Pruned, StoredRecord, StoreError
from pipelines.store.disk.errors import BadInput
from pipelines.store.reading.reads import Reads

SILENT_S = 5.0
"""A server that has said nothing of itself for so long is not there."""
_REFUSED = ((NotStable, 409), (Pruned, 410), (BadInput, 422))


def app(reader: Reads, step_s: float, jobs: Collection[str], token: str) -> FastAPI:
    """The application.

    Args:
        reader: of the store.
        step_s: seconds per window.
        jobs: those with a contract.
        token: that a request must bear.
    """

    def allowed(authorization: Annotated[str, Header()] = "") -> None:
        if not hmac.compare_digest(authorization.encode(), f"Bearer {token}".encode()):
            raise HTTPException(
                401, "a bearer token is demanded: Authorization: Bearer ...", {"WWW-Authenticate": "Bearer"}
            )

    made = FastAPI(title="Tidecast fast path", docs_url=None, redoc_url=None, openapi_url=None)
    guarded = [Depends(allowed)]

    @made.exception_handler(StoreError)
    def refused(request: Request, error: StoreError) -> JSONResponse:
        status = next((status for kind, status in _REFUSED if isinstance(error, kind)), 503)
        return JSONResponse({"detail": str(error)}, status)

    @made.get("/health")
    def health() -> JSONResponse:
        """Whether a server is at work; no token, and no word more."""
        status = read_status(reader.get_meta(STATUS))
        alive = status is not None and time.time() - status.wall_time < SILENT_S
        return JSONResponse({"serving": alive}, 200 if alive else 503)

    @made.get("/jobs/{job}/forecast", dependencies=guarded)
    def forecast(job: str, as_of: Annotated[int | None, Query(ge=0, description="commit time, ns")] = None) -> Any:
        """The job's newest forecast, or the newest one known at a commit time."""
        if job not in jobs:
            raise HTTPException(404, f"job {job!r} has no contract")
        key = forecast_key(job, step_s)
        record = reader.get(key) if as_of is None else reader.get_at_time(key, as_of)
        if record is None:
            raise HTTPException(404, f"job {job!r} has no forecast" + ("" if as_of is None else f" as of {as_of}"))
        return shown(record)

    @made.get("/frontier", dependencies=guarded)
    def frontier() -> dict[str, int]:
        """Up to when reads are stable, and up to when they survive a host crash; commit times, ns."""
        ts, durable_ts = reader.frontier()
        return {"ts": ts, "durable_ts": durable_ts, "low": reader.low()}

    @made.get("/metrics", dependencies=guarded)
    def metrics() -> Response:
        """The server's figures as Prometheus reads them."""
        return Response(exposition(reader, step_s, jobs), media_type=CONTENT_TYPE_LATEST)

    return made


def shown(record: StoredRecord) -> dict[str, Any]:
    """A forecast's record as JSON."""
    value = unpacked(ForecastValue, record.value)
    return {
        "version": record.version,
        "ts": record.ts,
        "event_time": record.event_time,
        "generation": value.generation,
        "model_version": value.model_version,
        "digests": dict(zip(("weights", "scaler", "hyper"), value.digests, strict=True)),
        "imputed": value.imputed,
        "since_gap": value.since_gap,
        "doubted": value.doubted,
        "reason": value.reason or None,
        "forecast": json.loads(value.message) if value.message else None,
    }


def exposition(reader: Reads, step_s: float, jobs: Collection[str]) -> bytes:
    """Counts and ages in Prometheus' text."""
    return generate_latest(_registry(_Figures(reader, step_s, jobs)))


class _Figures:
    """Collected anew each time it is asked."""

    def __init__(self, reader: Reads, step_s: float, jobs: Collection[str]) -> None:
        self._reader, self._step_s, self._jobs = reader, step_s, jobs

    def collect(self) -> Any:
        """Every figure."""
        status = read_status(self._reader.get_meta(STATUS))
        events = CounterMetricFamily("tidecast_fast_events", "Samples by what became of them.", labels=["what"])
        waiting = GaugeMetricFamily("tidecast_fast_outbox_messages", "Messages that wait for the broker.")
        age = GaugeMetricFamily("tidecast_fast_status_age_seconds", "Since the server last said that it lives.")
        if status is not None:
            for what, count in sorted(status.counts.items()):
                events.add_metric([what], count)
            waiting.add_metric([], status.waiting)
            age.add_metric([], time.time() - status.wall_time)
        yield from (events, waiting, age)
        newest = GaugeMetricFamily("tidecast_fast_forecast_age_seconds", "Since a forecast was known.", labels=["job"])
        for job in sorted(self._jobs):
            record = self._reader.get(forecast_key(job, self._step_s))
            if record is not None:
                newest.add_metric([job], time.time() - record.ts / 1e9)
        yield newest


def _registry(figures: _Figures) -> CollectorRegistry:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(figures)
    return registry
