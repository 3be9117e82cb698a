"""The fast path's HTTP endpoint on the loopback, as one more border: raw requests in, a status out."""

from __future__ import annotations

import re
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from pipelines.bench.borders.artifacts import STEP_S
from pipelines.bench.borders.corpus import JOB
from pipelines.bench.borders.read import Border
from pipelines.store import Store

TOKEN = "planted-token-0123456789abcdef"
ANSWERS = frozenset({0, 200, 307, 400, 401, 404, 405, 409, 410, 422, 431, 501, 503})
"""Statuses that a request may get, 0 where the connection is closed without one: it was no request."""
SLOW_S = 5.0
_PATHS = {
    "/health": 503, f"/jobs/{JOB}/forecast": 404, f"/jobs/{JOB}/forecast?as_of=-5": 422, "/frontier": 200,
    "/metrics": 200, "/jobs/payments/forecast": 404,
}  # fmt: skip
"""What is asked, and what an empty store answers: nobody serves, and nothing was forecast."""
_HEAD = re.compile(rb"\n\r?\n")
_OPEN_S = 0.25
"""Seconds after which the connection of a whole request is closed from this side if there is no answer."""


class Answered(NamedTuple):
    """A request, and the status that it got."""

    request: bytes
    status: int


@contextmanager
def http_border() -> Iterator[Border]:
    """Run the endpoint on an empty store while the `with` block runs, on any free port of the loopback.

    Raises:
        OSError, StoreError: it cannot be started.
    """
    import uvicorn

    from pipelines.serve.http.app import HEAD_BYTES, LimitedConnection, build_app

    with tempfile.TemporaryDirectory() as home, Store.open(Path(home), 1 << 26) as store:
        config = uvicorn.Config(
            build_app(store, STEP_S, {JOB}, TOKEN), http=LimitedConnection, h11_max_incomplete_event_size=HEAD_BYTES,
            log_level="critical", access_log=False,
        )  # fmt: skip
        server, listening = uvicorn.Server(config), socket.create_server(("127.0.0.1", 0))
        running = threading.Thread(target=server.run, args=([listening],), daemon=True)
        running.start()
        try:
            while not server.started and running.is_alive():
                time.sleep(0.01)
            address, right = listening.getsockname(), {_request(path): status for path, status in _PATHS.items()}
            yield Border(
                "bytes", tuple(right), lambda raw, folder: _ask(address, raw), (),
                lambda found: _is_sound(found) and right.get(found.request, found.status) == found.status,
            )  # fmt: skip
        finally:
            server.should_exit = True
            running.join(SLOW_S)


def _request(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n".encode()


def _ask(address: tuple[str, int], raw: bytes) -> Answered:
    """Send a request and wait for its status; a server that says nothing within SLOW_S raises TimeoutError."""
    with socket.create_connection(address, SLOW_S) as connection:
        answer = b""
        try:
            connection.sendall(raw)
            if _HEAD.search(raw) is not None:  # closed at once, the answer that is being made would be dropped
                connection.settimeout(_OPEN_S)
                with suppress(TimeoutError):
                    answer = connection.recv(1 << 16)
                connection.settimeout(SLOW_S)
            connection.shutdown(socket.SHUT_WR)
            while b"\r\n" not in answer and (data := connection.recv(1 << 16)):
                answer += data
        except OSError as error:  # closed before all of it was read
            if isinstance(error, TimeoutError):  # it neither answers nor closes
                raise
    words = answer.split(b" ", 2)
    return Answered(raw, int(words[1]) if len(words) > 1 else 0)


def _is_sound(found: Answered) -> bool:
    """A known status; and nothing but the word that it lives without the token."""
    public = b"/health" in found.request
    return found.status in ANSWERS and (found.status != 200 or public or TOKEN.encode() in found.request)
