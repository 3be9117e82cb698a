"""What the autoscaler remembers of one job between records: pure steps from memory to memory.

The memory is a small frozen value of numbers and tuples, so that it survives as JSON in the query's keyed state.
"""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass, field, replace
from typing import Any

from configs.contract import Contract
from models.policy.capacity import BatchModel, is_busy, learn, parallelism
from models.policy.planner import Observation, Plan, plan

ARRIVALS = 3
"""Seconds of arrivals that are averaged: long enough for Poisson noise, short against the lead."""
COLD_BATCHES = 2
"""Batches after a change of executors whose durations say more about cold JVMs than about capacity."""
RESYNC_S = 20.0
"""A target that the executors have not reached after this long is given up for what is there."""


@dataclass(frozen=True)
class Memory:
    """One job as the autoscaler knows it; wall times in seconds, None for never."""

    model: BatchModel
    arrivals: tuple[float, ...] = ()
    lag_records: int = 0
    executors: int | None = None
    target: int | None = None
    tasks: int | None = None
    changed_at: float | None = None
    metric_at: float | None = None
    metric_time: float = 0.0
    time_scale: float = 1.0
    cold: int = 0
    wanted: tuple[tuple[float, int], ...] = ()
    forecast: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        """The memory as text."""
        return json.dumps(dataclasses.asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Memory:
        """The memory from its text."""
        data = json.loads(text)
        data["model"] = BatchModel(**data["model"])
        data["arrivals"] = tuple(data["arrivals"])
        data["wanted"] = tuple((at, n) for at, n in data["wanted"])
        return cls(**data)


def fresh(contract: Contract) -> Memory:
    """Knowing nothing but the contract's first guess of the batch model."""
    return Memory(BatchModel.guess(contract.planning.overhead_s, contract.planning.per_record_s))


def saw_interval(memory: Memory, sample: dict[str, Any]) -> Memory:
    """After one second of metrics (fields as in `tidecast.messages.MetricSample`)."""
    executors = sample["executors"]
    changed = memory.executors is not None and executors is not None and executors > memory.executors
    return replace(
        memory,
        arrivals=(*memory.arrivals, sample["arrival_rps"])[-ARRIVALS:],
        lag_records=sample["lag_records"] or 0,
        executors=executors if executors is not None else memory.executors,
        tasks=sample["task_ceiling"] or memory.tasks,
        metric_at=sample["wall_time"],
        metric_time=sample["time"] + sample["span_s"],
        time_scale=sample["time_scale"],
        cold=COLD_BATCHES if changed else memory.cold,
    )


def saw_batch(memory: Memory, sample: dict[str, Any], contract: Contract) -> Memory:
    """After one micro-batch: busy ones teach capacity, the first ones after a scale-up do not."""
    rows, duration = sample["batch_rows"] or 0, sample["batch_s"] or 0.0
    executors = sample["executors"] or memory.executors
    if memory.cold > 0:
        return replace(memory, cold=memory.cold - 1)
    if not executors or not memory.tasks:
        return memory
    slots = parallelism(executors, contract.executors.cores, memory.tasks)
    if not is_busy(memory.model, rows, slots, duration):
        return memory
    return replace(memory, model=learn(memory.model, rows, slots, duration))


def saw_forecast(memory: Memory, forecast: dict[str, Any]) -> Memory:
    """After one forecast: of two serving epochs the higher counts, of one epoch the newer."""
    held = memory.forecast
    if held and (forecast["epoch"], forecast["time"]) < (held["epoch"], held["time"]):
        return memory
    return replace(memory, forecast=forecast)


def upper_forecast(memory: Memory, now: float, contract: Contract) -> tuple[float | None, str]:
    """The highest upper quantile over lead + hold from now, and which forecast it is (or why there is none).

    Step h of a forecast covers job time [time + h * step, time + (h + 1) * step); the window is `lead + hold` wall
    seconds times the job's time scale, so lead in steps = lead * scale / step.
    """
    held, planning = memory.forecast, contract.planning
    if not held:
        return None, "no forecast yet"
    age = now - held["wall_time"]
    if age > planning.forecast_age_s:
        return None, f"late forecast: {age:.0f} s old, at most {planning.forecast_age_s:g} s"
    job_now = memory.metric_time + (now - (memory.metric_at or now)) * memory.time_scale
    until = job_now + (planning.lead_s + planning.hold_s) * memory.time_scale
    first = max(0, math.floor((job_now - held["time"]) / held["step_s"]))
    last = math.floor((until - held["time"]) / held["step_s"])
    rows = held["quantiles"][first : last + 1]
    if not rows:
        return None, f"late forecast: its {len(held['quantiles'])} steps are over"
    level = min(range(len(held["levels"])), key=lambda i: abs(held["levels"][i] - planning.quantile))
    upper = max(row[level] for row in rows)
    if not math.isfinite(upper) or upper < 0:
        return None, f"no forecast: its upper quantile is {upper}"
    return upper, f"{held['model']} v{held['version']} ({held['kind']}), {held['levels'][level]:g} quantile"


def evaluate(
    memory: Memory, now: float, contract: Contract, policy: str
) -> tuple[Memory, Observation | None, Plan | None]:
    """One evaluation at wall time `now`; no plan before the job has shown its executors or when metrics are too old."""
    if memory.executors is None or memory.metric_at is None or not memory.arrivals:
        return memory, None, None
    if now - memory.metric_at > contract.planning.metrics_age_s:
        return memory, None, None
    memory = _resynced(memory, now)
    assert memory.target is not None and memory.executors is not None
    since = now - memory.changed_at if memory.changed_at is not None else 1e6
    recent = tuple((at, n) for at, n in memory.wanted if now - at <= contract.planning.scale_down_delay_s)
    upper, note = upper_forecast(memory, now, contract) if policy == "forecast" else (None, "")
    seen = Observation(
        arrival_rps=sum(memory.arrivals) / len(memory.arrivals),
        lag_records=memory.lag_records,
        executors=memory.executors,
        target=memory.target,
        tasks=memory.tasks or contract.executors.max * contract.executors.cores,
        overhead_s=memory.model.overhead_s,
        per_record_s=memory.model.per_record_s,
        since_change_s=since,
        recent_need=max((n for _, n in recent), default=memory.target),
        forecast_rps=upper,
        forecast_note=note,
    )
    made = plan(seen, contract, policy)
    need = max(made.needed_observed, made.needed_forecast or 0)
    changed = now if made.executors != memory.target else memory.changed_at
    memory = replace(memory, target=made.executors, changed_at=changed, wanted=(*recent, (now, need)))
    return memory, seen, made


def _resynced(memory: Memory, now: float) -> Memory:
    """The target of the last decision while it can still come true, else the executors that are there."""
    if memory.target is None:
        return replace(memory, target=memory.executors)
    waited = math.inf if memory.changed_at is None else now - memory.changed_at
    if memory.target != memory.executors and waited > RESYNC_S:
        return replace(memory, target=memory.executors)
    return memory
