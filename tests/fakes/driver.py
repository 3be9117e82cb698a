"""The parts of an agent that need no Spark: a cluster that takes notes, and an outbox that keeps what it is given."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from tidecast import WALL
from tidecast.guard import Limits
from tidecast.job import Job
from tidecast.spark.actuator import ActuatorError


@dataclass
class NotedActuator:
    """Executors that come and go at once; what was asked of them is in `calls`."""

    ids: list[str] = field(default_factory=lambda: ["0"])
    target: int | None = None
    calls: list[str] = field(default_factory=list)
    refuses: bool = False
    asked_to_leave: set[str] = field(default_factory=set)
    failures: int | None = None

    def take_over(self, least):
        self.calls.append("take over")
        if self.refuses:
            raise ActuatorError("no executors to add")
        self.target = len(self.ids)

    def failures_allowed(self):
        return self.failures

    def rest(self, rests):
        self.rests = rests

    def live(self):
        return self.ids

    def own(self, registered):
        return [one for one in registered if one not in self.asked_to_leave]

    def leaving(self, registered):
        return [one for one in registered if one in self.asked_to_leave]

    def release(self):
        self.calls.append("release")

    def set_target(self, executors):
        self.calls.append(f"target {executors}")
        if self.refuses:
            raise ActuatorError("the cluster manager said no")
        self.target = executors
        self.ids = [str(i) for i in range(executors)]

    def reconcile(self):
        return None


class Sent(list):
    """An outbox that keeps everything."""

    def enqueue(self, topic, key, message):
        self.append((topic, key, message))

    def of(self, kind):
        return [m for _, _, m in self if isinstance(m, kind)]


def job(name: str = "orders", widest_mode: str = "act", **fields: Any) -> Job:
    """A job with one executor, 1 to 4 allowed."""
    parts = {"limits": Limits(1, 4), "actuator": NotedActuator(), "outbox": Sent(), "topics": ("events",)}
    return Job(name=name, widest_mode=widest_mode, clock=WALL, **{**parts, "executors": {"0": 1}, **fields})


def begin_large(monkeypatch: pytest.MonkeyPatch, records: int) -> None:
    """Let the first batch of a replay of topics read so many records of each partition, and at once the second as many.

    A shipped one begins with four, and needs a batch with its tasks and its state more until it knows what a record
    takes; and behind a batch it leaves live records as long as that took.
    """
    for module in ("source", "query"):
        monkeypatch.setattr(f"tidecast.replay.{module}.WORTH", records)
    monkeypatch.setattr("tidecast.replay.pace.APART_S", 0.0)
