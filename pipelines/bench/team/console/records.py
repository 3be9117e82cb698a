"""Records of many jobs on the topics that the console follows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from configs.contract import Contract
from models.pool.state import PoolShare, PoolState
from pipelines.kafka.broker import Record
from tidecast.control import mode_key
from tidecast.messages import (
    ContractText,
    Control,
    Decision,
    Forecast,
    Heartbeat,
    MetricSample,
    Outcome,
    encode,
)
from tidecast.orders import ReplayOrder, ReplayProgress, order_key

NOW = 1_780_000_000.0


def record(topic: str, key: str, message: Any) -> Record:
    """A message as it stands on its topic; bytes are taken as they are."""
    value = message if isinstance(message, bytes) else encode(message)
    return Record(topic, 0, 0, key, value, NOW)


def interval(job: str, at: float, arrival_rps: float = 100.0, executors: int = 2, **more: Any) -> Record:
    """A second of metrics."""
    fields = {"arrival_rps": arrival_rps, "executors": executors, "lag_records": 50, "mode": "act", **more}
    return record("metrics", job, MetricSample(job, "interval", at, at, **fields))


def batch(job: str, at: float, latency_s: float = 2.0, **more: Any) -> Record:
    """A micro-batch, committed at a wall time."""
    return record("metrics", job, MetricSample(job, "batch", at, at, latency_max_s=latency_s, **more))


def contract(job: str, **more: Any) -> Record:
    """A job's contract: 5 s, 1 % of the seconds, 1 to 8 executors."""
    stated = Contract(job=job, **{"executors": {"min": 1, "max": 8}, **more})
    return record("contracts", stated.hash, ContractText(job, NOW - 3600, NOW - 3600, 1.0, stated.hash, stated.text))


def decision(job: str, at: float, executors: int = 3, reason: str = "100 rec/s need 3", **inputs: Any) -> Record:
    """A decision that a forecast caused, of two executors before."""
    known = {"executors": 2, "capacity_rps": 120.0, "needed_observed": 2, "needed_forecast": executors, **inputs}
    return record("decisions", job, Decision(
        f"{job}-{at:.0f}", job, at, at, 1.0, "act", "mpc", executors, reason, ["up", "forecast"], known, {},
    ))  # fmt: skip


def outcome(job: str, of: float, status: str = "confirmed") -> Record:
    """What became of the decision made at `of`."""
    return record("outcomes", job, Outcome(f"{job}-{of:.0f}", job, of, of + 9, 1.0, status, "3 executors after 8.1 s"))


def forecast(job: str, at: float, load: float = 100.0, steps: int = 12, step_s: float = 300.0) -> Record:
    """A fan of five quantiles around a load."""
    levels = [0.05, 0.25, 0.5, 0.75, 0.95]
    wide = [[load * (1 + (level - 0.5) * 0.1 * (1 + step)) for level in levels] for step in range(steps)]
    return record("forecasts", job, Forecast(
        job, at, at, 1.0, step_s, levels, wide, "blend", "7", "champion", "blend", 900, 1, load,
    ))  # fmt: skip


def beat(job: str, at: float) -> Record:
    """A sign of life of the autoscaler."""
    return record("heartbeats", job, Heartbeat(job, "autoscaler", at, at, 1.0, f"{job}-1", at - 60, 3, 9))


def word(job: str, at: float, mode: str, by: str | None = "ann") -> Record:
    """A mode that a person gives."""
    return record("control", mode_key(job), Control(job, at, mode=mode, by=by))


def order(job: str, name: str, at: float, **more: Any) -> Record:
    """An order of a replay of 1,000 records."""
    fields = {"wanted": "run", "starts": {"events": {"0": 0}}, "ends": {"events": {"0": 1000}}, **more}
    return record("control", order_key(job, name), ReplayOrder(name, job, at, **fields))


def progress(job: str, name: str, at: float, done: int = 250, state: str = "running", **more: Any) -> Record:
    """What a job's agent says of it."""
    return record("replays", job, ReplayProgress(name, job, at, at, 1.0, state, 1000, done, **more))


def pool(name: str, at: float, jobs: Sequence[str], **more: Any) -> Record:
    """A pool of 16 cores of which the first job has what it wants, and the others two less."""
    shares = [
        PoolShare(
            job, 4.0 if number == 0 else 1.0, 1, 2, 1.4, heard_at=at - 1, wanted=4, running=4 if number == 0 else 2,
            budget_left=0.12 if number == 0 else 0.93, granted=4 if number == 0 else 2,
            reason="" if number == 0 else f"pool {name}: yields 2 to {jobs[0]} until 18:20 UTC: a late second of "
            f"{jobs[0]} costs 4 times as much",
            codes=["granted" if number == 0 else "yields"], wanted_replay=2 * (number == 1), late=int(number == 2),
        )
        for number, job in enumerate(jobs)
    ]  # fmt: skip
    state = PoolState(name, at, "divided", cores=16, usable=16.0, shares=[asdict(share) for share in shares])
    return record("pools", name, replace(state, **more))


def fleet(jobs: int, now: float, minutes: float = 0, others_s: int = 3) -> Iterator[Record]:
    """What the topics hold of so many jobs: some of them in trouble, the first three with minutes of history."""
    for number in range(jobs):
        yield from _one_of_a_fleet(number, now, round(60 * minutes) if number < 3 else others_s)
    names = [job_name(number) for number in range(min(jobs, 9))]
    many: dict[str, Any] = {
        "memory_gb": 24.0, "price_per_core_hour": 0.05, "daily_core_hours": 300.0, "day_core_s": 400_000.0,
        "enough_cores": 20, "short_from": now + 600, "short_until": now + 4200, "short_jobs": names[1:3],
        "blackouts": [[now + 90_000, now + 100_000, names[:1]]],
    }  # fmt: skip
    yield pool("shared", now, names[:3], **many)
    if names[3:6]:
        yield pool("nightly", now, names[3:6])
    if names[6:]:
        yield pool(
            "reports", now, names[6:], state="vetoed", problem="its hook at 127.0.0.1 forbids it; nothing changes"
        )


def job_name(number: int) -> str:
    """Return the name of a job of `fleet`."""
    return f"{('orders', 'clicks', 'payments', 'rides', 'sensors')[number % 5]}-{number:03d}"


def _one_of_a_fleet(number: int, now: float, seconds: int) -> Iterator[Record]:
    job = job_name(number)
    load, worry = 40.0 + 37 * (number * 7919 % 97), number % 10 if number % 40 < 10 else 9
    yield contract(job, executors={"min": 1, "max": 12})
    for second in range(seconds, 0, -1):
        at = now - second
        swing = load * (1 + 0.4 * math.sin(at / 240) + 0.05 * math.sin(at / 3))
        late_s = 9.0 if worry == 1 or 200 < second < 260 else 2.0 + 0.8 * math.sin(at / 7)
        there, mode = 2 + round(load / 400 + math.sin(at / 240)), ("act", "act", "observe", "freeze")[number % 4]
        if worry != 2 or second > 90:
            yield interval(job, at, swing, there, lag_records=int(swing), mode=mode)
        if second % 2:
            yield batch(job, at + 0.5, late_s)
        if seconds > 3 and second % 90 == 0:
            wanted = 2 + round(load / 400 + math.sin((at + 60) / 240))
            why = f"{swing:.0f} rec/s now, {1.2 * swing:.0f} are forecast in 60 s: {wanted} executors carry them"
            yield decision(job, at, wanted, why, capacity_rps=1.3 * swing)
            yield outcome(job, at, "ineffective" if second % 540 == 0 else "confirmed")
    standing = {
        "late_s": 7000.0 if worry == 0 else 900.0 + number, "seconds": 604_800.0, "budget_left": 0.8,
        "burn_long": 60.0 if worry == 1 else 0.4, "burn_short": 60.0 if worry == 1 else 0.2,
    }  # fmt: skip
    yield decision(job, now - 2, 3, promise=standing, metric_wall_time=now - 2)
    yield forecast(job, now - 30, load, step_s=60.0)
    if worry != 3:
        yield beat(job, now - 1)
    if number < 8:
        state = ("running", "running", "paused", "compared", "done", "failed", "waiting", "done")[number]
        hour = (1000 * now // 3_600_000 - 5) * 3_600_000
        corrects = {"begin_ms": int(hour), "end_ms": int(hour) + 3_600_000}
        then = "compare" if state == "compared" else "publish"
        yield order(job, f"fix-{number}", now - 400, by=now + 99, sure=0.9, then=then, **corrects)
        reason = "its rows differ in 12 keys" if state == "compared" else ""
        yield progress(job, f"fix-{number}", now - 1, 120 * number, state, rps=11.0, admitted_rps=12.0, reason=reason)
    if number % 4 == 3:
        yield word(job, now - 600, "freeze")
