"""What people would use instead: a Redis stream with a consumer that steps the same model, over a Unix socket.

Redis writes its append-only file with every command and brings it to the disk once a second (`everysec`), the store
does so ten times a second: a killed Redis or store loses nothing, a host crash takes what came since. A killed consumer
loses nothing only if it keeps the model's state and its place with each forecast, as ours does: that is the durable
one, with which ours is compared. The bare one is measured besides. Neither closes windows nor knows duplicates.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from time import perf_counter_ns
from typing import Any

from pipelines.bench.fastpath.champions import add_version
from pipelines.bench.fastpath.child.redis_consumer import FORECASTS, KEPT, METRICS, list_streams
from pipelines.bench.fastpath.load import JOBS, SampleFeed
from pipelines.bench.fastpath.served import await_ready, start_module
from pipelines.serve.models.model_set import ModelSet
from pipelines.stack.stack import Stack


def why_unavailable() -> str | None:
    """Say why Redis cannot be measured: the server or a Python package is not installed. None where both are there."""
    if shutil.which("redis-server") is None:
        return "redis-server is not installed: apt-get install redis-server"
    try:
        import hiredis  # noqa: F401
        import redis  # noqa: F401
    except ImportError as error:
        return f"{error}: pip install -r requirements-redis.txt"
    return None


class RedisPeer:
    """A Redis server and a consumer that steps a model, each in a process of its own, and a client here."""

    def __init__(self, stack: Stack, name: str, model: ModelSet, durable: bool) -> None:
        """Start server and consumer; blocks until the consumer reads. State lies in `var/NAME`.

        Args:
            stack: the processes end with it.
            name: of the consumer's process; the server is `NAME-server`.
            model: the model.
            durable: keep model state and place in the stream with each forecast.

        Raises:
            ProcessError: one of them ends, or is not ready within two minutes.
        """
        import redis

        folder = stack.settings.var_dir / name
        path = folder / "redis"
        add_version(folder, "1", model)
        server = stack.spawn(f"{name}-server", [
            "redis-server", "--port", "0", "--unixsocket", str(path), "--unixsocketperm", "700", "--dir", str(folder),
            "--appendonly", "yes", "--appendfsync", "everysec", "--save", "", "--daemonize", "no",
        ])  # fmt: skip
        self._client: Any = redis.Redis(unix_socket_path=str(path), protocol=2)

        def answers() -> bool:
            with suppress(redis.ConnectionError):
                return bool(self._client.ping())
            return False

        await_ready(server, answers)
        consumer = start_module(
            stack, name, "pipelines.bench.fastpath.child.redis_consumer", path, folder / "1",
            "durable" if durable else "bare",
        )  # fmt: skip
        self._feed, self._last = SampleFeed(JOBS[:1]), "0"
        self._feed.history()  # skipped: the consumer makes it for itself
        await_ready(consumer, lambda: bool(self._client.exists("ready")))

    def time_closed_loop(self, events: int) -> list[int]:
        """Time samples through Redis, one after the other: each is added when the forecast before it was read.

        Returns:
            Nanoseconds of every event, from adding the sample until its forecast is read.

        Raises:
            ValueError: no forecast came in 10 s, more than one came, or it is of another window.
            redis.RedisError: the server is gone.
        """
        took_ns, client, last = [], self._client, self._last
        for window, raw in [self._feed.take(JOBS[0]) for _ in range(events)]:
            began = perf_counter_ns()
            client.xadd(METRICS, {"s": raw}, maxlen=KEPT)
            answer = client.xread({FORECASTS: last}, block=10_000)
            took_ns.append(perf_counter_ns() - began)
            if not answer:
                raise ValueError(f"Redis gave no forecast of window {window} within 10 s. Does the consumer run?")
            ((_, ((last, entry),)),) = list_streams(answer)
            if int(entry[b"w"]) != window:
                raise ValueError(f"Redis answered window {window} by {entry!r:.300}")
        self._last = last
        return took_ns
