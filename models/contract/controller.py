"""One interval of control: signals in, controls, the next state and a line of the trace out.

The controller is that of the unified batch-stream runtime paper (eq. 3.5) with the replay's cap (eq. 3.4). Everything
follows from the arguments, so that a trace replays to the same controls.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from models.contract.admission import (
    OperatorRoom,
    ServedRates,
    applied_rate,
    live_rate,
    operator_margin,
    replay_rate,
)
from models.contract.constraints import OperatorLoad, Situation, measured_constraints, predict, worst_ratio
from models.contract.declared import plain
from models.contract.fairness import QUANTUM_UNDER_PRESSURE, Credits
from models.contract.primal_dual import Scaling, descend, lagrangian_gradient, raise_prices, stop_at_balance
from models.contract.relief import ReliefStep, advance
from models.contract.relief_effects import (
    divide_capacity,
    divide_tenants,
    error_share,
    executors_asked,
    highest_step,
    live_cap,
    steps_without_effect,
)
from models.contract.service_rate import capacity
from models.contract.signals import OperatorReading, PlannedOperator, SharedPlan, Signals, clean_signals
from models.contract.state import ControllerState, Controls, KnownOperator
from models.contract.terms import Terms

LEAST_RPS = 1e-9
"""Rate that an operator is taken to serve at least, so that the formulas of queues stay finite."""
VERSION = 7
"""Of the controller; a change that moves any control on the same signals, or adds to a line, makes it another."""
CHANGED = "the job no longer responds to its controls as it did"


class ClosedInterval(NamedTuple):
    """What the controller says at the end of an interval: controls, its next state, and the line of the trace."""

    controls: Controls
    state: ControllerState
    line: dict[str, Any]


def operator_seed(seed: int, operator: str, interval: int) -> int:
    """Return the seed of an operator's sampling in an interval, 0 to 2⁶³ − 1; the same on every platform."""
    digest = hashlib.sha256(f"{seed}\n{operator}\n{interval}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def admitted_now(terms: Terms, plan: SharedPlan, state: ControllerState, signals: Signals) -> float:
    """Return the replayed records/s that live records, as they come now, leave over (eq. 3.4), also between intervals.

    An interval's rate is the controller's; that live records come faster than it reckoned with shows before its end.
    What a forecast says of the time after that end is the next interval's.

    Args:
        terms: the contract.
        plan: of the operators.
        state: from `begin`, or from the interval before.
        signals: measured up to now.
    """
    seen = clean_signals(signals)
    known = _learn(terms, plan, state, seen, state.interval)
    return replay_rate(list(known.rooms.values()), known.live_rps or 0.0)


def served_rates(terms: Terms, plan: SharedPlan, state: ControllerState, signals: Signals) -> ServedRates:
    """Return what the executors of some signals come to serve, however slowly the replay's rate rises to that.

    Of live records no more count than are expected, but on the ladder of relief: there as many as there is room for.

    Args:
        terms: the contract.
        plan: of the operators.
        state: so far.
        signals: measured up to now, with the executors that are asked about.
    """
    known = _learn(terms, plan, state, clean_signals(signals), state.interval)
    rooms, high_rps, step = list(known.rooms.values()), known.high_rps, state.relief.step
    shared_rps = divide_capacity(terms, known.seen, rooms, high_rps, step).replay
    live_rps = min(live_rate(rooms), math.inf if step else high_rps)
    return ServedRates(live_rps, min(replay_rate(rooms, high_rps), shared_rps))


class _Known(NamedTuple):
    """What an interval has told: cleaned signals, what was learned, live rate (None: never read) and the most of it."""

    at: int
    seen: Signals
    operators: dict[str, KnownOperator]
    rooms: dict[str, OperatorRoom]
    executors: int | None
    live_rps: float | None
    high_rps: float


class _Replay(NamedTuple):
    """The replay's next rate, its limits and those it stands at, and what was predicted for the rate before."""

    rps: float
    limits: dict[str, float]
    bound: list[str]
    units: tuple[float, float]
    cost: float
    foreseen: dict[str, float]


def close_interval(terms: Terms, plan: SharedPlan, state: ControllerState, signals: Signals) -> ClosedInterval:
    """Close an interval at a boundary t_0 + n·Δt.

    A signal that is unread changes no price; without live rate or backlog the replay does not rise. Signals of an
    interval that is closed already, as after a clock that went back, change nothing.

    Args:
        terms: the contract.
        plan: of the operators.
        state: from `begin`, or from the interval before.
        signals: measured up to the boundary.

    Raises:
        ValueError: the time is not finite.
    """
    seen = clean_signals(signals)
    at = state.interval_at(seen.time_s, terms.interval_s)
    if at <= state.interval:
        reason = f"interval {at} is closed: the clock went back, or the signals came twice"
        line = {"n": state.interval, "controls": plain(state.controls), "reason": reason}
        return ClosedInterval(state.controls, state, {"hash": terms.hash, "y": plain(seen), **line})
    known = _learn(terms, plan, state, seen, at)
    measured, worst = measured_constraints(terms, seen, _drift(terms, state, seen, at)), worst_ratio(terms, seen)
    passed = steps_without_effect(terms, seen, state.controls)
    relief = advance(state.relief, worst, highest_step(terms, state.controls), passed)
    credits = divide_capacity(terms, seen, list(known.rooms.values()), known.high_rps, relief.step)
    replay = _step(terms, plan, state, known, credits, relief.step)
    live_rps = live_cap(terms, state.controls, relief.step, worst, known.live_rps)
    rows, deficits = divide_tenants(terms, seen, live_rps, relief.step, state.deficits)
    controls = Controls(
        replay.rps, live_rps, credits.maintenance, error_share(terms, state.controls.theta, relief.step),
        executors_asked(
            terms, plan, known.operators, known.high_rps, known.executors, worst, state.controls.executors,
            bool(seen.starting),
        ) if relief.step >= ReliefStep.CAPACITY else None,
        terms.shed.max_fraction if relief.step >= ReliefStep.SHED else 0.0,
        QUANTUM_UNDER_PRESSURE if relief.step else 1.0, credits, rows,
        {name: operator_seed(terms.seed, name, at) for name in sorted(terms.error)},
    )  # fmt: skip
    after = replace(
        state, interval=at, controls=controls, operators=known.operators, relief=relief, live_rps=known.live_rps,
        executors=known.executors, multipliers=raise_prices(state.multipliers, measured), deficits=deficits,
        response=state.response.after(worst, (seen.live_rps, replay.rps, known.executors), at - state.interval),
        lag_ms=state.lag_ms if seen.lag_ms is None else seen.lag_ms, lag_at=state.lag_at if seen.lag_ms is None else at,
    )  # fmt: skip
    line = {
        "hash": terms.hash, "n": at, "t": state.began_s + at * terms.interval_s, "y": plain(seen),
        "posteriors": {name: [one.rate.shape, one.rate.rate] for name, one in known.operators.items()},
        "nu": {"before": dict(state.multipliers), "after": dict(after.multipliers)},
        "predicted": {"f": replay.cost, "g": replay.foreseen}, "measured": measured,
        "u": {"before": replay.units[0], "after": replay.units[1]}, "limits": replay.limits, "caps": replay.bound,
        "ladder": relief.step, "controls": plain(controls), "response": plain(after.response),
        "reason": _reason(replay.bound, relief.step, after.response.alarm),
    }  # fmt: skip
    return ClosedInterval(controls, after, line)


def _learn(terms: Terms, plan: SharedPlan, state: ControllerState, seen: Signals, at: int) -> _Known:
    operators = {one.name: _learned(one, state, seen) for one in plan.operators}
    live, executors = state.live_rps if seen.live_rps is None else seen.live_rps, seen.executors or state.executors
    rooms = {name: _room(terms, plan, name, one, executors or 1) for name, one in operators.items()}
    return _Known(at, seen, operators, rooms, executors, live, max(live or 0.0, seen.live_high_rps or 0.0))


def _step(
    terms: Terms, plan: SharedPlan, state: ControllerState, known: _Known, credits: Credits, step: int
) -> _Replay:
    """Predict, step against the priced slope (eq. 3.5), and project onto the caps (eq. 3.4 and what else bounds)."""
    seen, before, box = known.seen, state.controls.replay_rps, terms.controls.replay_rps
    loads = {one.name: OperatorLoad(*known.rooms[one.name][:3], one.core_s, one.held_bytes) for one in plan.operators}
    situation, scaling = Situation(terms, plan, loads, seen, known.live_rps or 0.0, before), Scaling(box)
    units = (scaling.to_unit(before),)

    def slopes(at: Sequence[float]) -> tuple[float, ...]:
        return lagrangian_gradient(lambda to: predict(situation, scaling.from_unit(to[0])), at, state.multipliers)

    stepped = descend(units, slopes(units), (box.slew,), (1.0,))[0]
    stepped = stop_at_balance(lambda unit: slopes((unit,))[0], units[0], stepped)
    unread = known.live_rps is None or seen.live_rps is None or seen.replay_backlog is None
    limits = {
        "admission": 0.0 if known.live_rps is None else replay_rate(list(known.rooms.values()), known.high_rps),
        "credits": credits.replay,
        "borne": math.inf if seen.replay_most_rps is None else seen.replay_most_rps,
        "step": scaling.from_unit(stepped),
        "relief": 0.0 if step >= ReliefStep.REPLAY else math.inf,
        "unread": before if unread else math.inf,
    }
    backlog = math.inf if seen.replay_backlog is None else seen.replay_backlog
    rps = applied_rate(list(limits.values()), backlog, terms.interval_s, before, box)
    told = {**limits, "backlog": backlog / terms.interval_s}
    limits = {name: limit for name, limit in told.items() if limit < math.inf}
    bound = [name for name, limit in limits.items() if limit <= rps]
    return _Replay(rps, limits, bound, (units[0], scaling.to_unit(rps)), *predict(situation, before))


def _learned(one: PlannedOperator, state: ControllerState, seen: Signals) -> KnownOperator:
    known = state.operators.get(one.name) or KnownOperator.planned(one)
    now, was, rate = seen.executors or 0, state.executors or 0, known.rate
    moved = bool(now and was and now != was)
    if moved or seen.changed:
        rate = rate.changed(grown=moved and now > was)
    reading = seen.operators.get(one.name, OperatorReading())
    live = known.live_ratio if reading.live_ratio is None else reading.live_ratio
    replay = known.replay_ratio if reading.replay_ratio is None else reading.replay_ratio
    told = known.told_rps if reading.certain_rps is None else reading.certain_rps
    if told is None:  # one estimate only: the posterior is the paper's rule, where nobody knows better
        rate = rate.observed(reading.completed or 0.0, reading.busy_s or 0.0)
    return KnownOperator(rate, live, replay, told)


def _room(terms: Terms, plan: SharedPlan, name: str, known: KnownOperator, executors: int) -> OperatorRoom:
    """What an operator certainly serves, and its margin."""
    service = max(capacity(executors, known.certain_rps, plan.contention), LEAST_RPS)
    margin_rps = operator_margin(terms, plan, name).of(service)
    return OperatorRoom(service, known.live_ratio, known.replay_ratio, margin_rps)


def _drift(terms: Terms, state: ControllerState, seen: Signals, at: int) -> float | None:
    """ms/s by which the watermark lag grew since it was read last."""
    if seen.lag_ms is None or state.lag_ms is None:
        return None
    return (seen.lag_ms - state.lag_ms) / ((at - state.lag_at) * terms.interval_s)


def _reason(bound: Sequence[str], step: int, changed: bool) -> str:
    found = f"replay bound by {', '.join(bound)}" if bound else "replay rises as fast as it may"
    if step:
        found = f"relief: {ReliefStep(step).name.lower()}"
    return f"{found}; {CHANGED}" if changed else found
