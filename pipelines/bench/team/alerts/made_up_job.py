"""A job, its pipeline and its lake as a follower sees them, made up second by second; and troubles planted in them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from configs.contract import Contract, Executors
from models.alerts.followed import Followed, take
from models.alerts.knowledge import DriftSeen, Ingested, Knowledge, LakeSeen
from models.pool.state import PoolState
from tidecast.messages import Decision, Forecast, Heartbeat, MetricSample

JOB, BEGAN = "orders", 1.8e9 - 1.8e9 % 86_400
CONTRACT = Contract(job=JOB, latency_target_s=10, error_budget=0.05, executors=Executors(min=1, max=6))
LEVELS, HOUR = [0.1, 0.5, 0.9], 3600.0


@dataclass
class MadeUpJob:
    """What a follower knows, look by look; a trouble of `TROUBLES` begins at `since`. Otherwise it is a day as others.

    It has raises, a minute of late records, a restart of the autoscaler, a changed contract and a pool that is short.
    """

    trouble: str = ""
    since: float = math.inf
    seen: Followed = field(default_factory=Followed)
    executors: int = 2
    target: int = 2
    changed_at: float = BEGAN
    ingested_at: float = BEGAN - 600
    forecast_at: float = 0.0
    decided_at: float = 0.0
    late_s: float = 20.0
    contract_at: float = BEGAN - 2 * 86_400
    contract_waits: int = 0

    def look(self, now: float) -> Knowledge:
        """What is known at a moment; looks follow each other by 30 s at most."""
        trouble = self.trouble if now >= self.since else ""
        if trouble != "broker":
            for message in self.messages(now, trouble):
                self.seen = take(self.seen, message, CONTRACT, True)
        if now - self.ingested_at >= HOUR and trouble != "ingest":
            self.ingested_at = now
        hidden = trouble == "broker"
        waiting = None if hidden else round(2 * (now - self.ingested_at))
        free, files = (200 << 20 if trouble == "disk" else 50 << 30), (600 if trouble == "files" else 190)
        if self.contract_waits and self.ingested_at == now:
            self.contract_at, self.contract_waits = now, 0
        self.contract_waits = self.contract_waits or int(50_000 <= now % 86_400 < 50_030)  # somebody changes one
        return Knowledge(
            {JOB: self.seen}, {JOB: CONTRACT}, frozenset({JOB} if trouble == "contract" else ()), not hidden,
            {"metrics": Ingested(self.ingested_at, 7200, 0, waiting),
             "contracts": Ingested(self.contract_at, 1, 0, self.contract_waits)},
            LakeSeen({"metrics": 90 << 20}, {"metrics": files}, 24 << 20, free),
            {JOB: DriftSeen(self.since, 1.3)} if trouble == "drift" else {},
            {} if hidden else {"shared": self.pool(now, trouble)},
        )  # fmt: skip

    def pool(self, now: float, trouble: str) -> PoolState:
        """How the job's pool stands; once a day it is too small for half a minute, as a forecast has it."""
        short = trouble == "pool" or 60_000 <= now % 86_400 < 60_030
        ahead: dict[str, Any] = {"enough_cores": 10, "short_from": now + 900, "short_jobs": [JOB]} if short else {}
        share: dict[str, Any] = {"job": JOB, "cores": 1, "wanted": self.target, "granted": self.target}
        return PoolState("shared", now, "divided", cores=8, usable=8.0, shares=[share], **ahead)

    def messages(self, now: float, trouble: str) -> Iterator[Any]:
        """What came on the topics since the look before."""
        load = 200 + 150 * math.sin(2 * math.pi * (now % 86_400) / 86_400)
        wanted = 1 + math.ceil(load / 100) + (trouble in ("deaf", "no_room"))
        if wanted != self.target and now - self.changed_at > 60 and trouble != "undecided":
            self.target, self.changed_at, self.decided_at = wanted, now, 0.0
        came = now - self.changed_at >= 30 and trouble not in ("deaf", "no_room")
        self.executors = self.target if came else self.executors
        restarts = 40_000 < now % 86_400 < 40_045  # of the autoscaler, as after an upgrade
        asked = self.executors if trouble == "deaf" else self.target
        if trouble != "silent":
            yield MetricSample(
                JOB, "interval", now, now, arrival_rps=load, lag_records=40, executors=self.executors,
                pending_executors=max(asked - self.executors, 0), mode="act",
            )  # fmt: skip
            slow = 70_000 < now % 86_400 < 70_060  # a minute of late records, as after a restart of a node
            late_s = 60.0 if trouble == "late" else 14.0 if slow else 3.0
            yield MetricSample(
                JOB, "batch", now, now, batch_id=1, batch_rows=400, batch_s=2.0, executors=self.executors,
                latency_p50_s=late_s / 2, latency_p95_s=late_s, latency_max_s=late_s,
            )  # fmt: skip
        if trouble != "undecided" and not restarts:
            if now - self.decided_at > 600:
                self.decided_at = now
                yield self.decision(now, trouble)
            yield Heartbeat(JOB, "autoscaler", now, now, 1.0, "d", now, self.target, 7)
        if trouble != "unserved":
            if now - self.forecast_at >= 1800:
                self.forecast_at = now
                yield Forecast(
                    JOB, now, now, 1.0, 1800.0, LEVELS, [[load * 0.9, load, load * 1.1]], "orders-forecaster", "3",
                    "champion", "blend", 900, int(BEGAN * 1000),
                )  # fmt: skip
            yield Heartbeat(JOB, "serving", now, now, 1.0, "1", now)

    def decision(self, now: float, trouble: str) -> Decision:
        """What the autoscaler decides."""
        codes = ["hold", "shortage"] if trouble == "shortage" else ["hold"]
        late_s = 40_000.0 if trouble == "spent" else self.late_s
        inputs = {"promise": {"late_s": late_s, "seconds": 600_000.0, "budget_left": 0.9}}
        return Decision(f"d{now:.0f}", JOB, now, now, 1.0, "act", "mpc", self.target, "hold", codes, inputs, {})
