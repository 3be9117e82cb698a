"""How fast replays may run beside a job's live records: an interval of the contract's controller in each evaluation.

Replays are queries of their own, and a core that comes free goes to live records first. So no live batch grows by the
records of a replay, and the controller sees the job as one operator that serves records one by one, by what scaling has
learned of its batches. What live records wait for a replay's tasks all the same is measured: a latency above its limit
raises the price of the replay's rate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from configs.contract import Contract
from models.contract.constraints import worst_ratio
from models.contract.controller import admitted_now, close_interval
from models.contract.declared import build, plain
from models.contract.promised.derive import derive_terms
from models.contract.service_rate import CERTAIN
from models.contract.signals import OperatorReading, PlannedOperator, SharedPlan, Signals
from models.contract.state import ControllerState, begin
from models.contract.terms import Terms, compile_terms
from models.policy.core.backlog import backlog
from models.policy.core.batch_time import BatchTime
from models.policy.core.sustained import admission_reading, sustained_rates
from models.policy.received.observation import Observation
from models.policy.received.outlook import Outlook
from models.policy.replays.carried import carry_over, on_clock
from models.policy.replays.further import executors_of_use, numbers_to_weigh, weigh_executors
from models.policy.replays.interval_latency import MEASURED, interval_latencies
from models.policy.replays.level import next_level, raise_to
from models.policy.replays.live_load import Arrived, as_admitted, highest_ahead, highest_within
from models.policy.replays.record_cost import replay_cost
from models.policy.replays.relief import may_hold_back, relief_of
from models.policy.replays.start import begins, certainly_left, enough_for, is_enough

READING = ("waiting", "running", "paused")
"""States of a replay that is not read to its end."""
_KEPT = (
    "state", "records", "done", "wall_time", "reading_since", "executors", "executors_soon", "rows", "work_s", "cost",
    "admitted_rps", "warm",
)  # fmt: skip


@dataclass(frozen=True)
class ReplayControl:
    """What is kept of a job's replays between evaluations; JSON holds it exactly.

    Attributes:
        replays: newest progress by id, of those that are not read to their end.
        contract: hash of the contract that the terms were derived from.
        terms: in force (`plain`); None without replays.
        state: of the controller (`plain`).
        latency_s: the worst of each measured quantile since the newest interval was closed, by its field.
        batches: of live records since then.
        arrived: live records/s since then.
        level: of the service rate's quantile that is taken for certain.
        of_use: those of `executors` of which somebody gets anything, as found last; None: never looked at.
    """

    replays: dict[str, dict[str, Any]] = field(default_factory=dict)
    contract: str = ""
    terms: dict[str, Any] | None = None
    state: dict[str, Any] | None = None
    latency_s: dict[str, float] = field(default_factory=dict)
    batches: int = 0
    arrived: Arrived = field(default_factory=Arrived)
    level: float = CERTAIN
    of_use: int | None = None

    @classmethod
    def from_json_values(cls, values: Mapping[str, Any]) -> ReplayControl:
        """Build it from what JSON holds of it; missing fields take their defaults.

        Raises:
            TypeError: a field that it has not.
        """
        return cls(**{**values, "arrived": Arrived(*values.get("arrived", ()))})

    @property
    def executors(self) -> int:
        """Executors beyond the live job's that the replays' schedules ask for now."""
        return sum(one["executors"] or 0 for one in self.replays.values())

    @property
    def publishing(self) -> int:
        """Those of `executors` that replays ask for which are read to their end, and are published: without a rate."""
        return sum(one["executors"] or 0 for one in self.replays.values() if one["state"] not in READING)

    @property
    def executors_asked(self) -> int:
        """Those of `executors` that are asked for."""
        return self.executors if self.of_use is None else min(self.executors, self.of_use)

    def executors_soon(self, most: int) -> int:
        """Executors beyond the live job's that are not given back: the schedules ask for them soon, or a replay begins.

        With fewer executors live records would wait longer behind a first batch, and those that its schedule asks for
        once a record's cost is known would have to be started again.

        Args:
            most: that the job may have.
        """
        if any(begins(one) for one in self.replays.values()):
            return most
        return sum(max(one.get("executors_soon") or 0, one["executors"] or 0) for one in self.replays.values())


@dataclass(frozen=True)
class DecidedRate:
    """The rate of all replays together, records per wall second (None without any), and what else is asked for.

    `inputs` are JSON values from which `recomputed` comes to the same; `relief` is what the ladder asks for
    (`relief.relief_of`).
    """

    rps: float | None
    inputs: dict[str, Any] | None = None
    relief: dict[str, Any] | None = None


def with_progress(control: ReplayControl, progress: Mapping[str, Any]) -> ReplayControl:
    """Return the control after a word of the agent: fields of a `tidecast.orders.ReplayProgress`.

    One that is read in an application of its own takes nothing from live records, and is not decided about.
    """
    if progress.get("apart") is not None:
        return control
    replays = {name: known for name, known in control.replays.items() if name != progress["id"]}
    if progress["state"] in READING or progress.get("executors"):  # those of one that is published are kept for that
        replays[progress["id"]] = {name: progress.get(name) for name in _KEPT}
    return replace(control, replays=replays)


def with_latency(control: ReplayControl, sample: Mapping[str, Any]) -> ReplayControl:
    """Return the control after a batch: fields of a `MetricSample` of the live query."""
    if not control.replays and control.terms is None:
        return control
    told = {name: sample[name] for _, name in MEASURED if sample.get(name) is not None}
    worst = control.latency_s | {name: max(s, control.latency_s.get(name, s)) for name, s in told.items()}
    return replace(control, latency_s=worst, batches=control.batches + bool(told))


def decide_rate(
    control: ReplayControl, seen: Observation, contract: Contract, known: BatchTime, scatter: float, executors: int,
    live: int,
) -> tuple[ReplayControl, DecidedRate]:  # fmt: skip
    """Decide how fast replays may run until the next evaluation; a new interval is closed at most every `interval_s`.

    Of the executors that their schedules ask for it finds those of which neither live records nor replays get anything.

    Args:
        control: so far.
        seen: the job as observed now.
        contract: of the job; a change of it counts from the next interval on.
        known: batch time, as scaling has learned it.
        scatter: of the batches around it (`rate_spread`).
        executors: that run, those for replays too.
        live: executors that the policy asks for, of live records alone.
    """
    if not control.replays and not may_hold_back(contract):
        return (control if control == ReplayControl() else ReplayControl()), DecidedRate(None)
    plan, seen = _plan(contract, known), as_admitted(seen, contract)
    if control.terms is None or control.state is None or control.contract != contract.hash:
        terms = derive_terms(contract, sustained_rates(contract, known, seen.tasks))
        control = replace(
            control, contract=contract.hash, terms=plain(terms), state=plain(_carried(control, terms, plan, seen.now_s))
        )
    assert control.terms is not None and control.state is not None
    terms = compile_terms(control.terms)
    state = on_clock(build(ControllerState, control.state), terms, seen.now_s)
    reading = admission_reading(contract, known, scatter, max(executors, 1), seen.tasks, control.level)
    cost = replay_cost(control.replays.values(), known.per_record_s)
    if cost is None and control.replays:
        cost = 1.0  # nothing is told of them; what one that is over cost stands in the controller's state
    reading = replace(reading, replay_ratio=cost)
    control = replace(control, arrived=control.arrived.then(seen.arrival_rps))
    signals = _signals(control, terms, seen, contract, reading, max(executors, 1))
    left = certainly_left(terms, plan, state, signals)
    if left is not None:
        signals = _without_those_that_wait(control, signals, left, reading, seen.ahead)
        state = raise_to(state, left, control.level, terms, worst_ratio(terms, signals))
    control = replace(control, state=plain(state))
    inputs = {
        "terms": control.terms, "plan": plain(plan), "state": control.state, "signals": plain(signals),
        "executors": control.executors, "executors_soon": control.executors_soon(contract.executors.max),
    }  # fmt: skip
    if control.replays:
        of_each = {
            n: admission_reading(contract, known, scatter, n, seen.tasks, control.level).certain_rps or 0.0
            for n in numbers_to_weigh(live, control.executors, contract.executors.max)
        }
        weighed = weigh_executors(terms, plan, state, signals, _left(control), of_each)
        inputs |= {"publishing": control.publishing, "weighed": weighed}
        of_use = executors_of_use(weighed, live, control.executors, control.publishing, contract.executors.max)
        control = replace(control, of_use=of_use)
    closed = close_interval(terms, plan, state, signals)
    if closed.state.interval != state.interval:
        level = next_level(control.level, worst_ratio(terms, signals), control.replays.values(), closed.state)
        control = replace(control, state=plain(closed.state), latency_s={}, batches=0, arrived=Arrived(), level=level)
    rps = min(closed.controls.replay_rps, admitted_now(terms, plan, state, signals)) if control.replays else None
    inputs["response_changed"] = closed.state.response.alarm
    return control, DecidedRate(rps, inputs, relief_of(terms, closed.state))


def _carried(control: ReplayControl, terms: Terms, plan: SharedPlan, now_s: float) -> ControllerState:
    if control.terms is None or control.state is None:
        return begin(terms, plan, now_s - terms.interval_s)  # the first interval is over: what it needs is known
    return carry_over(build(ControllerState, control.state), compile_terms(control.terms), terms, plan, now_s)


def _plan(contract: Contract, known: BatchTime) -> SharedPlan:
    served = contract.executors.cores / known.per_record_s
    return SharedPlan((PlannedOperator(contract.job, prior_rps=served, core_s=known.per_record_s),))


def _signals(
    control: ReplayControl, terms: Terms, seen: Observation, contract: Contract, reading: OperatorReading,
    executors: int,
) -> Signals:  # fmt: skip
    high, live = highest_within(seen.ahead, terms.interval_s), control.arrived.steady_rps(seen.arrival_rps)
    if waiting := float(backlog(seen.arrival_rps, seen.lag_records, contract.batch_s)):
        # It goes before a replay's records, like those that come.
        high = max(live, high or 0.0) + waiting / contract.planning.catch_up_s
    return Signals(
        seen.now_s, live_rps=live, live_high_rps=high, replay_backlog=_left(control),
        latency_ms=interval_latencies(terms, control.latency_s, control.batches),
        operators={terms.name: reading}, executors=executors,
    )  # fmt: skip


def _without_those_that_wait(
    control: ReplayControl, signals: Signals, left_rps: float, reading: OperatorReading, ahead: Outlook | None
) -> Signals:
    """The signals, without the records of replays for which too little is left over now."""
    certain = (reading.certain_rps or 0.0) * (signals.executors or 1)
    left = left_rps * (1.0 if reading.replay_ratio is None else reading.replay_ratio)
    high = max(signals.live_rps or 0.0, signals.live_high_rps or 0.0)
    lowest = min(highest_ahead(ahead), default=None)
    return replace(
        signals,
        replay_backlog=_left(control, lambda one: is_enough(enough_for(one), left, certain, high, lowest)),
    )


def _left(control: ReplayControl, of: Callable[[Mapping[str, Any]], bool] = bool) -> float:
    """Records that are to be read of some replays; paused ones ask for none."""
    reads = [one for one in control.replays.values() if one["state"] != "paused" and of(one)]
    return float(sum(max(one["records"] - one["done"], 0) for one in reads))
