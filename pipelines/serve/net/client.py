"""A typed client of the fast path's socket. Local reads need no server: `pipelines.store.Reader` on the same folder."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from configs.errors import CorrectableError
from pipelines.serve.net import wire
from pipelines.serve.net.wire import Answer, Found, PutResult, Request
from pipelines.serve.step.keys import forecast_key
from pipelines.serve.step.records import ForecastValue, decode_value
from tidecast.messages import MetricSample, encode

A = TypeVar("A", bound=Answer)


class ClientError(CorrectableError, RuntimeError):
    """The server is not there, does not answer in time, closed the connection, or gave an unexpected answer."""


class RefusedError(ValueError):
    """The server refused a request.

    `code` is "message", "unknown_job", "conflict" or "gap" for a sample; "not_stable", "pruned", "input", "oversized",
    "model", "frame", "full", "fenced" or "store" for other reasons.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Client:
    """One connection to the fast path's socket; not to be shared between threads. Calls wait for the answer.

    Every call raises `ClientError` where the server is gone or does not answer within the timeout (the connection is
    useless then), `RefusedError` where it refuses, and `WireError` for a request of more than 1 MiB or an answer that
    cannot be decoded.
    """

    def __init__(self, path: Path, timeout_s: float = 5.0) -> None:
        """Connect to the socket at `path`; `timeout_s` is for each wait, in wall seconds.

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
        """Close the connection."""
        self._socket.close()

    def put(self, sample: MetricSample) -> PutResult:
        """Put one sample; the answer holds its verdict and the forecasts it caused (see `PutResult`).

        A sample put twice counts once, so it may be sent again after a `ClientError`.

        Raises:
            RefusedError: not accepted ("message", "unknown_job", "conflict", "gap", "full", ...); it changed nothing.
            MessageError: the sample cannot be encoded.
            ClientError: the server is gone or does not answer.
            WireError: the sample is longer than a frame.
        """
        return self._ask(wire.Put(encode(sample)), PutResult)

    def put_all(self, samples: Iterable[bytes]) -> list[Answer]:
        """Send samples (JSON) all at once, and return an answer for each, in their order; a refusal is an answer, too.

        Answers are read only when all is sent: more than 8 MiB of them end the connection.

        Raises:
            ClientError: the server is gone, does not answer or has cut the connection; it may have taken some.
            WireError: a sample is longer than a frame (nothing was sent), or an answer cannot be decoded.
        """
        frames = [wire.encode_frame(wire.Put(sample)) for sample in samples]
        self._send(b"".join(frames))
        return [wire.read_answer(self._frame()) for _ in frames]

    def get(self, key: str, version: int | None = None) -> Found | None:
        """Return a key's newest version, or the one named; None if there is none.

        Raises:
            RefusedError: "input" for no valid key, "oversized" for a value of about 1 MiB or more.
            ClientError: the server is gone or does not answer.
        """
        return self._one(wire.Get(key, version))

    def as_of(self, key: str, t: int) -> Found | None:
        """Return the key's newest version as of a commit time (ns since the epoch); None if there was none.

        Raises:
            RefusedError: "not_stable" above the frontier, "pruned" below what is kept, "input" for no valid key or
                time.
            ClientError: the server is gone or does not answer.
        """
        return self._one(wire.AsOf(key, t))

    def versions(self, key: str, lo: int = 0, hi: int = 2**63 - 1) -> list[tuple[int, int]]:
        """Return (version, commit time in ns) of a key's kept versions from lo to hi, both included; rising in both.

        Empty for a key never put. Each 10,000 versions take one request.

        Raises:
            RefusedError: "input" for no valid key, or another code of the store.
            ClientError: the server is gone or does not answer within the timeout of each request.
            WireError: the key is longer than a frame (1 MiB), or an answer cannot be decoded.
        """
        versions: list[tuple[int, int]] = []
        while True:
            page = self._ask(wire.Versions(key, lo, hi), wire.VersionList).versions
            versions += page
            if len(page) < wire.MOST_VERSIONS:
                return versions
            lo = page[-1][0] + 1

    def frontier(self) -> tuple[int, int]:
        """Return the times (ns since the epoch) of the newest commit and of the newest that is flushed to the disk."""
        edge = self._ask(wire.Frontier(), wire.FrontierTimes)
        return edge.ts, edge.durable_ts

    def ping(self, payload: bytes = b"") -> bytes:
        """Return the payload as the server sends it back, for measuring the way there and back."""
        return self._ask(wire.Ping(payload), wire.Pong).payload

    def what_if(self, job: str, rate: float) -> wire.WireForecast:
        """Return the forecast as it would be if the next window had this rate (records/s); nothing is stored.

        Empty quantiles and levels where no model serves the job yet.

        Raises:
            RefusedError: "unknown_job", "message" (rate negative or not finite), or "model" (the model cannot be
                stepped).
            ClientError: the server is gone or does not answer.
        """
        return self._ask(wire.WhatIf(job, rate), wire.WireForecast)

    def forecast(self, job: str, step_s: float, t: int | None = None) -> ForecastValue | None:
        """Return the job's newest forecast record, or the newest as of a commit time t (ns); None if there is none.

        The record may hold a reason instead of a forecast.

        Args:
            job: its name.
            step_s: seconds per window that is served.
            t: ns since the epoch.

        Raises:
            RefusedError: with t, "not_stable" or "pruned"; "input" for no valid job name.
            ClientError: the server is gone or does not answer.
        """
        key = forecast_key(job, step_s)
        found = self.get(key) if t is None else self.as_of(key, t)
        return None if found is None else decode_value(ForecastValue, found.value)

    def _one(self, request: Request) -> Found | None:
        answer = self._answer(request)
        return None if isinstance(answer, wire.Absent) else _expected(answer, Found)

    def _ask(self, request: Request, kind: type[A]) -> A:
        return _expected(self._answer(request), kind)

    def _answer(self, request: Request) -> Answer:
        self._send(wire.encode_frame(request))
        return wire.read_answer(self._frame())

    def _send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise self._ended(f"the server is gone: {error}") from None

    def _frame(self) -> bytes:
        while not self._frames:
            try:
                data = self._socket.recv(1 << 18)
            except OSError as error:
                raise self._ended(f"no answer: {error}") from None
            if not data:
                raise self._ended("the server closed the connection")
            self._buffer += data
            self._frames = wire.take_frames(self._buffer)
        return self._frames.pop(0)

    def _ended(self, why: str) -> ClientError:
        """Close: an answer that came later would be taken for that to the next request."""
        self.close()
        return ClientError(f"{why}. Connect again; a put may be sent twice.")


def _expected(answer: Answer, kind: type[A]) -> A:
    if isinstance(answer, wire.Refused):
        raise RefusedError(answer.code, answer.message)
    if not isinstance(answer, kind):
        raise ClientError(f"a {type(answer).__name__} came where a {kind.__name__} was expected. Is the server older?")
    return answer
