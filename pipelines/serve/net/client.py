"""A typed client of the fast path's socket. Local reads need no server: `pipelines.store.Reader` on the same folder."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from configs.errors import CorrectableError
from pipelines.serve.net import wire
from pipelines.serve.net.wire import Answer, Found, Request, Took
from pipelines.serve.step.keys import forecast_key
from pipelines.serve.step.records import ForecastValue, unpacked
from tidecast.messages import MetricSample, encode

A = TypeVar("A", bound=Answer)


class ClientError(CorrectableError, RuntimeError):
    """The server is not there, or went away in the middle of an answer."""


class RefusedError(ValueError):
    """The server refused a request; `code` is one of "message", "unknown_job", "conflict", "gap", "not_stable", ..."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Client:
    """One connection; not to be shared between threads."""

    def __init__(self, path: Path, timeout_s: float = 5.0) -> None:
        """Connect.

        Raises:
            ClientError: nobody serves at the path.
        """
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout_s)
        self._buffer = bytearray()
        self._frames: list[bytes] = []
        try:
            self._socket.connect(str(path))
        except OSError as error:
            self._socket.close()
            raise ClientError(f"no server at {path}: {error}. `tidecast serve fast` starts one.") from None

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave."""
        self._socket.close()

    def put(self, sample: MetricSample) -> Took:
        """Put one sample; the answer holds the forecasts it caused.

        Raises:
            RefusedError: the sample was not accepted; nothing of it is in the store.
        """
        return self._ask(wire.Put(encode(sample)), Took)

    def put_all(self, samples: Iterable[bytes]) -> list[Answer]:
        """Put samples in their bytes, all before the first answer is read; refusals are among the answers."""
        frames = [wire.framed(wire.Put(sample)) for sample in samples]
        self._send(b"".join(frames))
        return [wire.read_answer(self._frame()) for _ in frames]

    def get(self, key: str, version: int | None = None) -> Found | None:
        """The newest version of a key, or the one named; None if there is none."""
        return self._one(wire.Get(key, version))

    def as_of(self, key: str, t: int) -> Found | None:
        """A key as it was at a commit time, ns.

        Raises:
            RefusedError: "not_stable" above the frontier, "pruned" below what is kept.
        """
        return self._one(wire.AsOf(key, t))

    def versions(self, key: str, lo: int = 0, hi: int = 2**63 - 1) -> list[tuple[int, int]]:
        """(version, commit time in ns), rising in both; asked for page by page."""
        found: list[tuple[int, int]] = []
        while True:
            page = self._ask(wire.Versions(key, lo, hi), wire.History).versions
            found += page
            if len(page) < wire.MOST_VERSIONS:
                return found
            lo = page[-1][0] + 1

    def frontier(self) -> tuple[int, int]:
        """Commit time last committed and last flushed, ns."""
        edge = self._ask(wire.Frontier(), wire.Edge)
        return edge.ts, edge.durable_ts

    def ping(self, payload: bytes = b"") -> bytes:
        """The same bytes again; the way there and back is the floor under every latency."""
        return self._ask(wire.Ping(payload), wire.Pong).payload

    def what_if(self, job: str, rate: float) -> wire.WireForecast:
        """What the champion would say if the next window's rate were this; nothing is stored."""
        return self._ask(wire.WhatIf(job, rate), wire.WireForecast)

    def forecast(self, job: str, step_s: float, t: int | None = None) -> ForecastValue | None:
        """The job's newest forecast, or the newest at a commit time, ns."""
        key = forecast_key(job, step_s)
        found = self.get(key) if t is None else self.as_of(key, t)
        return None if found is None else unpacked(ForecastValue, found.value)

    def _one(self, request: Request) -> Found | None:
        answer = self._answer(request)
        return None if isinstance(answer, wire.Absent) else _expected(answer, Found)

    def _ask(self, request: Request, kind: type[A]) -> A:
        return _expected(self._answer(request), kind)

    def _answer(self, request: Request) -> Answer:
        self._send(wire.framed(request))
        return wire.read_answer(self._frame())

    def _send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise ClientError(f"the server is gone: {error}. Connect again; a put may be sent twice.") from None

    def _frame(self) -> bytes:
        while not self._frames:
            try:
                data = self._socket.recv(1 << 18)
            except OSError as error:
                raise ClientError(f"no answer: {error}. Connect again; a put may be sent twice.") from None
            if not data:
                raise ClientError("the server closed the connection. Connect again; a put may be sent twice.")
            self._buffer += data
            self._frames = wire.unframe(self._buffer)
        return self._frames.pop(0)


def _expected(answer: Answer, kind: type[A]) -> A:
    if isinstance(answer, wire.Refused):
        raise RefusedError(answer.code, answer.message)
    if not isinstance(answer, kind):
        raise ClientError(f"a {type(answer).__name__} came where a {kind.__name__} was expected. Is the server older?")
    return answer
