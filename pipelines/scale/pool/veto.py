"""Asks whoever may forbid it before executors of a pool change hands."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import NamedTuple
from urllib.parse import urlsplit

from configs.pool import ClusterPool, Veto
from models.pool.wants import Grant, HeldGrant

ASKED_S = 10.0
"""Seconds after a veto before a hook is asked again."""
STALE_S = 30.0
"""Seconds after which an answer that nobody has taken is about a pool of the past."""
LATE = "timed out"
"""What sockets, too, say of an answer that did not come in time."""


class AskedDivision(NamedTuple):
    """A division of a pool that waits for the answer of the pool's hook.

    Attributes:
        pool: as it was divided.
        granted: to its jobs, by job.
        held: what the pool remembers of them if that may be.
        at: epoch seconds of the division.
        answer: of `ask_veto`.
    """

    pool: ClusterPool
    granted: Mapping[str, Grant]
    held: Mapping[str, HeldGrant]
    at: float
    answer: Future[str]


class Hooks:
    """Asks the hooks of pools, each in a thread of its own: one that is slow holds up no other pool.

    Attributes:
        asked: what waits for an answer, by pool.
    """

    def __init__(self) -> None:
        """Nobody is asked anything yet."""
        self.asked: dict[str, AskedDivision] = {}
        self._vetoed: dict[str, float] = {}

    def answered(self, pool: str) -> bool:
        """Return whether there is an answer to take."""
        return pool in self.asked and self.asked[pool].answer.done()

    def take(self, pool: str, now: float) -> tuple[AskedDivision, str]:
        """Return what a hook was asked, and why it may not be ("": it may); only once `answered`.

        Raises:
            KeyError: nothing was asked.
        """
        asked = self.asked.pop(pool)
        if refused := asked.answer.result():
            self._vetoed[pool] = now
        return asked, refused

    def ask(
        self, pool: ClusterPool, granted: Mapping[str, Grant], held: Mapping[str, HeldGrant],
        before: Mapping[str, int], now: float,
    ) -> None:  # fmt: skip
        """Ask whether grants may change, unless an answer is awaited, or `ASKED_S` have not passed since a veto.

        Args:
            pool: with a veto.
            granted: to its jobs.
            held: what it remembers of them if they may be.
            before: executors that each job has.
            now: epoch seconds.
        """
        veto, answer = pool.veto, Future[str]()
        vetoed_s = now - self._vetoed.get(pool.name, -ASKED_S)  # below 0 where the clock was set back since
        if veto is None or pool.name in self.asked or 0 <= vetoed_s < ASKED_S:
            return
        changes = {job: (before[job], one) for job, one in granted.items() if before[job] != one.executors}

        def wait() -> None:
            try:
                answer.set_result(ask_veto(veto, pool.name, changes))
            except Exception as error:  # else it would be awaited for ever
                answer.set_result(f"its hook cannot be asked ({type(error).__name__}); nothing changes")

        self.asked[pool.name] = AskedDivision(pool, granted, held, now, answer)
        threading.Thread(target=wait, name=f"veto of {pool.name}", daemon=True).start()


def ask_veto(veto: Veto, pool: str, changes: Mapping[str, tuple[int, Grant]]) -> str:
    """Ask whether grants may change; return why they may not, "" where they may.

    Only status 2xx within the time allowed says that they may; who hangs, trickles, fails or answers otherwise has
    changed nothing. It is asked directly, through no proxy, and no redirect of it is followed.

    Args:
        veto: whom to ask.
        pool: its name.
        changes: executors before, and what is granted, by job.
    """
    told = [
        {"job": job, "executors": {"before": before, "after": one.executors}, "reason": one.reason}
        for job, (before, one) in changes.items()
    ]
    where = urlsplit(veto.url).hostname  # a URL may hold a secret
    try:
        status = _post(veto, json.dumps({"pool": pool, "changes": told}).encode())
    except (OSError, ValueError, HTTPException) as error:
        problem = error if isinstance(error, OSError) else type(error).__name__  # others tell the path
        return f"its hook at {where} does not answer within {veto.timeout_s:g} s ({problem}); nothing changes"
    if 200 <= status < 300:
        return ""
    if status == HTTPStatus.FORBIDDEN:
        return f"its hook at {where} forbids it; nothing changes"
    return f"its hook at {where} answers {status} and neither 2xx (may) nor 403 (may not); nothing changes"


def _post(veto: Veto, body: bytes) -> int:
    """Return the status of an answer whose head has come as a whole within the time allowed.

    Raises:
        OSError, ValueError, HTTPException: there is none, or it is no answer.
    """
    address, ends = urlsplit(veto.url), time.monotonic() + veto.timeout_s
    kind = HTTPSConnection if address.scheme == "https" else HTTPConnection
    connection = kind(address.hostname or "", address.port, timeout=veto.timeout_s)

    def end() -> None:  # the timeout of a socket is that of each of its reads
        with suppress(OSError, AttributeError):  # it is over, or was not connected yet
            connection.sock.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(veto.timeout_s, end)
    timer.daemon = True
    timer.start()
    try:
        path = f"{address.path or '/'}{'?' if address.query else ''}{address.query}"
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        status = connection.getresponse().status
    except (OSError, HTTPException):
        if time.monotonic() < ends:
            raise
        raise TimeoutError(LATE) from None  # whatever its end looks like: the same is told once
    finally:
        timer.cancel()
        connection.close()
    if time.monotonic() > ends:
        raise TimeoutError(LATE)
    return status
