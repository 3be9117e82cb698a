"""How fast replays may run beside a job's live records: an interval of the contract's controller in each evaluation.

Replays are queries of their own, and a core that comes free goes to live records first. So no live batch grows by the
records of a replay, and the controller sees the job as one operator that serves records one by one, by what scaling has
learned of its batches. What live records wait for a replay's tasks all the same is measured: after a latency above its
limit replays have a smaller share of what is left over (`level`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from configs.contract import Contract
from models.contract.constraints import worst_ratio
from models.contract.controller import VERSION, admitted_now, close_interval
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
from models.policy.replays.carry_over import carry_over, have_moved, with_clock_set_back
from models.policy.replays.further import executors_of_use, numbers_to_weigh, weigh_executors
from models.policy.replays.interval_latency import interval_latencies
from models.policy.replays.kept import ReplayControl
from models.policy.replays.level import most_admitted, next_level, next_share, raise_to
from models.policy.replays.live_load import Arrived, as_admitted, highest_ahead, highest_within
from models.policy.replays.record_cost import replay_cost
from models.policy.replays.relief import may_hold_back, relief_of
from models.policy.replays.start import certainly_left, is_enough, share_to_be_left


@dataclass(frozen=True)
class DecidedRate:
    """The rate of all replays together, records per wall second (None without any), and what else is asked for.

    `inputs` are JSON values from which `recomputed` comes to the same; `relief` is what the ladder asks for
    (`relief.relief_of`).
    """

    rps: float | None
    inputs: dict[str, Any] | None = None
    relief: dict[str, Any] | None = None


def decide_rate(
    control: ReplayControl, seen: Observation, contract: Contract, known: BatchTime, scatter: float, executors: int,
    live: int, standing: int | None, raised_s: float | None = None,
) -> tuple[ReplayControl, DecidedRate]:  # fmt: skip
    """Decide how fast replays may run until the next evaluation; a new interval is closed at most every `interval_s`.

    Of the executors that their schedules ask for it finds those of which neither live records nor replays get anything.

    Args:
        control: so far.
        seen: the job as observed now.
        contract: of the job; a change of it, or of what its executors sustain, counts from the next interval on.
        known: batch time, as scaling has learned it.
        scatter: of the batches around it (`rate_spread`).
        executors: that run, those for replays too.
        live: executors that the policy asks for, of live records alone.
        standing: executors that the decision before asks for, those for replays too; None before one.
        raised_s: seconds since more than before were asked for, in all; None: never.
    """
    if not control.replays and not may_hold_back(contract):
        return (control if control == ReplayControl() else ReplayControl()), DecidedRate(None)
    plan, seen = _plan(contract, known), as_admitted(seen, contract)
    control, terms, state = _in_force(control, seen, contract, known, plan)
    control = replace(control, arrived=control.arrived.then(seen.arrival_rps))
    reading = _reading(control, seen, contract, known, scatter, max(executors, 1))
    signals = _signals(control, terms, seen, contract, reading, max(executors, 1))
    signals = replace(signals, starting=_is_starting(raised_s, seen, executors, standing) or None)
    left, had = certainly_left(terms, plan, state, signals), state
    if left is not None:
        control, state, signals = _with_room(control, terms, state, signals, left, reading, seen.ahead)
    control = replace(control, state=plain(state))
    inputs: dict[str, Any] = {
        "terms": control.terms, "plan": plain(plan), "state": control.state, "signals": plain(signals),
        "executors": control.executors, "executors_soon": control.executors_soon(contract.executors.max),
        "controller": VERSION, "standing": standing, "raised_s": raised_s,
    }  # fmt: skip
    if control.replays:
        of_each = {
            n: admission_reading(contract, known, scatter, n, seen.tasks, control.level).certain_rps or 0.0
            for n in numbers_to_weigh(live, control.executors, contract.executors.max)
        }
        weighed = weigh_executors(terms, plan, state, signals, _left(control, control.replays), of_each)
        inputs |= {"publishing": control.publishing, "weighed": weighed}
        inputs["may_begin"] = control.may_begin
        of_use = executors_of_use(weighed, live, control.executors, control.publishing, contract.executors.max)
        control = replace(control, of_use=of_use)
    closed = close_interval(terms, plan, state, signals)
    if closed.state.interval != state.interval:
        borne = worst_ratio(terms, signals) or None  # beside no live record nothing is
        control = _after_closing(control, closed.state, had, left, borne)
    rps = min(closed.controls.replay_rps, admitted_now(terms, plan, state, signals)) if control.replays else None
    inputs["response_changed"] = closed.state.response.alarm
    return control, DecidedRate(rps, inputs, relief_of(terms, closed.state))


def _in_force(
    control: ReplayControl, seen: Observation, contract: Contract, known: BatchTime, plan: SharedPlan
) -> tuple[ReplayControl, Terms, ControllerState]:
    """The terms that count now and where their controller stands, anew where the contract or what it rests on moved."""
    rates, same = sustained_rates(contract, known, seen.tasks), control.contract == contract.hash
    if control.terms is None or control.state is None or not same or have_moved(control.sustained, rates):
        terms = derive_terms(contract, rates)
        control = replace(
            control, contract=contract.hash, sustained=list(rates), terms=plain(terms),
            state=plain(_carried(control, terms, plan, seen.now_s)), worst=control.worst if same else None,
        )  # fmt: skip
    assert control.terms is not None and control.state is not None
    terms = compile_terms(control.terms)
    return control, terms, with_clock_set_back(build(ControllerState, control.state), terms, seen.now_s)


def _carried(control: ReplayControl, terms: Terms, plan: SharedPlan, now_s: float) -> ControllerState:
    if control.terms is None or control.state is None:
        return begin(terms, plan, now_s - terms.interval_s)  # the first interval is over: what it needs is known
    return carry_over(build(ControllerState, control.state), compile_terms(control.terms), terms, plan, now_s)


def _plan(contract: Contract, known: BatchTime) -> SharedPlan:
    served = contract.executors.cores / known.per_record_s
    return SharedPlan((PlannedOperator(contract.job, prior_rps=served, core_s=known.per_record_s),))


def _reading(
    control: ReplayControl, seen: Observation, contract: Contract, known: BatchTime, scatter: float, executors: int
) -> OperatorReading:
    cost = replay_cost(control.replays.values(), known.per_record_s)
    if cost is None and control.replays:
        cost = 1.0  # nothing is told of them; what one that is over cost stands in the controller's state
    reading = admission_reading(contract, known, scatter, executors, seen.tasks, control.level)
    return replace(reading, replay_ratio=cost)


def _signals(
    control: ReplayControl, terms: Terms, seen: Observation, contract: Contract, reading: OperatorReading,
    executors: int,
) -> Signals:  # fmt: skip
    high, live = highest_within(seen.ahead, terms.interval_s), control.arrived.steady_rps(seen.arrival_rps)
    waits = control.arrived.mean_rps > 0 or seen.lag_records > 0
    if waiting := float(backlog(seen.arrival_rps, seen.lag_records, contract.batch_s)):
        # It goes before a replay's records, like those that come.
        high = max(live, high or 0.0) + waiting / contract.planning.catch_up_s
    return Signals(
        seen.now_s, live_rps=live, live_high_rps=high, replay_backlog=_left(control, control.replays),
        latency_ms=interval_latencies(terms, control.latency_s, control.batches, waits),
        operators={terms.name: reading}, executors=executors,
    )  # fmt: skip


def _is_starting(raised_s: float | None, seen: Observation, executors: int, standing: int | None) -> bool:
    return (standing or 0) > executors or (raised_s is not None and raised_s < (seen.lead_s or 0.0))


def _with_room(
    control: ReplayControl, terms: Terms, state: ControllerState, signals: Signals, left: float,
    reading: OperatorReading, ahead: Outlook | None,
) -> tuple[ReplayControl, ControllerState, Signals]:  # fmt: skip
    """What `left` records/s, which are certainly left, let begin, admit at most and raise at once."""
    may_begin = _that_may_begin(control, signals, left, reading, ahead)
    worst = control.worst if (measured := worst_ratio(terms, signals)) is None else measured
    control = replace(control, may_begin=may_begin, worst=worst)
    most_rps = most_admitted(control.share, left, worst, state)
    signals = replace(signals, replay_backlog=_left(control, may_begin), replay_most_rps=most_rps)
    return control, raise_to(state, left, control.level, terms, worst), signals


def _after_closing(
    control: ReplayControl, closed: ControllerState, had: ControllerState, left: float | None, borne: float | None
) -> ReplayControl:
    """What is kept once an interval is closed; `had` is the state before anything was raised in it."""
    replays = control.replays.values()
    # What was borne beside a replay that is over says nothing of the next.
    level = next_level(control.level, borne, replays, closed) if replays else CERTAIN
    share = next_share(control.share, left or 0.0, borne, replays, had, closed) if replays else None
    return replace(control, state=plain(closed), latency_s={}, batches=0, arrived=Arrived(), level=level, share=share)


def _that_may_begin(
    control: ReplayControl, signals: Signals, left_rps: float, reading: OperatorReading, ahead: Outlook | None
) -> list[str]:
    """The replays for which enough is left over now; the others wait for a calmer time."""
    certain = (reading.certain_rps or 0.0) * (signals.executors or 1)
    left = left_rps * (1.0 if reading.replay_ratio is None else reading.replay_ratio)
    high = max(signals.live_rps or 0.0, signals.live_high_rps or 0.0)
    lowest = min(highest_ahead(ahead), default=None)
    replays = control.replays.items()
    return sorted(name for name, one in replays if is_enough(share_to_be_left(one), left, certain, high, lowest))


def _left(control: ReplayControl, names: Collection[str]) -> float:
    """Records that are to be read of the named replays; paused ones ask for none."""
    reads = [one for name, one in control.replays.items() if one["state"] != "paused" and name in names]
    return float(sum(max(one["records"] - one["done"], 0) for one in reads))
