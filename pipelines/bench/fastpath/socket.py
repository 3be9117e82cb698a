"""Put over the Unix socket until the forecast is back, in turn with a bare echo and with a Redis stream."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipelines.bench.fastpath.children import Children
from pipelines.bench.fastpath.load import JOBS
from pipelines.bench.fastpath.local import frozen
from pipelines.bench.fastpath.peers.redis import RedisPeer
from pipelines.bench.fastpath.served import Echo, ServedProcess, forecasts
from pipelines.bench.fastpath.wire import closed, scheduled
from pipelines.serve.models.model_set import ModelSet

PER_S = 1000.0
Lists = dict[str, list[list[int]]]


def in_turn(
    children: Children, folder: Path, made: ModelSet, runs: int, events: int, warm: int, scheduled_events: int = 0,
    peers: Mapping[str, RedisPeer] | None = None,
) -> Lists:  # fmt: skip
    """Nanoseconds of every event, a list per run, of what runs in turn.

    Args:
        children: of this measurement.
        folder: for store and sockets.
        made: the champion.
        runs: of each.
        events: per run, in a closed loop, of one job.
        warm: events before those that count.
        scheduled_events: per run at 1,000 a second over 16 jobs; none: not measured.
        peers: measured besides, by name.

    Returns:
        `floor` and `socket`; `floor_scheduled` and `socket_scheduled`; the peers by name.
    """
    jobs = JOBS[: scheduled_events or 1]  # no more of them than samples
    server, echo = ServedProcess(children, folder / "served", made, jobs), Echo(children, folder)
    found: Lists = {}

    def keep(name: str, took: list[int]) -> None:
        found.setdefault(name, []).append(took)

    try:
        for run in range(-1, runs):  # the first one warms up
            count = warm if run < 0 else events
            frames = server.feed.frames(count, jobs[:1])
            with frozen():
                floor, _ = closed(echo.socket, frames)
                ours, answers = closed(server.socket, frames)
                theirs = {name: peer.closed(count) for name, peer in (peers or {}).items()}
            forecasts(frames, answers)
            if run < 0:
                continue
            keep("floor", floor)
            keep("socket", ours)
            for name, took in theirs.items():
                keep(name, took)
            if scheduled_events:
                frames = server.feed.frames(scheduled_events, jobs)
                with frozen():
                    floor, *_ = scheduled(echo.socket, frames, PER_S)
                    ours, answers, _ = scheduled(server.socket, frames, PER_S)
                forecasts(frames, answers)
                keep("floor_scheduled", floor)
                keep("socket_scheduled", ours)
    finally:
        server.close(children)
        echo.close(children)
    return found


def figures(found: Lists) -> dict[str, Any]:
    """The summaries of all of them."""
    from pipelines.bench.fastpath.figures import summary

    return {name: summary(runs) for name, runs in found.items()}
