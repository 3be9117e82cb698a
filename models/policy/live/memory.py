"""What the autoscaler remembers of one job between records: pure steps from memory to memory.

The memory is a small frozen value of numbers and tuples, so that it survives as JSON in the query's keyed state.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from configs.contract import Contract
from models.contract.service_rate import COLD_BATCHES
from models.policy.copies import copy_with
from models.policy.core.batch_time import BatchTime, learn_from_batch
from models.policy.core.batches import BatchSums, add_batch, busiest_share, tasks_s
from models.policy.core.budget import Account, Promise
from models.policy.core.capacity import parallelism
from models.policy.core.rate_spread import FIRST_SCATTER, add_surprise
from models.policy.live.beside_start import is_beside_start
from models.policy.live.learned_lead import LearnedLead, no_room
from models.policy.live.standing import Standing
from models.policy.received.arrival_rate import add_seconds
from models.policy.received.past import Past, add_interval
from models.policy.replays.kept import ReplayControl, with_latency, without_unsaid
from tidecast.fields import SPAN_MOST_S


@dataclass(frozen=True)
class Memory:
    """What the autoscaler knows of one job; wall times are epoch seconds, None for never.

    Attributes:
        model: the batch time as learned so far.
        arrivals, past: records/s of the newest seconds, oldest first; running totals of the last quarter of an hour.
        lag_records, executors, tasks: as the newest metrics that tell them have them; `tasks` of the heavy stage.
        target, changed_at, raised_at: executors last asked for, when that last changed, and rose above those that ran.
        metric_at, metric_time: wall time of the newest metrics record, and the job time at its end.
        time_scale: job seconds per wall second.
        cold: batches still to be ignored after a change of executors.
        batches, looked_at: sums since the last evaluation, and when that was.
        policy, carried, delay_s: who decided last, its memory as JSON values, and how long it kept executors.
        forecast, refuted: the newest forecast's fields, if any; whether nothing came of load that they called sure.
        mode, pending: what the agent does with decisions; executors that it asks for beyond these, None: Spark scales.
        standing, asked_at: the decision written last; since when more than before is asked for, also for replays.
        beat_at, unknown_at: when a heartbeat was last written; since when the job has had no contract.
        refused: kinds of metrics that were refused, and when that was told.
        turns: when each application began to report after another one, by its id; the last one reports now.
        lead, account: what its raises took, None before one; of the promise to the job's users.
        scatter: of the batches around `model` (`rate_spread`).
        replay: replays beside the job's live records, and the controller of their rate.
        missing_at: since when fewer executors than asked for have run, if they do.
        behind_at, no_room: since when the job is behind, if it is; whether the cluster has no room for all of `target`.
        busiest: share of its time that the busiest executor worked, in the newest batch that told; None before one.
        timer_ms: epoch milliseconds at which the query looks at it again without records; None: not known.
        scaling, cores: exponent of the slots by which `model` counts them, and slots of an executor; None: not known.
        slots, counted: of an executor, by the newest metrics; how many times what they do `model` takes them to do.
    """

    model: BatchTime
    arrivals: tuple[float, ...] = ()
    past: Past = field(default_factory=Past)
    lag_records: int = 0
    executors: int | None = None
    target: int | None = None
    tasks: int | None = None
    pending: int | None = None
    changed_at: float | None = None
    raised_at: float | None = None
    delay_s: float | None = None
    metric_at: float | None = None
    metric_time: float = 0.0
    time_scale: float = 1.0
    cold: int = 0
    batches: BatchSums = field(default_factory=BatchSums)
    looked_at: float | None = None
    policy: str = ""
    carried: dict[str, Any] = field(default_factory=dict)
    forecast: dict[str, Any] = field(default_factory=dict)
    refuted: bool = False
    mode: str | None = None
    standing: Standing | None = None
    asked_at: float | None = None
    beat_at: float | None = None
    unknown_at: float | None = None
    refused: dict[str, float] = field(default_factory=dict)
    turns: dict[str, list[float]] = field(default_factory=dict)
    lead: LearnedLead | None = None
    account: Account = field(default_factory=Account)
    scatter: float = FIRST_SCATTER
    replay: ReplayControl = field(default_factory=ReplayControl)
    missing_at: float | None = None
    behind_at: float | None = None
    no_room: bool = False
    busiest: float | None = None
    timer_ms: int | None = None
    scaling: float | None = None
    cores: int | None = None
    slots: float | None = None
    counted: float | None = None

    def ceiling(self, contract: Contract) -> int:
        """Return the tasks of the heavy stage; until they are known, all cores that the contract allows."""
        return self.tasks or contract.executors.max * contract.executors.cores

    def job_s(self, now: float) -> float:
        """Return the job's own time, in seconds, at a wall time in epoch seconds."""
        return self.metric_time + (now - (self.metric_at or now)) * self.time_scale

    def to_json(self) -> str:
        """Serialise the memory, floats of numpy as well; `from_json` is the inverse."""
        replay = {name: one for name, one in vars(self.replay).items() if one is not None}  # older releases lack some
        parts = {"replay": replay, "lead": self.lead and self.lead.to_json_values()}
        return msgspec.json.encode({**vars(self), **parts}, enc_hook=float).decode()  # `json` took a fifth of a step

    @classmethod
    def from_json(cls, text: str) -> Memory:
        """Rebuild the memory from the text of `to_json`; unknown fields are left out, missing ones take their defaults.

        Raises:
            ValueError: not the JSON of a memory as this release has it: no object, `model` or `arrivals` is missing,
                or a nested value has other fields.
        """
        try:
            read = msgspec.json.decode(text).items()
            data = {name: value for name, value in read if name in cls.__dataclass_fields__}
            data["model"] = BatchTime.from_json_values(data["model"])
            data["batches"] = BatchSums(**data.get("batches", {}))
            data["arrivals"] = tuple(data["arrivals"])
            data["standing"] = Standing(**data["standing"]) if data.get("standing") else None
            data["account"] = Account.from_json_values(data["account"]) if data.get("account") else Account()
            data["lead"] = LearnedLead.from_json_values(data["lead"]) if data.get("lead") else None
            data["replay"] = ReplayControl.from_json_values(data.get("replay", {}))
            data["past"] = Past(**{name: tuple(values) for name, values in data.get("past", {}).items()})
            if (at := data.get("timer_ms")) is not None and not (type(at) is int and 0 <= at < 1 << 63):
                raise TypeError(f"timer_ms {at!r} is no time in milliseconds")
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"no memory of this release: {type(error).__name__}: {error}") from None
        return cls(**data)


def fresh(contract: Contract) -> Memory:
    """Create the memory of a job of which only the contract's first guess of the batch time is known."""
    planning = contract.planning
    guess = BatchTime.guess(planning.overhead_s, planning.per_record_s)
    return Memory(guess, scaling=planning.scaling, cores=contract.executors.cores)


def with_interval(memory: Memory, sample: dict[str, Any]) -> Memory:
    """Return the memory after a metrics record of one interval.

    With more executors than before, the next `COLD_BATCHES` batches teach no capacity; with fewer, the next one.

    Args:
        memory: so far; not changed.
        sample: fields of a `tidecast.messages.MetricSample` of kind "interval".

    Raises:
        KeyError: a field is missing.
    """
    executors, cold = sample["executors"], memory.cold
    wall_span_s = min(sample["span_s"] / sample["time_scale"], SPAN_MOST_S)  # JSON has no number for an endless one
    silent_s = sample["wall_time"] - wall_span_s - (memory.metric_at or 0.0)
    if executors is not None and memory.executors is not None and executors != memory.executors:
        cold = COLD_BATCHES if executors > memory.executors else max(cold, 1)  # some of its batch ran on others, too
    return copy_with(
        memory, arrivals=add_seconds(memory.arrivals, sample["arrival_rps"], wall_span_s, silent_s),
        past=add_interval(memory.past, sample["wall_time"], sample["arrival_rps"], wall_span_s),
        # Before its first batch a query that was started again has all the backlog that it left.
        lag_records=memory.lag_records if sample["lag_records"] is None else sample["lag_records"],
        executors=executors if executors is not None else memory.executors,
        tasks=sample["task_ceiling"] or memory.tasks, pending=sample.get("pending_executors"), mode=sample.get("mode"),
        metric_at=sample["wall_time"], metric_time=sample["time"] + sample["span_s"], time_scale=sample["time_scale"],
        cold=cold, replay=without_unsaid(memory.replay, sample["wall_time"]),
    )  # fmt: skip


def with_batch(memory: Memory, sample: dict[str, Any], contract: Contract) -> Memory:
    """Return the memory after one micro-batch, which tells what a batch's overhead and its work per record are.

    The 2 batches after a scale-up do not, nor does one in which executors came or left, or one beside a start.

    Args:
        memory: so far; not changed.
        sample: of kind "batch": "batch_rows" (records), "batch_s" (seconds), "executors", each None where unknown, and
            "wall_time" (epoch seconds of its end); with a "latency_max_s", "time_scale" too. "run_s" and "stage_s",
            where an agent measured them, bound the work; "busiest_s" tells how busy the busiest executor was.
        contract: of the job, for cores per executor and `planning.scaling`.

    Raises:
        KeyError: one of these fields is missing.
    """
    if sample["wall_time"] == memory.batches.ended_at:  # the same record: a producer may send one twice
        return memory
    rows, duration = sample["batch_rows"] or 0, sample["batch_s"] or 0.0
    executors = sample["executors"] or memory.executors
    slots = parallelism(executors or 0, contract.executors.cores, memory.ceiling(contract))
    worth = slots**contract.planning.scaling
    work_s = max(0.0, duration - memory.model.overhead_s)
    account, latency_s = memory.account, sample.get("latency_max_s")
    if latency_s is not None:
        account = account.add_batch(Promise.of(contract), sample["wall_time"], latency_s, sample["time_scale"])
    memory = copy_with(
        memory, batches=add_batch(memory.batches, sample["wall_time"], rows, duration, work_s, worth),
        account=account, replay=with_latency(memory.replay, sample),
        busiest=busiest_share(memory.busiest, memory.batches, sample, contract.executors.cores),
    )  # fmt: skip
    if memory.cold > 0:
        return copy_with(memory, cold=memory.cold - 1)
    changed = executors != (memory.executors or executors)  # just now, and no interval has told yet
    since_s = -1.0 if memory.asked_at is None or memory.no_room else sample["wall_time"] - memory.asked_at
    asked = memory.standing, since_s, memory.lead
    if changed or not executors or not memory.tasks or is_beside_start(*asked, executors, contract):
        return memory
    scatter = add_surprise(memory.scatter, memory.model, rows, worth, duration)
    model = learn_from_batch(memory.model, rows, worth, duration, tasks_s(sample, slots))
    return copy_with(memory, model=model, scatter=scatter)


def with_contract(memory: Memory, contract: Contract) -> Memory:
    """Return the memory of a job that has a contract (again): its guess is the batch model, or bounds a learned one.

    Where `planning.scaling` or `executors.cores` was edited, the executors that run sustain what they did.
    """
    planning, cores = contract.planning, contract.executors.cores
    running, tasks = memory.executors or 1, memory.ceiling(contract)
    known = parallelism(running, memory.cores or cores, tasks) ** (memory.scaling or planning.scaling)
    slot = parallelism(running, cores, tasks) ** planning.scaling / known
    guess = BatchTime.guess(planning.overhead_s, planning.per_record_s)
    model = guess if memory.metric_at is None else memory.model.with_guess(guess, slot)
    counted = memory.counted and memory.counted * slot
    return copy_with(memory, model=model, scaling=planning.scaling, cores=cores, counted=counted, unknown_at=None)


def with_outcome(memory: Memory, outcome: dict[str, Any], contract: Contract) -> Memory:
    """Return the memory after the outcome of a decision: raises teach the lead time, and whether there was room.

    Args:
        memory: so far; not changed.
        outcome: fields of a `tidecast.messages.Outcome`.
        contract: of the job; its lead time is what is believed before any raise, and after a change of the cluster.

    Raises:
        KeyError: a field is missing.
    """
    if no_room(outcome) and outcome["confirmed_at"] is None:
        memory = copy_with(memory, no_room=True)  # until as many are there as are asked for
    return copy_with(memory, lead=LearnedLead.under(memory.lead, contract.planning).learn_outcome(outcome))
