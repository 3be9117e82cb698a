"""The fast path over HTTP, for people and dashboards: forecasts as of a time, health, Prometheus' figures.

A process of its own with a reader of its own: what is asked here costs the serving loop nothing, not even its lock on
the interpreter. It listens on the loopback and demands a bearer token, except for the bare word that it lives.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from collections.abc import Collection
from typing import Annotated, Any

import msgspec
from fastapi import Depends, FastAPI, Header, HTTPException, Query, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, generate_latest
from prometheus_client.core import CounterMetricFamily
from uvicorn.protocols.http.h11_impl import H11Protocol

from pipelines.serve.step.keys import forecast_key
from pipelines.serve.step.records import STATUS, ForecastValue, Status, unpacked
from pipelines.store import NotStable, Pruned, StoredRecord, StoreError
from pipelines.store.disk.errors import BadInput
from pipelines.store.reading.reads import Reads

SILENT_S = 5.0
"""A server that has said nothing of itself for so long is not there."""
CONNECTIONS = 128
"""At once; a further one is closed before it is read. A process usually may have 1,024 descriptors."""
HEAD_BYTES = 16_384
PATIENCE_S = 10.0
"""A connection on which no request is being answered is closed after so long; one that is not read, after two."""
_REFUSED = ((NotStable, 409), (Pruned, 410), (BadInput, 422))


def app(reader: Reads, step_s: float, jobs: Collection[str], token: str) -> FastAPI:
    """The application: forecasts of jobs with a contract in windows of `step_s` seconds, to who bears the token."""

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
        status = _status(reader)
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
    fields = msgspec.structs.asdict(unpacked(ForecastValue, record.value))
    digests, message = fields.pop("digests"), fields.pop("message")
    return {
        "version": record.version,
        "ts": record.ts,
        "event_time": record.event_time,
        **fields,
        "digests": dict(zip(("weights", "scaler", "hyper"), digests, strict=True)),
        "reason": fields["reason"] or None,
        "forecast": json.loads(message) if message else None,
    }


def exposition(reader: Reads, step_s: float, jobs: Collection[str]) -> bytes:
    """Counts and ages in Prometheus' text."""
    registry = CollectorRegistry()
    if (status := _status(reader)) is not None:
        registry.register(_Events(status.counts))
        for name, what, value in (
            ("tidecast_fast_outbox_messages", "Messages that wait for the broker.", status.waiting),
            ("tidecast_fast_status_age_seconds", "Since the server last said that it lives.", _age_s(status.wall_time)),
        ):
            Gauge(name, what, registry=registry).set(value)
    newest = Gauge("tidecast_fast_forecast_age_seconds", "Since a forecast was known.", ["job"], registry=registry)
    for job in sorted(jobs):
        if (record := reader.get(forecast_key(job, step_s))) is not None:
            newest.labels(job).set(_age_s(record.ts / 1e9))
    return generate_latest(registry)


class _Events:
    """Samples by what became of them; a counter of Prometheus' own begins at 0."""

    def __init__(self, counts: dict[str, int]) -> None:
        self._counts = counts

    def collect(self) -> Any:
        """The one family."""
        events = CounterMetricFamily("tidecast_fast_events", "Samples by what became of them.", labels=["what"])
        for what, count in sorted(self._counts.items()):
            events.add_metric([what], count)
        yield events


def _age_s(wall_time: float) -> float:
    return time.time() - wall_time


def _status(reader: Reads) -> Status | None:
    raw = reader.get_meta(STATUS)
    return None if raw is None else unpacked(Status, raw)


class Limited(H11Protocol):
    """uvicorn's own waits for ever for the rest of a head, and takes as many connections as there are descriptors."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the connection, and look after it."""
        super().connection_made(transport)
        self._seen: Any = None
        if len(self.connections) > CONNECTIONS:
            transport.abort()
        else:
            self._later = self.loop.call_later(PATIENCE_S, self._look)

    def _look(self) -> None:
        cycle = self.cycle
        if cycle is None or cycle.response_complete or cycle is self._seen:
            self.transport.abort()
        else:
            self._seen = cycle
            self._later = self.loop.call_later(PATIENCE_S, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """Look no more."""
        if hasattr(self, "_later"):
            self._later.cancel()
        super().connection_lost(exc)
