"""The console's routes as a border: a switch that takes a change only as the real one would get it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from fastapi import FastAPI, Header, HTTPException

from pipelines.bench.borders.corpus import JOB, POOL
from pipelines.bench.borders.read import Border
from pipelines.bench.borders.request import TOKEN, Answered, border_of, get, served
from pipelines.bench.team.console.records import NOW, batch, contract, decision, interval, pool, word
from pipelines.console.access import Access
from pipelines.console.app import build_app
from pipelines.console.asked import PageSources
from pipelines.console.change import StaleError
from pipelines.console.origin import HEADER
from pipelines.console.read.fold import ReadModel, fold

LOGIN = "ann"
ANSWERS = frozenset({200, 304, 307, 400, 401, 403, 404, 405, 409, 422, 431, 501})
_LISTS = ("pools", "backfills", "models", "topologies")
_RIGHT = {
    **dict.fromkeys(("/", f"/jobs/{JOB}", "/data/jobs", "/data/jobs?since=1", f"/data/jobs/{JOB}?after=5.5"), 200),
    **dict.fromkeys((*(f"/{name}" for name in _LISTS), *(f"/data/{name}" for name in _LISTS)), 200),
    "/static/jobs.js": 200, "/static/none.js": 404, "/data/jobs/payments": 404,
}  # fmt: skip
_KNOWN = (contract(JOB), interval(JOB, NOW), batch(JOB, NOW), decision(JOB, NOW), word(JOB, NOW, "observe"),
          pool(POOL, NOW, [JOB, "rides"]))  # fmt: skip


class UnsoundChange(Exception):
    """A change of a mode reached the switch that no page may ask for."""


def change_mode(job: str, mode: str, seen: float | None, by: str) -> None:
    """Take a change, as `pipelines.console.change.ModeSwitch.change` does, of JOB's mode, which was said at NOW.

    Raises:
        StaleError: another word was seen.
        UnsoundChange: no route may let it through.
    """
    whole = seen is None or (isinstance(seen, float) and seen >= 0 and not math.isnan(seen))
    if job != JOB or mode not in ("observe", "freeze", "act") or by != LOGIN or not whole:
        raise UnsoundChange(f"{job!r}, {mode!r}, {seen!r}, {by!r}")
    if seen != NOW:
        raise StaleError("look again")


def console_app() -> FastAPI:
    """Build the console on a job, a pool and its switch; who sends the token may look and change."""

    def login(authorization: Annotated[str, Header()] = "") -> str:
        if not authorization:
            raise HTTPException(401, "Not authenticated")
        if authorization != f"Bearer {TOKEN}":
            raise HTTPException(403, "may not")
        return LOGIN

    model = fold(ReadModel(), _KNOWN, NOW)
    return build_app(lambda: (model, ""), change_mode, Access(login, login, print), PageSources())


@contextmanager
def console_border() -> Iterator[Border]:
    """Run the console; without the token nobody is told anything, and without the pages' header nothing is changed."""
    right = {get(path): status for path, status in _RIGHT.items()}
    for body, status in ((_asked(NOW), 200), (_asked(NOW - 9), 409), (_asked(NOW).replace(b"act", b"stop"), 422)):
        right[_post(body)] = status
    with served(console_app()) as address:
        yield border_of(address, right, ANSWERS, _sound)


def _sound(found: Answered) -> bool:
    if found.status not in (200, 304, 409):
        return True
    changes = found.request.startswith(b"POST") or found.status == 409
    return TOKEN.encode() in found.request and (not changes or HEADER.encode() in found.request.lower())


def _asked(seen: float) -> bytes:
    return f'{{"mode": "act", "seen": {seen}, "confirmed": "{JOB}"}}'.encode()


def _post(body: bytes) -> bytes:
    return (
        f"POST /data/jobs/{JOB}/mode HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n"
        f"{HEADER}: 1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode() + body
