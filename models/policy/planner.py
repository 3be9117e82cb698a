"""The planner: from one observation, with or without a forecast, to a number of executors and the reason.

Flink's operator formula (`LAG / CATCH_UP + RATE / TARGET_UTIL`, AutoScalerUtils) without its restart term, because
nothing restarts. A forecast may raise the number; only observed load lowers it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from configs.contract import Contract, Planning
from models.policy.capacity import BatchModel, capacity_rps, ceiling, parallelism

LAG_ALLOWANCE_BATCHES = 1.5
"""Lag includes the batch in flight: up to this many target batches of arrivals are no backlog."""


@dataclass(frozen=True)
class Observation:
    """All that a decision follows from; it is logged whole, so that the log replays to the same decisions.

    Attributes:
        arrival_rps: producers' rate, smoothed over the last seconds.
        lag_records: records produced and not yet committed.
        executors: running now, without those asked to leave.
        target: executors last asked for.
        tasks: tasks of the heavy stage, the ceiling of useful slots.
        overhead_s, per_record_s: the batch model learned so far.
        since_change_s: wall seconds since the target last changed.
        recent_need: most executors wanted within the scale-down delay.
        forecast_rps: upper quantile of the arrival rate over lead + hold, None without a usable forecast.
        forecast_note: which forecast it is, or why there is none.
    """

    arrival_rps: float
    lag_records: int
    executors: int
    target: int
    tasks: int
    overhead_s: float
    per_record_s: float
    since_change_s: float
    recent_need: int
    forecast_rps: float | None
    forecast_note: str


@dataclass(frozen=True)
class Plan:
    """Executors to run, why, and what the plan counts on."""

    executors: int
    reason: str
    codes: list[str]
    needed_observed: int
    needed_forecast: int | None
    capacity_rps: float
    current_capacity_rps: float
    utilisation: float


def needed_rps(rate_rps: float, backlog: float, planning: Planning) -> float:
    """Capacity to carry a rate at the target utilisation and work a backlog off in the catch-up time."""
    return rate_rps / planning.target_utilisation + backlog / planning.catch_up_s


def executors_for(rps: float, seen: Observation, contract: Contract) -> tuple[int, bool]:
    """Fewest executors that carry `rps`, within bounds and ceiling; True if a limit cut it short."""
    top = min(contract.executors.max, max(contract.executors.min, ceiling(contract.executors.cores, seen.tasks)))
    for n in range(contract.executors.min, top + 1):
        if capacity_of(n, seen, contract) >= rps:
            return n, False
    return top, True


def capacity_of(executors: int, seen: Observation, contract: Contract) -> float:
    """Records/s that a number of executors sustains, by the model in the observation."""
    model = BatchModel.guess(seen.overhead_s, seen.per_record_s)
    slots = parallelism(executors, contract.executors.cores, seen.tasks)
    return capacity_rps(model, slots, contract.planning.batch_s)


def plan(seen: Observation, contract: Contract, policy: str) -> Plan:
    """Decide. `policy` is forecast, reactive (the same planner without a forecast) or static."""
    planning = contract.planning
    if not (math.isfinite(seen.arrival_rps) and seen.arrival_rps >= 0):
        return _plan(
            seen.target, f"hold: arrival rate {seen.arrival_rps} is not a rate", ["hold"], seen, contract, 0, None
        )
    backlog = max(0.0, seen.lag_records - LAG_ALLOWANCE_BATCHES * planning.batch_s * seen.arrival_rps)
    observed, cut = executors_for(needed_rps(seen.arrival_rps, backlog, planning), seen, contract)
    forecast = None
    if policy == "forecast" and seen.forecast_rps is not None and math.isfinite(seen.forecast_rps):
        forecast, cut_too = executors_for(needed_rps(seen.forecast_rps, backlog, planning), seen, contract)
        cut = cut or cut_too
    if policy == "static":
        wanted = min(max(planning.static_executors, contract.executors.min), contract.executors.max)
        codes = ["hold"] if wanted == seen.target else ["up" if wanted > seen.target else "down"]
        return _plan(wanted, f"static: {wanted} executors", codes, seen, contract, observed, None)
    wanted = max(observed, forecast or 0)
    marks = _marks(policy, forecast, backlog, cut, seen)
    if wanted > seen.target:
        return _raise(wanted, observed, forecast, marks, seen, contract)
    if wanted < seen.target:
        return _lower(wanted, observed, forecast, backlog, marks, seen, contract)
    reason = f"hold: {_need(observed, forecast, seen)}, {seen.target} asked for"
    return _plan(seen.target, reason, ["hold", *marks], seen, contract, observed, forecast)


def _marks(policy: str, forecast: int | None, backlog: float, cut: bool, seen: Observation) -> list[str]:
    marks = ["backlog"] if backlog > 0 else []
    if cut:
        marks.append("ceiling")
    if policy == "forecast" and forecast is None:
        marks.append("late_forecast" if seen.forecast_note.startswith("late") else "no_forecast")
    return marks


def _need(observed: int, forecast: int | None, seen: Observation) -> str:
    text = f"{seen.arrival_rps:.0f} rec/s, lag {seen.lag_records} need {observed}"
    if forecast is not None:
        return f"{text}; {seen.forecast_rps:.0f} rec/s ahead ({seen.forecast_note}) need {forecast}"
    return f"{text}; {seen.forecast_note}" if seen.forecast_note else text


def _raise(
    wanted: int, observed: int, forecast: int | None, marks: list[str], seen: Observation, contract: Contract
) -> Plan:
    cause = "forecast" if observed <= seen.target else "observed"
    need = _need(observed, forecast, seen)
    if seen.since_change_s < contract.planning.cooldown_s:
        reason = (
            f"hold: {need}; last change {seen.since_change_s:.1f} s ago, cool-down {contract.planning.cooldown_s:g} s"
        )
        return _plan(seen.target, reason, ["hold", "cooldown", *marks], seen, contract, observed, forecast)
    target = min(wanted, seen.target + contract.planning.max_step_up)
    limit = f"; ceiling {target}" if "ceiling" in marks else ""
    return _plan(
        target, f"up {seen.target} → {target}: {need}{limit}", ["up", cause, *marks], seen, contract, observed, forecast
    )


def _lower(
    wanted: int,
    observed: int,
    forecast: int | None,
    backlog: float,
    marks: list[str],
    seen: Observation,
    contract: Contract,
) -> Plan:
    need = _need(observed, forecast, seen)
    if backlog > 0:
        reason = f"hold: {need}; catching up, nothing is taken away"
        return _plan(seen.target, reason, ["hold", "catch_up", *marks], seen, contract, observed, forecast)
    allowed = max(wanted, seen.recent_need)
    too_soon = seen.since_change_s < contract.planning.cooldown_s
    if allowed >= seen.target or too_soon:
        reason = f"hold: {need}; up to {seen.recent_need} in the last {contract.planning.scale_down_delay_s:g} s"
        return _plan(seen.target, reason, ["hold", "delayed_down", *marks], seen, contract, observed, forecast)
    target = seen.target - 1  # one at a time: what leaves can be missed only once
    return _plan(
        target,
        f"down {seen.target} → {target}: {need}",
        ["down", "observed", *marks],
        seen,
        contract,
        observed,
        forecast,
    )


def _plan(
    target: int,
    reason: str,
    codes: list[str],
    seen: Observation,
    contract: Contract,
    observed: int,
    forecast: int | None,
) -> Plan:
    capacity = capacity_of(target, seen, contract)
    return Plan(
        target, reason, codes, observed, forecast, capacity, capacity_of(seen.executors, seen, contract),
        seen.arrival_rps / capacity if capacity > 0 else math.inf,
    )  # fmt: skip
