"""What people would use instead: a Redis stream with a consumer that steps the same model, over a Unix socket.

Redis writes its append-only file with every command and brings it to the disk once a second (`everysec`), the store
does so ten times a second: a killed Redis or store loses nothing, a host crash takes what came since. A killed consumer
loses nothing only if it keeps the model's state and its place with each forecast, as ours does: that is the durable
one, with which ours is compared. The bare one is measured besides. Neither closes windows nor knows duplicates.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from pipelines.bench.fastpath.champions import shelve
from pipelines.bench.fastpath.children import Children
from pipelines.bench.fastpath.load import BEGUN, JOBS, SampleFeed
from pipelines.serve.models.model_set import ModelSet
from pipelines.stack.processes import ProcessError

METRICS, FORECASTS, GROUP = "metrics", "forecasts", "forecasters"
KEPT = 20_000
"""Entries that a stream keeps, about."""
_PATIENCE_S = 60.0


def absent() -> str | None:
    """Why there is no Redis to compare with; None where there is one."""
    if shutil.which("redis-server") is None:
        return "redis-server is not installed: apt-get install redis-server"
    try:
        import hiredis  # noqa: F401
        import redis  # noqa: F401
    except ImportError as error:
        return f"{error}: pip install -r requirements-redis.txt"
    return None


class RedisPeer:
    """A Redis server and a consumer, each in a process of its own, and a client here."""

    def __init__(self, children: Children, folder: Path, made: ModelSet, kind: str) -> None:
        """Start both, with a consumer that is `bare` or `durable`; returns when it answers."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "redis"
        self._children = children
        self._server = children.program("redis", server(path))
        self._client = client(path, self._server)
        shelve(folder, "1", made)
        self._consumer = children.module("redis_consumer", path, folder / "1", JOBS[0], str(BEGUN), kind)
        self._feed, self._last = SampleFeed(JOBS[:1]), "0"
        self._feed.history(JOBS[:1], BEGUN)  # on which the consumer begins by itself
        until = time.monotonic() + _PATIENCE_S
        while not self._client.exists("ready"):
            if not self._consumer.running() or time.monotonic() > until:
                raise ProcessError(f"the consumer of Redis does not begin:\n{self._consumer.last_lines()}")
            time.sleep(0.05)

    def closed(self, events: int) -> list[int]:
        """Nanoseconds from adding a sample until its forecast is read, one event after the other."""
        took, red, last = [], self._client, self._last
        for window, raw in [self._feed.take(JOBS[0]) for _ in range(events)]:
            began = perf_counter_ns()
            red.xadd(METRICS, {"s": raw}, maxlen=KEPT)
            answer = red.xread({FORECASTS: last}, block=10_000)
            took.append(perf_counter_ns() - began)
            ((_, ((last, entry),)),) = items(answer)
            if int(entry[b"w"]) != window:
                raise ValueError(f"Redis answered window {window} by {entry!r:.300}")
        self._last = last
        return took

    def close(self) -> None:
        """End both."""
        self._client.close()
        self._children.end(self._consumer)
        self._children.end(self._server)


def server(path: Path) -> list[str]:
    """The command line of a server that listens nowhere but at a Unix socket."""
    return [
        "redis-server", "--port", "0", "--unixsocket", str(path), "--unixsocketperm", "700", "--dir", str(path.parent),
        "--appendonly", "yes", "--appendfsync", "everysec", "--save", "", "--daemonize", "no",
    ]  # fmt: skip


def client(path: Path, process: Any) -> Any:
    """A client, as soon as the server answers."""
    import redis

    found = redis.Redis(unix_socket_path=str(path), protocol=2)
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            found.ping()
            return found
        except redis.ConnectionError as error:
            if not process.running() or time.monotonic() > until:
                raise ProcessError(f"redis-server does not answer: {error}\n{process.last_lines()}") from None
            time.sleep(0.05)


def items(answer: Any) -> list[Any]:
    """The streams of an answer to XREAD as pairs; redis-py has a list or a dict of them, by its version."""
    return list(answer.items()) if isinstance(answer, dict) else list(answer)
