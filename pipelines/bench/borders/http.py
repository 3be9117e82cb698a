"""What answers HTTP, on the loopback: raw requests in, a status out."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from models.alerts.metric import Sample
from pipelines.alerts.exposition import Exposition, open_endpoint
from pipelines.bench.borders.artifacts import STEP_S
from pipelines.bench.borders.console import console_border
from pipelines.bench.borders.corpus import JOB
from pipelines.bench.borders.read import Border
from pipelines.bench.borders.request import TOKEN, Answered, border_of, get, served
from pipelines.store import Store

ANSWERS = frozenset({200, 307, 400, 401, 404, 405, 409, 410, 422, 431, 501, 503})
SCRAPED = frozenset({200, 400, 404, 405, 414, 431, 501, 505})
METRIC = "tidecast_job_executors"
_PATHS = {
    "/health": 503, f"/jobs/{JOB}/forecast": 404, f"/jobs/{JOB}/forecast?as_of=-5": 422, "/frontier": 200,
    "/metrics": 200, "/jobs/payments/forecast": 404,
}  # fmt: skip
"""What is asked of the fast path, and what an empty store answers: nobody serves, and nothing was forecast."""


@contextmanager
def http_borders() -> Iterator[dict[str, Border]]:
    """Run everything that answers HTTP while the `with` block runs; yields its borders by "HTTP: " and its name.

    Raises:
        OSError, StoreError, EndpointError: one cannot be started.
    """
    with ExitStack() as opened:
        yield {
            "HTTP: fast path": opened.enter_context(fast_path_border()),
            "HTTP: console": opened.enter_context(console_border()),
            "HTTP: metrics": opened.enter_context(metrics_border()),
        }


@contextmanager
def fast_path_border() -> Iterator[Border]:
    """Run the fast path's endpoint on an empty store; nobody is told more than that it lives without the token."""
    from pipelines.serve.http.app import HEAD_BYTES, LimitedConnection, build_app

    def sound(found: Answered) -> bool:
        return found.status != 200 or b"/health" in found.request or TOKEN.encode() in found.request

    with tempfile.TemporaryDirectory() as home, Store.open(Path(home), 1 << 26) as store:
        app = build_app(store, STEP_S, {JOB}, TOKEN)
        with served(app, http=LimitedConnection, h11_max_incomplete_event_size=HEAD_BYTES) as address:
            yield border_of(address, {get(path): status for path, status in _PATHS.items()}, ANSWERS, sound)


@contextmanager
def metrics_border() -> Iterator[Border]:
    """Run the endpoint of `tidecast metrics` with a sample; whoever asks is told."""
    exposition = Exposition()
    exposition.samples = {METRIC: [Sample(METRIC, {"job": JOB}, 3.0)]}
    port, close = open_endpoint(exposition, "127.0.0.1", 0)
    try:
        paths = ("/metrics", "/", f"/metrics?name[]={METRIC}", "/favicon.ico")
        yield border_of(("127.0.0.1", port), {get(path): 200 for path in paths}, SCRAPED, lambda found: True)
    finally:
        close()
