"""Jobs whose seconds are made up, and decided by the autoscaler's own arithmetic: what each tells its topics."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from configs.contract import Contract, Executors
from models.policy.live.memory import Memory
from pipelines.bench.team.console.records import order, progress, record
from pipelines.kafka.broker import Record
from pipelines.scale.processor import Scaler
from tidecast.messages import ContractText, Decision, Forecast, Heartbeat, MetricSample, Outcome, encode

POLICY, COMES_S = "mpc", 9
"""Who decides; seconds until executors that were asked for are there."""
PROMISES: tuple[dict[str, Any], ...] = (
    {"error_budget": 0.05}, {"error_budget": 0.02, "latency_target_s": 7.0}, {"error_budget": 0.1, "window_days": 0.01},
    {"error_budget": 0.0},
)  # fmt: skip
"""Of the jobs by turns; the window of the third one passes while it runs."""
SCALES = (1.0, 60.0, 1.0, 1.0)
"""Job seconds per wall second, likewise."""
EPOCH = 1_700_000_000_000
"""Of the server that forecasts."""
LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]


def stated_contract(number: int) -> Contract:
    """Return the contract of the job of that number."""
    return Contract(job=f"told-{number}", executors=Executors(min=1, max=8), **PROMISES[number % len(PROMISES)])


def told_seconds(number: int, begin: float, seconds: int) -> Iterator[Record]:
    """Yield the records of a job from a wall time on, each stamped with the moment at which it is sent.

    There are late seconds in every five minutes, outcomes of what was decided, forecasts, a replay; some records come
    twice, and some are no messages.
    """
    agreed, scale = stated_contract(number), SCALES[number % len(SCALES)]
    job, scaler, memory = agreed.job, Scaler(agreed.job, agreed, POLICY, "act"), None
    executors, asked = 2, list[Decision]()
    stated = ContractText(job, begin - 1, begin - 1, 1.0, agreed.hash, agreed.text)
    yield replace(record("contracts", agreed.hash, stated), timestamp=begin - 1)
    yield replace(order(job, "fix", begin), timestamp=begin)
    for second in range(seconds):
        at = begin + second
        if asked and at >= asked[0].wall_time + COMES_S:
            done = asked.pop(0)
            yield _sent("outcomes", _outcome(done, at, executors))
            executors = done.executors
        said: list[tuple[str, Any]] = [*_measured(number, job, at, second, scale, executors)]
        if second % 60 == 5:
            said.append(_forecast(job, at, second, scale))
        elif second % 7 == 0:
            said.append(("heartbeats", Heartbeat(job, "serving", at, at + 0.1, 1.0, str(EPOCH), at, repeats=second)))
        yield from (_sent(topic, message) for topic, message in said)
        memory, decisions = yield from _decided(scaler, memory, said, at + 0.6)
        asked = asked or [one for one in decisions if one.executors != executors]
        if second % 50 == 20:
            yield replace(progress(job, "fix", at, min(second, 1000)), timestamp=at)
        if second % 97 == 90:  # sent anew by a producer that had no answer; no JSON; of another schema
            yield _sent(*said[0])
            yield replace(record("metrics", job, b"{"), timestamp=at)
            yield replace(record("decisions", job, b'{"schema":2}'), timestamp=at)


def _decided(scaler: Scaler, memory: Memory | None, said: list[tuple[str, Any]], now: float) -> Any:
    """The memory after a second, and the decisions sent; yields what the autoscaler tells."""
    rows = [{"topic": topic, "partition": 0, "offset": 0, "value": encode(message)} for topic, message in said]
    memory, sent = scaler.step(memory, rows, now, now)
    for topic, key, message in sent:
        yield replace(record(topic, key, message), timestamp=now)
    return memory, [message for _, _, message in sent if isinstance(message, Decision)]


def _sent(topic: str, message: Any) -> Record:
    return replace(record(topic, message.job, message), timestamp=message.wall_time)


def _measured(
    number: int, job: str, at: float, second: int, scale: float, executors: int
) -> Iterator[tuple[str, MetricSample]]:
    """An interval, and in every third second the batch that was committed in it."""
    load = (60.0 + 40 * number) * (1.2 + math.sin((second + 31 * number) / 70))
    behind = max(second % 300 - 100, 0) if second % 300 < 130 + 5 * number else 0  # seconds of records that wait
    time = at * 1.0 if scale == 1 else 1e9 + second * scale
    common: dict[str, Any] = {"time_scale": scale, "span_s": scale, "executors": executors, "task_ceiling": 8}
    yield (
        "metrics",
        MetricSample(
            job, "interval", time, at, arrival_rps=load, lag_records=round(load * (1 + behind)), mode="act", **common
        ),
    )
    if second % 3 == 2:
        latency_s = 2.0 + 0.4 * math.sin(second) + behind
        yield (
            "metrics",
            MetricSample(
                job, "batch", time, at + 0.4, batch_id=second // 3, batch_rows=round(3 * load), batch_s=1.5,
                latency_p50_s=latency_s / 2, latency_p95_s=latency_s * 0.9, latency_max_s=latency_s, **common,
            ),
        )  # fmt: skip


def _forecast(job: str, at: float, second: int, scale: float) -> tuple[str, Forecast]:
    time, load = at if scale == 1 else 1e9 + second * scale, 100.0 + second % 240
    wide = [[load * (1 + (level - 0.5) * 0.2 * (1 + step)) for level in LEVELS] for step in range(6)]
    made = Forecast(
        job, time, at + 0.1, scale, 30.0 * scale, LEVELS, wide, f"{job}-forecaster", str(1 + second // 300),
        "champion", "blend", 900 + second, EPOCH, load,
    )  # fmt: skip
    return "forecasts", made


def _outcome(of: Decision, at: float, before: int) -> Outcome:
    status = "ineffective" if round(of.wall_time) % 4 == 0 else "confirmed"
    return Outcome(
        of.id, of.job, of.time, at, of.time_scale, status, f"{of.executors} executors after {COMES_S} s",
        before, of.executors, of.executors, of.wall_time, of.wall_time + 0.2, at, at,
    )  # fmt: skip
