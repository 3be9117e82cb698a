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
from pipelines.serve.step.records import STATUS, ForecastValue, Status, decode_value
from pipelines.store import NotStable, Pruned, StoredRecord, StoreError
from pipelines.store.disk.errors import BadInput
from pipelines.store.reading.reads import Reads

SILENT_S = 5.0
"""Wall seconds after which a server that has not stored its status counts as gone."""
CONNECTIONS = 128
"""Open at once, at most; a further one is closed before it is read. A process usually may have 1,024 descriptors."""
HEAD_BYTES = 16_384
PATIENCE_S = 10.0
"""Wall seconds between two looks at a connection; see `LimitedConnection` for when it is closed."""
_REFUSED = ((NotStable, 409), (Pruned, 410), (BadInput, 422))


def build_app(reader: Reads, step_s: float, jobs: Collection[str], token: str) -> FastAPI:
    """Build the HTTP application of the fast path: `GET /health`, `/jobs/{job}/forecast`, `/frontier` and `/metrics`.

    All but `/health` need the header `Authorization: Bearer TOKEN` and answer 401 without it. Errors of the store
    become 409 (time above the newest commit), 410 (no longer kept), 422 (no valid input) or 503; a stored value that
    cannot be decoded becomes 500.

    Args:
        reader: of the store; the caller closes it.
        step_s: seconds per window that is served.
        jobs: names of the jobs with a contract (YAML file of latency target and executor bounds), looked up with every
            request; others are answered 404.
        token: TOKEN; not empty.
    """

    def check_token(authorization: Annotated[str, Header()] = "") -> None:
        if not hmac.compare_digest(authorization.encode(), f"Bearer {token}".encode()):
            raise HTTPException(
                401, "a bearer token is demanded: Authorization: Bearer ...", {"WWW-Authenticate": "Bearer"}
            )

    app = FastAPI(title="Tidecast fast path", docs_url=None, redoc_url=None, openapi_url=None)
    needs_token = [Depends(check_token)]

    @app.exception_handler(StoreError)
    def refused(request: Request, error: StoreError) -> JSONResponse:
        status = next((status for kind, status in _REFUSED if isinstance(error, kind)), 503)
        return JSONResponse({"detail": str(error)}, status)

    @app.get("/health")
    def health() -> JSONResponse:
        """Return `{"serving": true}`, or false with status 503 where the server has not stored its status for 5 s."""
        status = _status(reader)
        alive = status is not None and time.time() - status.wall_time < SILENT_S
        return JSONResponse({"serving": alive}, 200 if alive else 503)

    @app.get("/jobs/{job}/forecast", dependencies=needs_token)
    def forecast(job: str, as_of: Annotated[int | None, Query(ge=0, description="commit time, ns")] = None) -> Any:
        """Answer `GET /jobs/{job}/forecast`: the job's newest forecast as `forecast_as_json` has it.

        Args:
            job: its name.
            as_of: ns since the epoch, to get the forecast that was the newest at this commit time; below 0 answered by
                422.

        Raises:
            HTTPException: 404 for a job without a contract or without a forecast.
            NotStable, Pruned, BadInput, StoreError, msgspec.DecodeError: answered by 409, 410, 422, 503 and 500.
        """
        if job not in jobs:
            raise HTTPException(404, f"job {job!r} has no contract")
        key = forecast_key(job, step_s)
        record = reader.get(key) if as_of is None else reader.get_at_time(key, as_of)
        if record is None:
            raise HTTPException(404, f"job {job!r} has no forecast" + ("" if as_of is None else f" as of {as_of}"))
        return forecast_as_json(record)

    @app.get("/frontier", dependencies=needs_token)
    def frontier() -> dict[str, int]:
        """Return times in ns: newest commit "ts", newest flushed "durable_ts", oldest that can be asked for "low"."""
        ts, durable_ts = reader.frontier()
        return {"ts": ts, "durable_ts": durable_ts, "low": reader.low()}

    @app.get("/metrics", dependencies=needs_token)
    def metrics() -> Response:
        """Return the server's figures in Prometheus' text format."""
        return Response(prometheus_text(reader, step_s, jobs), media_type=CONTENT_TYPE_LATEST)

    return app


def forecast_as_json(record: StoredRecord) -> dict[str, Any]:
    """Return a forecast's record as JSON values.

    Returns:
        "version" (window index), "ts" and "event_time" (ns since the epoch), "generation" (number of the deployment),
        "model_version", "imputed", "since_gap", "doubted" (all as in `ForecastValue`), "reason" (None with a
        forecast), "digests" (hexadecimal, by "weights", "scaler" and "hyper"), and "forecast" (the message as on the
        topic; None without one).

    Raises:
        msgspec.DecodeError: the value is no forecast's.
    """
    fields = msgspec.structs.asdict(decode_value(ForecastValue, record.value))
    digests, message = fields.pop("digests"), fields.pop("message")
    return {
        "version": record.version,
        "ts": record.ts,
        "event_time": record.event_time,
        "generation": fields.pop("deployment"),
        **fields,
        "digests": dict(zip(("weights", "scaler", "hyper"), digests, strict=True)),
        "reason": fields["reason"] or None,
        "forecast": json.loads(message) if message else None,
    }


def prometheus_text(reader: Reads, step_s: float, jobs: Collection[str]) -> bytes:
    """Return the fast path's metrics in Prometheus' text format, UTF-8.

    They are `tidecast_fast_events_total{what}` (samples since the server began, by outcome: `Core.counts`),
    `tidecast_fast_outbox_messages` (that wait for the broker) and `tidecast_fast_status_age_seconds`, these three once
    the server has stored a status; and `tidecast_fast_forecast_age_seconds{job}` (since the commit) for jobs
    after whose newest window there is one. Ages are wall seconds.

    Args:
        reader: of the store.
        step_s: seconds per window that is served.
        jobs: names of the jobs to report.

    Raises:
        StoreError: the store cannot be read.
        msgspec.DecodeError: the stored status cannot be decoded.
    """
    registry = CollectorRegistry()
    if (status := _status(reader)) is not None:
        registry.register(_Events(status.counts))
        for name, text, value in (
            ("tidecast_fast_outbox_messages", "Messages that wait for the broker.", status.waiting),
            ("tidecast_fast_status_age_seconds", "Since the server last said that it lives.", _age_s(status.wall_time)),
        ):
            Gauge(name, text, registry=registry).set(value)
    forecast_age = Gauge(
        "tidecast_fast_forecast_age_seconds", "Since a forecast was known.", ["job"], registry=registry
    )
    for job in sorted(jobs):
        record = reader.get(forecast_key(job, step_s))
        if record is not None and _is_forecast(record):
            forecast_age.labels(job).set(_age_s(record.ts / 1e9 - (0.0 if status is None else status.ahead_s)))
    return generate_latest(registry)


def _is_forecast(record: StoredRecord) -> bool:
    """Whether it holds a forecast, not the reason why there is none, and is of this release."""
    try:
        return bool(decode_value(ForecastValue, record.value).message)
    except msgspec.DecodeError:
        return False


class _Events:
    """Samples by what became of them; a counter of Prometheus' own begins at 0."""

    def __init__(self, counts: dict[str, int]) -> None:
        self._counts = counts

    def collect(self) -> Any:
        """Yield the counter family `tidecast_fast_events` with one count per label `what`; Prometheus calls it."""
        events = CounterMetricFamily("tidecast_fast_events", "Samples by what became of them.", labels=["what"])
        for what, count in sorted(self._counts.items()):
            events.add_metric([what], count)
        yield events


def _age_s(wall_time: float) -> float:
    return time.time() - wall_time


def _status(reader: Reads) -> Status | None:
    raw = reader.get_meta(STATUS)
    return None if raw is None else decode_value(Status, raw)


class LimitedConnection(H11Protocol):
    """uvicorn's HTTP/1.1 connection with limits that uvicorn lacks: number of connections, and time.

    A connection is closed at a look every `PATIENCE_S` that finds no request in progress, or the same one as the look
    before (its answer not made or not read for 10 to 20 s).
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection and check it every 10 s, or close it if 128 are open already; asyncio calls it."""
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
        """Stop the timer."""
        if hasattr(self, "_later"):
            self._later.cancel()
        super().connection_lost(exc)
