"""When a part is seen at work: by what it alone can do, not by what goes on without it."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable, Collection, Mapping
from contextlib import closing, suppress
from datetime import datetime
from typing import Any

from pipelines.bench.chaos.cells import SITE
from pipelines.bench.chaos.world import NODE, World
from pipelines.kafka.broker import Follower
from tidecast.messages import Decision, Forecast, MessageError, decode
from tidecast.metrics import MetricSample

TOLD: Mapping[str, tuple[str, Any]] = {
    "driver": ("metrics", MetricSample), "executor": ("metrics", MetricSample), "autoscaler": ("decisions", Decision),
    "serving": ("forecasts", Forecast),
}  # fmt: skip
"""Topic and message by which a part is seen: driver and executors by a batch with records in it."""
COPIED = ("events", "results", "metrics")
POLL_S, PAGE_S = 1.0, 5.0


def seen_at(world: World, part: str, since_s: float) -> float | None:
    """Return when a part was seen at work after a moment, epoch seconds; None: not yet.

    A broker is, when it answers and has all records of each topic; the scheduler, when it has told that it lives; the
    site, when driver, autoscaler and server of forecasts are.

    Raises:
        BrokerError, kafka.errors.KafkaError, OSError: what is asked does not answer.
    """
    if part == SITE:
        seen = [seen_at(world, one, since_s) for one in ("driver", "autoscaler", "serving")]
        return None if None in seen else max(at for at in seen if at is not None)
    if part == "broker":
        topics = [world.stack.settings.kafka.topic(one) for one in COPIED]
        return time.time() if world.brokers.in_sync(NODE, topics) else None
    if part == "scheduler":
        beat = _heartbeat(world.stack.addresses["airflow"])
        return beat if beat > since_s else None
    topic, kind = TOLD[part]
    with closing(Follower(world.stack.settings.kafka, [topic])) as reader:
        reader.seek_to_time(since_s)
        for record in reader.poll(POLL_S):
            with suppress(MessageError):
                message = decode(kind, record.value)
                if message.job == world.job and message.wall_time > since_s and _works(message):
                    return float(message.wall_time)
    return None


def wait_until_seen(
    world: World, part: str, since_s: float, within_s: float, goes_on: Callable[[], bool], before: Collection[int] = ()
) -> float | None:  # fmt: skip
    """Return seconds from a moment until a part was seen at work; None: not in time, or it ended meanwhile.

    Args:
        world: what runs.
        part: that is looked for.
        since_s: the moment, epoch seconds.
        within_s: seconds at most.
        goes_on: whether it may come yet.
        before: process ids of the executors of which one has ended: batches go on without it, so that those count
            which come once there is another one.
    """
    until, counts_s = time.monotonic() + within_s, since_s
    while time.monotonic() < until and goes_on():
        with suppress(Exception):  # what is asked is what was broken
            if before and not world.executors() - {*before}:
                counts_s = time.time()
            elif (at := seen_at(world, part, counts_s)) is not None:
                return at - since_s
        time.sleep(0.5)
    return None


def _works(message: Any) -> bool:
    return not isinstance(message, MetricSample) or (message.kind == "batch" and bool(message.batch_rows))


def _heartbeat(address: str) -> float:
    with urllib.request.urlopen(f"{address}/api/v2/monitor/health", timeout=PAGE_S) as page:
        told = json.load(page)["scheduler"]["latest_scheduler_heartbeat"]
    return datetime.fromisoformat(told).timestamp()
