"""Raw HTTP requests on the loopback: sent as they are, and the status that came back."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from pipelines.bench.borders.read import Border

TOKEN = "planted-token-0123456789abcdef"
SLOW_S = 5.0
Address = tuple[str, int]
_HEAD = re.compile(rb"\n\r?\n")
_LENGTH = re.compile(rb"(?i)content-length: *(\d{1,9})\r?\n")
_OPEN_S = 0.25
"""Seconds for an answer to what looks like a whole request, and may be none to the server, which waits for its rest."""


class Answered(NamedTuple):
    """A request, and the status that it got; 0 where the answer has none, as for what is no request, or as HTTP/0.9."""

    request: bytes
    status: int


def get(path: str) -> bytes:
    """Return a request for a path, with the token."""
    return f"GET {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n".encode()


def border_of(
    address: Address, right: Mapping[bytes, int], statuses: frozenset[int], sound: Callable[[Answered], bool]
) -> Border:
    """Return the border of a server.

    Args:
        address: host and port.
        right: right requests, and the status that each has to get.
        statuses: that a request may get at all, besides 0.
        sound: what else has to hold of an answer.
    """

    def holds(found: Answered) -> bool:
        known = found.status in statuses or found.status == 0
        return known and right.get(found.request, found.status) == found.status and sound(found)

    def ask(raw: bytes, folder: object) -> Answered:
        return _ask(address, raw, SLOW_S if raw in right else _OPEN_S)

    return Border("http", tuple(right), ask, (), holds)


@contextmanager
def served(app: Any, **options: Any) -> Iterator[Address]:
    """Serve an ASGI application on any free port of the loopback, with uvicorn's options, until the `with` ends.

    Raises:
        OSError: it cannot be started.
    """
    import uvicorn

    config = uvicorn.Config(app, log_level="critical", access_log=False, **options)
    server, listening = uvicorn.Server(config), socket.create_server(("127.0.0.1", 0))
    running = threading.Thread(target=server.run, args=([listening],), daemon=True)
    running.start()
    try:
        while not server.started and running.is_alive():
            time.sleep(0.01)
        yield listening.getsockname()
    finally:
        server.should_exit = True
        running.join(SLOW_S)


def _ask(address: Address, raw: bytes, open_s: float) -> Answered:
    """Send a request and wait for its status; a server that says nothing within SLOW_S raises TimeoutError.

    After `open_s` without an answer the connection of what looks whole is closed from this side.
    """
    with socket.create_connection(address, SLOW_S) as connection:
        answer = b""
        try:
            connection.sendall(raw)
            if _is_whole(raw):  # closed at once, the answer that is being made would be dropped
                connection.settimeout(open_s)
                with suppress(TimeoutError):
                    answer = connection.recv(1 << 16)
                connection.settimeout(SLOW_S)
            connection.shutdown(socket.SHUT_WR)
            while b"\r\n" not in answer and (data := connection.recv(1 << 16)):
                answer += data
        except OSError as error:  # closed before all of it was read
            if isinstance(error, TimeoutError):  # it neither answers nor closes
                raise
    return Answered(raw, int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/") else 0)


def _is_whole(raw: bytes) -> bool:
    if (head := _HEAD.search(raw)) is None:
        return False
    stated = _LENGTH.search(raw, 0, head.end())
    return stated is None or len(raw) - head.end() >= int(stated[1])
