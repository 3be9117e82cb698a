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
    LEAST_MARGIN,
    OperatorRoom,
    applied_rate,
    batch_margin_rps,
    find_bottleneck,
    queue_margin_rps,
    replay_rate,
)
from models.contract.constraints import OperatorLoad, Situation, measured_constraints, predict, worst_ratio
from models.contract.declared import plain
from models.contract.fairness import QUANTUM_UNDER_PRESSURE, Credits, divide_credits
from models.contract.holding import divide_tenants, executors_asked, highest_step, live_cap
from models.contract.primal_dual import Scaling, descend, lagrangian_gradient, raise_prices
from models.contract.relief import ReliefStep, advance
from models.contract.service_rate import CERTAIN, capacity
from models.contract.signals import SharedPlan, Signals, clean_signals
from models.contract.state import ControllerState, Controls, KnownOperator
from models.contract.terms import Terms

LEAST_RPS = 1e-9
"""Rate that an operator is taken to serve at least, so that the formulas of queues stay finite."""


class ClosedInterval(NamedTuple):
    """What the controller says at the end of an interval: controls, its next state, and the line of the trace."""

    controls: Controls
    state: ControllerState
    line: dict[str, Any]


def operator_seed(seed: int, operator: str, interval: int) -> int:
    """Return the seed of an operator's sampling in an interval, 0 to 2⁶³ − 1; the same on every platform."""
    digest = hashlib.sha256(f"{seed}\n{operator}\n{interval}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


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
    at = math.floor((seen.time_s - state.began_s) / terms.interval_s + 1e-9)
    if at <= state.interval:
        line = {"hash": terms.hash, "n": state.interval, "y": plain(seen), "controls": plain(state.controls)}
        reason = f"interval {at} is closed: the clock went back, or the signals came twice"
        return ClosedInterval(state.controls, state, {**line, "reason": reason})
    operators = {one.name: _learned(one.name, plan, state, seen) for one in plan.operators}
    live = state.live_rps if seen.live_rps is None else seen.live_rps
    high = max(live or 0.0, seen.live_high_rps or 0.0)
    executors = seen.executors or state.executors
    rooms = {name: _room(terms, plan, name, one, executors or 1) for name, one in operators.items()}
    measured, worst = measured_constraints(terms, seen, _drift(terms, state, seen, at)), worst_ratio(terms, seen)
    relief = advance(state.relief, worst, highest_step(terms, state.controls))
    credits = _credits(terms, seen, list(rooms.values()), high, relief.step)

    loads = {one.name: OperatorLoad(*rooms[one.name][:3], one.core_s, one.held_bytes) for one in plan.operators}
    before, box = state.controls.replay_rps, terms.controls.replay_rps
    situation, scaling = Situation(terms, plan, loads, seen, live or 0.0, before), Scaling(box)
    units = (scaling.to_unit(before),)
    gradient = lagrangian_gradient(lambda to: predict(situation, scaling.from_unit(to[0])), units, state.multipliers)
    wanted = scaling.from_unit(descend(units, gradient, (box.slew,), (1.0,))[0])
    limits = {
        "admission": replay_rate(list(rooms.values()), high) if live is not None else 0.0,
        "credits": credits.replay,
        "step": wanted,
        "relief": 0.0 if relief.step >= ReliefStep.REPLAY else math.inf,
        "unread": before if live is None or seen.live_rps is None or seen.replay_backlog is None else math.inf,
    }
    backlog = math.inf if seen.replay_backlog is None else seen.replay_backlog
    replay_rps = applied_rate(list(limits.values()), backlog, terms.interval_s, before, box)
    cost, foreseen = predict(situation, before)
    live_rps = live_cap(terms, state.controls, relief.step, worst, live)
    rows, deficits = divide_tenants(terms, seen, live_rps, relief.step, state.deficits)
    controls = Controls(
        replay_rps, live_rps, credits.maintenance,
        _theta(terms, state.controls.theta, relief.step),
        executors_asked(plan, operators, rooms, high, executors) if relief.step >= ReliefStep.CAPACITY else None,
        terms.shed.max_fraction if relief.step >= ReliefStep.SHED else 0.0,
        QUANTUM_UNDER_PRESSURE if relief.step else 1.0, credits, rows,
        {name: operator_seed(terms.seed, name, at) for name in sorted(terms.error)},
    )  # fmt: skip
    after = replace(
        state, interval=at, controls=controls, operators=operators, relief=relief, live_rps=live, executors=executors,
        multipliers=raise_prices(state.multipliers, measured), deficits=deficits,
        lag_ms=state.lag_ms if seen.lag_ms is None else seen.lag_ms, lag_at=state.lag_at if seen.lag_ms is None else at,
    )  # fmt: skip
    bound = [name for name, limit in limits.items() if limit <= replay_rps]
    bound += ["backlog"] if backlog / terms.interval_s <= replay_rps else []
    line = {
        "hash": terms.hash, "n": at, "t": state.began_s + at * terms.interval_s, "y": plain(seen),
        "posteriors": {name: [one.rate.shape, one.rate.rate] for name, one in operators.items()},
        "nu": {"before": dict(state.multipliers), "after": dict(after.multipliers)},
        "predicted": {"f": cost, "g": foreseen}, "measured": measured,
        "u": {"before": units[0], "after": scaling.to_unit(replay_rps)},
        "caps": bound, "ladder": relief.step, "controls": plain(controls), "reason": _reason(bound, relief.step),
    }  # fmt: skip
    return ClosedInterval(controls, after, line)


def _learned(name: str, plan: SharedPlan, state: ControllerState, seen: Signals) -> KnownOperator:
    known = state.operators.get(name)
    if known is None:
        known = next(KnownOperator.planned(one) for one in plan.operators if one.name == name)
    now, was = seen.executors, state.executors
    moved, rate = now is not None and was is not None and now != was, known.rate
    if moved or seen.changed:
        rate = rate.changed(grown=moved and (now or 0) > (was or 0))
    reading = seen.operators.get(name)
    if reading is None:
        return replace(known, rate=rate)
    live = known.live_ratio if reading.live_ratio is None else reading.live_ratio
    replay = known.replay_ratio if reading.replay_ratio is None else reading.replay_ratio
    return KnownOperator(rate.observed(reading.completed or 0.0, reading.busy_s or 0.0), live, replay)


def _room(terms: Terms, plan: SharedPlan, name: str, known: KnownOperator, executors: int) -> OperatorRoom:
    """What an operator certainly serves, and the margin that the strictest of its paths asks for."""
    service = max(capacity(executors, known.rate.quantile(CERTAIN), plan.contention), LEAST_RPS)
    margins = [LEAST_MARGIN * service]
    for path in terms.paths:
        if name in path.ops and plan.trigger_s is None:
            margins.append(queue_margin_rps(service, path.quantile, path.share_s))
        elif name in path.ops and plan.trigger_s is not None:
            margins.append(batch_margin_rps(service, path.quantile, path.share_s, plan.overhead_s, plan.trigger_s))
    return OperatorRoom(service, known.live_ratio, known.replay_ratio, max(margins))


def _drift(terms: Terms, state: ControllerState, seen: Signals, at: int) -> float | None:
    """ms/s by which the watermark lag grew since it was read last."""
    if seen.lag_ms is None or state.lag_ms is None:
        return None
    return (seen.lag_ms - state.lag_ms) / ((at - state.lag_at) * terms.interval_s)


def _credits(terms: Terms, seen: Signals, rooms: Sequence[OperatorRoom], live_rps: float, step: int) -> Credits:
    """The capacity of the slowest operator by origin; the replay's part in source records/s."""
    shared = find_bottleneck(rooms, live_rps)
    slowest, floor = shared or min(rooms, key=lambda one: one.service_rps), terms.fairness.floor
    room, maintenance = max(slowest.service_rps - slowest.margin_rps, 0.0), seen.maintenance_rps or 0.0
    if step >= ReliefStep.MAINTENANCE:
        maintenance = min(maintenance, floor * room)
    asked = 0.0 if step >= ReliefStep.REPLAY else terms.controls.replay_rps.max
    if seen.replay_backlog is not None:
        asked = min(asked, seen.replay_backlog / terms.interval_s)
    demands = Credits(slowest.live_ratio * live_rps, maintenance, asked * slowest.replay_ratio)
    divided = divide_credits(room, demands, terms.priorities, floor)
    return replace(divided, replay=asked if shared is None else divided.replay / shared.replay_ratio)


def _theta(terms: Terms, before: float, step: int) -> float:
    box = terms.controls.theta
    return box.max if step >= ReliefStep.THETA else max(before - box.slew * (box.max - box.min), box.min)


def _reason(bound: Sequence[str], step: int) -> str:
    if step:
        return f"relief: {ReliefStep(step).name.lower()}"
    return f"replay bound by {', '.join(bound)}" if bound else "replay rises as fast as it may"
