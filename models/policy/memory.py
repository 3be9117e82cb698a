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
from configs.policies import BY_PEAKS, LISTENERS
from models.policy import carried
from models.policy.batches import Batches, ended, looked
from models.policy.capacity import BatchModel, is_busy, learn, parallelism
from models.policy.ears import Ears
from models.policy.outlook import SMOOTH_S, Moment, outlook
from models.policy.past import Past, saw
from models.policy.plan import Observation, Plan, plan
from models.policy.view import Policy

COLD_BATCHES = 2
"""Batches after a change of executors whose durations say more about cold JVMs than about capacity."""
FIRST_LOOK_S = 1.0
NEVER_S = 1e6
"""Since the last change, where there was none."""
RESYNC_S, RESYNC_LEADS = 20.0, 1.5
"""A target that the executors have not reached after this long is given up for what is there: seconds, or lead times
where these are longer, because given up earlier a request would be withdrawn before it can come true."""


@dataclass(frozen=True)
class Memory:
    """One job as the autoscaler knows it; wall times in seconds, None for never."""

    model: BatchModel
    arrivals: tuple[float, ...] = ()
    past: Past = field(default_factory=Past)
    lag_records: int = 0
    executors: int | None = None
    target: int | None = None
    tasks: int | None = None
    changed_at: float | None = None
    metric_at: float | None = None
    metric_time: float = 0.0
    time_scale: float = 1.0
    cold: int = 0
    batches: Batches = field(default_factory=Batches)
    looked_at: float | None = None
    policy: str = ""
    carried: dict[str, Any] = field(default_factory=dict)
    forecast: dict[str, Any] = field(default_factory=dict)

    def job_s(self, now: float) -> float:
        """The job's own time at a wall time, seconds."""
        return self.metric_time + (now - (self.metric_at or now)) * self.time_scale

    def to_json(self) -> str:
        """The memory as text."""
        return json.dumps(dataclasses.asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Memory:
        """The memory from its text; what another version of this code kept beside it is left out."""
        names = {f.name for f in dataclasses.fields(cls)}
        data = {name: value for name, value in json.loads(text).items() if name in names}
        data["model"] = BatchModel(**data["model"])
        data["batches"] = Batches(**data.get("batches", {}))
        data["arrivals"] = tuple(data["arrivals"])
        data["past"] = Past(**{name: tuple(values) for name, values in data.get("past", {}).items()})
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
        arrivals=(*memory.arrivals, sample["arrival_rps"])[-int(SMOOTH_S) :],
        past=saw(memory.past, sample["wall_time"], sample["arrival_rps"], sample["span_s"] / sample["time_scale"]),
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
    slots = parallelism(executors or 0, contract.executors.cores, _tasks(memory, contract))
    worth = slots**contract.planning.scaling
    work_s = max(0.0, duration - memory.model.overhead_s)
    memory = replace(memory, batches=ended(memory.batches, sample["wall_time"], rows, duration, work_s, worth))
    if memory.cold > 0:
        return replace(memory, cold=memory.cold - 1)
    if not executors or not memory.tasks:
        return memory
    if not is_busy(memory.model, rows, worth, duration):
        return memory
    return replace(memory, model=learn(memory.model, rows, worth, duration))


def saw_forecast(memory: Memory, forecast: dict[str, Any]) -> Memory:
    """After one forecast: of two serving epochs the higher counts, of one epoch the newer."""
    held = memory.forecast
    if held and (forecast["epoch"], forecast["time"]) < (held["epoch"], held["time"]):
        return memory
    return replace(memory, forecast=forecast)


def evaluate(
    memory: Memory,
    now: float,
    contract: Contract,
    policy: Policy,
    version: str | None = None,
    stand_in: str = "",
    ears: Ears | None = None,
) -> tuple[Memory, Observation | None, Plan | None]:
    """One evaluation at wall time `now`; no plan before the job has shown its executors or when metrics are too old.

    The policy's own memory goes on from its last decision, and begins afresh after another policy's. `version` is that
    of a learned policy's agent; `stand_in` says why this policy decides in the place of the one that was asked for;
    `ears` are those of the forecast that is held.
    """
    if memory.executors is None or memory.metric_at is None or not memory.arrivals:
        return memory, None, None
    if now - memory.metric_at > contract.planning.metrics_age_s:
        return memory, None, None
    memory = _resynced(memory, now, contract)
    batches, batch_s = looked(memory.batches, memory.lag_records)
    seen = _observation(replace(memory, batches=batches), now, batch_s, contract, policy, ears)
    seen = replace(seen, version=version, stand_in=stand_in)
    after, made = plan(seen, contract, policy)
    changed = now if made.executors != memory.target else memory.changed_at
    memory = replace(
        memory, target=made.executors, changed_at=changed, batches=batches, looked_at=now,
        policy=policy.name, carried=carried.dump(after),
    )  # fmt: skip
    return memory, seen, made


def _observation(
    memory: Memory, now: float, batch_s: float | None, contract: Contract, policy: Policy, ears: Ears | None
) -> Observation:
    assert memory.target is not None and memory.executors is not None
    ahead, upper, note = None, None, ""
    moment = Moment(now, memory.job_s(now), memory.time_scale, sum(memory.arrivals) / len(memory.arrivals), memory.past)
    if policy.name in LISTENERS:
        ears = ears if policy.name in BY_PEAKS else None
        ahead, upper, note = outlook(memory.forecast, moment, contract.planning, ears)
    kept = memory.carried if memory.policy == policy.name else carried.dump(policy.fresh(1))
    return Observation(
        now_s=now,
        since_s=now - memory.looked_at if memory.looked_at is not None else FIRST_LOOK_S,
        job_s=moment.job_now,
        scale=moment.scale,
        arrival_rps=moment.arrival_rps,
        lag_records=memory.lag_records,
        processed_rps=memory.batches.processed_rps,
        busy=memory.batches.busy,
        in_batch=memory.batches.in_batch,
        batch_s=batch_s,
        executors=memory.executors,
        target=memory.target,
        tasks=_tasks(memory, contract),
        overhead_s=memory.model.overhead_s,
        per_record_s=memory.model.per_record_s,
        since_change_s=now - memory.changed_at if memory.changed_at is not None else NEVER_S,
        ahead=ahead,
        forecast_rps=upper,
        forecast_note=note,
        carried=kept,
    )


def _tasks(memory: Memory, contract: Contract) -> int:
    return memory.tasks or contract.executors.max * contract.executors.cores


def _resynced(memory: Memory, now: float, contract: Contract) -> Memory:
    """The target of the last decision while it can still come true, else the executors that are there."""
    if memory.target is None:
        return replace(memory, target=memory.executors)
    waited = math.inf if memory.changed_at is None else now - memory.changed_at
    if memory.target != memory.executors and waited > max(RESYNC_S, RESYNC_LEADS * contract.planning.lead_s):
        return replace(memory, target=memory.executors)
    return memory
