"""What the autoscaler remembers of one job between records: pure steps from memory to memory.

The memory is a small frozen value of numbers and tuples, so that it survives as JSON in the query's keyed state.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field, replace
from typing import Any

from configs.contract import Contract
from models.policy.core.batches import BatchSums, ended
from models.policy.core.capacity import COLD_BATCHES, BatchModel, busy, learn, parallelism
from models.policy.live.standing import Standing
from models.policy.received.outlook import SMOOTH_S
from models.policy.received.past import Past, saw

SILENT_S = 30.0
"""A server speaks at least every 10 s; one that has not for so long serves no more."""
AHEAD_S = 60.0
"""Wall seconds by which a forecast may have come before the metrics that it was made of."""


@dataclass(frozen=True)
class Memory:
    """One job as the autoscaler knows it; wall times in seconds, None for never.

    Attributes:
        mode: what the job's agent does with decisions, as it last said.
        standing: the decision that was written last.
        beat_at: when a sign of life was last written.
        unknown_at: since when the job has had no contract.
    """

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
    batches: BatchSums = field(default_factory=BatchSums)
    looked_at: float | None = None
    policy: str = ""
    carried: dict[str, Any] = field(default_factory=dict)
    forecast: dict[str, Any] = field(default_factory=dict)
    mode: str | None = None
    standing: Standing | None = None
    beat_at: float | None = None
    unknown_at: float | None = None

    def ceiling(self, contract: Contract) -> int:
        """Tasks of the heavy stage; as many as a contract allows until they are known."""
        return self.tasks or contract.executors.max * contract.executors.cores

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
        data["batches"] = BatchSums(**data.get("batches", {}))
        data["arrivals"] = tuple(data["arrivals"])
        data["standing"] = Standing(**data["standing"]) if data.get("standing") else None
        data["past"] = Past(**{name: tuple(values) for name, values in data.get("past", {}).items()})
        return cls(**data)


def fresh(contract: Contract) -> Memory:
    """The memory of a job of which nothing is known but the contract's first guess of the batch model."""
    return Memory(BatchModel.guess(contract.planning.overhead_s, contract.planning.per_record_s))


def saw_interval(memory: Memory, sample: dict[str, Any]) -> Memory:
    """The memory after one second of metrics (fields as in `tidecast.messages.MetricSample`)."""
    executors = sample["executors"]
    changed = memory.executors is not None and executors is not None and executors > memory.executors
    return replace(
        memory,
        arrivals=(*memory.arrivals, sample["arrival_rps"])[-int(SMOOTH_S) :],
        past=saw(memory.past, sample["wall_time"], sample["arrival_rps"], sample["span_s"] / sample["time_scale"]),
        lag_records=sample["lag_records"] or 0,
        executors=executors if executors is not None else memory.executors,
        tasks=sample["task_ceiling"] or memory.tasks,
        mode=sample.get("mode"),
        metric_at=sample["wall_time"],
        metric_time=sample["time"] + sample["span_s"],
        time_scale=sample["time_scale"],
        cold=COLD_BATCHES if changed else memory.cold,
    )


def saw_batch(memory: Memory, sample: dict[str, Any], contract: Contract) -> Memory:
    """The memory after one micro-batch: busy ones teach capacity, the first ones after a scale-up do not."""
    rows, duration = sample["batch_rows"] or 0, sample["batch_s"] or 0.0
    executors = sample["executors"] or memory.executors
    slots = parallelism(executors or 0, contract.executors.cores, memory.ceiling(contract))
    worth = slots**contract.planning.scaling
    work_s = max(0.0, duration - memory.model.overhead_s)
    memory = replace(memory, batches=ended(memory.batches, sample["wall_time"], rows, duration, work_s, worth))
    if memory.cold > 0:
        return replace(memory, cold=memory.cold - 1)
    if not executors or not memory.tasks or not busy(memory.model.overhead_s, rows, worth, duration):
        return memory
    return replace(memory, model=learn(memory.model, rows, worth, duration))


def with_contract(memory: Memory, contract: Contract) -> Memory:
    """The memory of a job that has a contract, perhaps again: its first guess stands until batches teach better."""
    if memory.metric_at is None:
        memory = replace(memory, model=fresh(contract).model)
    return replace(memory, unknown_at=None)


def saw_forecast(memory: Memory, forecast: dict[str, Any]) -> Memory:
    """The memory after one forecast: of two serving epochs the higher counts, of one epoch the newer.

    So that no wrong one silences a job for good: a forecast of a time that the job has not reached is left out, and
    one that nobody has vouched for in SILENT_S gives way to whatever was made since.
    """
    held = memory.forecast
    if ahead(memory, forecast):
        return memory
    stands = held and forecast["wall_time"] - held["wall_time"] <= SILENT_S and not ahead(memory, held)
    if stands and (forecast["epoch"], forecast["time"]) < (held["epoch"], held["time"]):
        return memory
    return replace(memory, forecast=forecast)


def ahead(memory: Memory, forecast: dict[str, Any]) -> bool:
    """Whether a forecast begins after all that the job can have shown by then; never, before it has shown itself."""
    if memory.metric_at is None:
        return False
    shown = max(memory.metric_time, memory.job_s(forecast["wall_time"]))
    return bool(forecast["time"] > shown + AHEAD_S * memory.time_scale)


def saw_heartbeat(memory: Memory, beat: dict[str, Any]) -> Memory:
    """The memory after a `Heartbeat` (its fields) of who serves: the forecast that it vouches for is fresh."""
    held = memory.forecast
    if not held or beat["by"] != "serving" or beat["standing"] != str(held["epoch"]):
        return memory
    return replace(memory, forecast={**held, "wall_time": max(held["wall_time"], beat["wall_time"])})
