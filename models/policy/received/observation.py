"""The inputs of one decision about a live job, as values that a log can hold."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from configs.contract import Contract
from models.policy.core.capacity import Capacity, speed_table
from models.policy.core.view import View
from models.policy.received.outlook import Outlook

_SEEN = (
    "lag_records", "processed_rps", "busy", "busiest", "in_batch", "batch_s", "executors", "target", "since_change_s",
    "late_s", "counted_s",
)  # fmt: skip
"""Fields that a view takes over unchanged."""
_ADDED = (
    "lead_s", "late_s", "counted_s", "lead_growth", "burn", "behind_s", "scatter", "unmet", "busiest", "useful",
    "since_raise_s", "down_delay_s", "steady_rps", "rto_in_turns",
    "missing_s",
)  # fmt: skip


@dataclass(frozen=True)
class Observation:
    """The inputs of one decision about one job, beside contract and policy; logged with it. Times are wall seconds.

    Attributes:
        now_s: epoch seconds.
        since_s: since the last evaluation.
        job_s: the job's own time; `scale` of its seconds pass per wall second.
        arrival_rps: produced records/s, mean of the last few seconds.
        lag_records: records produced and not yet committed.
        processed_rps, busy, in_batch: as in `View`; None before the first batch.
        batch_s: mean duration of the batches since the last evaluation, None without any.
        executors: running now, without those asked to leave.
        target: executors last asked for.
        tasks: of the heavy stage; more slots than these are of no use.
        overhead_s, per_record_s: the batch model learned so far.
        since_change_s: since the target last changed.
        ahead: what remains of the forecast, None without a usable one.
        forecast_rps: its upper quantile over lead + hold, records/s.
        forecast_note: which forecast it is, or why there is none.
        carried: the policy's memory before the decision (`carried.dump`).
        version: of a learned policy's agent, None for others.
        stand_in: why this policy decides instead of the one asked for; "" if it is that one.
        lead_s: lead time that is planned for, as learned; None in older logs, whose contract has it.
        late_s, counted_s: late seconds, and all seconds of production, counted since the last evaluation; None in older
            logs, whose policies nothing steered.
        lead_growth: exponent by which the lead time grows with the executors that start at once, as learned; None in
            older logs: the contract's.
        burn: how many times as fast as allowed the error budget goes, over the long and the short window; None before
            any second of production, and in older logs, which say nothing of it.
        behind_s: since the job has been behind; None where it is not, and in older logs.
        scatter: of the batches around what was learned (`rate_spread`); None in older logs.
        busiest: as in `View`; None before a batch has told it, and in older logs.
        unmet: executors asked for, where the cluster has no room for all of them; else None, as in older logs.
        useful: the most executors that the tasks of the heavy stage can fill, within the contract's bounds; None in
            older logs, whose decisions the agent refused where they asked for more.
        since_raise_s: since the target last rose; None in older logs, which waited since its last change.
        down_delay_s: how long an executor is kept that nobody needs; None in older logs, whose contract has it.
        steady_rps: records/s that policies plan by (`arrival_rate`); None in older logs: `arrival_rps`.
        rto_in_turns: that those which an `rto` asks for start in turns; None in older logs, where all started at once.
        missing_s: since fewer than `target` have run; None where as many run, and in older logs.
    """

    now_s: float
    since_s: float
    job_s: float
    scale: float
    arrival_rps: float
    lag_records: int
    processed_rps: float | None
    busy: float | None
    in_batch: float | None
    batch_s: float | None
    executors: int
    target: int
    tasks: int
    overhead_s: float
    per_record_s: float
    since_change_s: float
    ahead: Outlook | None = None
    forecast_rps: float | None = None
    forecast_note: str = ""
    carried: dict[str, Any] = field(default_factory=dict)
    version: str | None = None
    stand_in: str = ""
    lead_s: float | None = None
    late_s: float | None = None
    counted_s: float | None = None
    lead_growth: float | None = None
    burn: tuple[float, float] | None = None
    behind_s: float | None = None
    scatter: float | None = None
    unmet: int | None = None
    busiest: float | None = None
    useful: int | None = None
    since_raise_s: float | None = None
    down_delay_s: float | None = None
    steady_rps: float | None = None
    rto_in_turns: bool | None = None
    missing_s: float | None = None

    def most(self, contract: Contract) -> int:
        """Return the most executors that may be asked for."""
        return contract.executors.max if self.useful is None else self.useful

    @property
    def asked(self) -> int:
        """Executors that the cluster is asked for, whether or not it has room."""
        return self.target if self.unmet is None else max(self.target, self.unmet)

    @property
    def planned_rps(self) -> float:
        """Records/s that policies plan by."""
        return self.arrival_rps if self.steady_rps is None else self.steady_rps

    def inputs(self) -> dict[str, Any]:
        """Return the fields as JSON values, by name; `from_inputs` is the inverse."""
        # What is in them is written out at once: to copy it as `asdict` does takes longer than to decide.
        return {**vars(self), "ahead": None if self.ahead is None else dict(vars(self.ahead))}

    @classmethod
    def from_inputs(cls, inputs: dict[str, Any]) -> Observation | None:
        """Rebuild an observation from the JSON values that `inputs` made.

        None if any field is missing but those in `_ADDED`, which older logs lack.

        Raises:
            KeyError, TypeError: `ahead` is neither None, {} nor the fields of an `Outlook`.
        """
        inputs = {**dict.fromkeys(_ADDED), **inputs}
        names = [f.name for f in dataclasses.fields(cls)]
        if any(name not in inputs for name in names):
            return None
        return cls(**{**{name: inputs[name] for name in names}, "ahead": Outlook.from_json_values(inputs["ahead"])})

    def to_view(self, contract: Contract) -> View:
        """Return the observation as a policy's view of one run: every array is (1,), None becomes NaN.

        Executors to come or to go are the difference of `target` and `executors`. ZeroDivisionError where `tasks` is 0.
        """
        bounds, planning = contract.executors, contract.planning
        worth = speed_table(bounds.max, bounds.cores, self.tasks, planning.scaling)
        numbers = {
            **{name: getattr(self, name) for name in _SEEN},
            "arrival_rps": self.planned_rps,
            "since_raise_s": self.since_change_s if self.since_raise_s is None else self.since_raise_s,
            "starting": max(0, self.target - self.executors), "leaving": max(0, self.executors - self.target),
            "least": bounds.min, "most": bounds.max,
        }  # fmt: skip
        capacity = Capacity(worth[None], np.array([self.overhead_s]), np.array([self.per_record_s]), contract.batch_s)
        return View(
            now_s=self.now_s, since_s=self.since_s, capacity=capacity,
            ahead=self.ahead.to_arrays() if self.ahead else None,
            **{name: np.array([value], float) for name, value in numbers.items()},  # None is NaN
        )  # fmt: skip
