"""How far a job is from its limits, as measured and as predicted for another rate of the replay.

The prediction is the first of the two in the unified batch-stream runtime paper: queues in closed form, the latency of
a path the sum of its operators' quantiles (conservative). Constraints are named alike in both, so that each price ν
meets the slope of what it is paid for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from models.contract import queueing
from models.contract.objective import objective, over_drift, over_upper
from models.contract.signals import SharedPlan, Signals
from models.contract.terms import LIVE, REPLAY, PathLimit, Terms

MEMORY, LAG, DRIFT, ENERGY = "memory", "lag", "lag_drift", "energy"
STANDING_MS = 1000.0
"""ms of lag per second that a watermark gains when it stands still; drifts are counted in units of that."""


class OperatorLoad(NamedTuple):
    """An operator as the prediction sees it: rate it serves, records/s; ratios and costs as in `PlannedOperator`."""

    service_rps: float
    live_ratio: float
    replay_ratio: float
    core_s: float
    held_bytes: float


class Situation(NamedTuple):
    """What a prediction starts from: the newest signals, and the rates under which they were measured, records/s."""

    terms: Terms
    plan: SharedPlan
    operators: Mapping[str, OperatorLoad]
    signals: Signals
    live_rps: float
    replay_rps: float


def measured_constraints(terms: Terms, signals: Signals, drift: float | None) -> dict[str, float]:
    """Return g of every limit whose signal was read; above 0 where it is not kept with some head.

    Args:
        terms: the limits.
        signals: cleaned.
        drift: ms/s by which the watermark lag grew; None: unknown.
    """
    limits = terms.util_max
    kept = {"cpu": limits.cpu, "mem": limits.mem, "net": limits.net, "disk": limits.disk}
    found = {name: over_upper(signals.busy[name], limit) for name, limit in kept.items() if name in signals.busy}
    for path in terms.paths:
        if path.name in signals.latency_ms:
            found[path.name] = over_upper(signals.latency_ms[path.name], path.max_ms)
    if terms.memory and signals.state_bytes is not None:
        found[MEMORY] = over_upper(signals.state_bytes + (signals.queue_bytes or 0.0), terms.memory.max_bytes)
    if terms.lag and signals.lag_ms is not None:
        found[LAG] = over_upper(signals.lag_ms, terms.lag.max_ms)
    if terms.lag and drift is not None:
        found[DRIFT] = over_drift(drift, terms.lag.drift_max, STANDING_MS)
    if terms.energy and signals.energy_cores is not None:
        found[ENERGY] = over_upper(signals.energy_cores, terms.energy.max_cores)
    return found


def worst_ratio(terms: Terms, signals: Signals) -> float | None:
    """Return the largest ratio of a signal to its hard limit: latency of live paths, memory, lag; None: all unread."""
    found = [
        signals.latency_ms[path.name] / path.max_ms
        for path in terms.paths
        if path.kind == LIVE and path.name in signals.latency_ms
    ]
    if terms.memory and signals.state_bytes is not None:
        found.append((signals.state_bytes + (signals.queue_bytes or 0.0)) / terms.memory.max_bytes)
    if terms.lag and signals.lag_ms is not None:
        found.append(signals.lag_ms / terms.lag.max_ms)
    return max(found, default=None)


def predict(situation: Situation, replay_rps: float) -> tuple[float, dict[str, float]]:
    """Predict the objective (eq. 3.1) and the constraints g for a rate of the replay, live records as they are.

    What is measured and depends on the replay is moved by the model's change: lag by that of the live latency, busy
    cores by the ratio of the core-seconds (of the records, where no operator's are known), busy network by that of the
    records. Constraints that do not depend on it are left out.

    Returns:
        J, and g by name.
    """
    terms, signals = situation.terms, situation.signals
    rates, before = _rates(situation, replay_rps), _rates(situation, situation.replay_rps)
    latency = {path.name: _latency_ms(situation, path, rates) for path in terms.paths}
    found = {path.name: over_upper(latency[path.name], path.max_ms) for path in terms.paths}
    slowest = max(latency[path.name] for path in terms.paths if path.kind == LIVE)
    cores = math.fsum(situation.operators[name].core_s * rate for name, rate in rates.items())
    if terms.memory and signals.state_bytes is not None:
        held = [one.held_bytes * _held(situation, rates[name], one) for name, one in situation.operators.items()]
        found[MEMORY] = over_upper(signals.state_bytes + math.fsum(held), terms.memory.max_bytes)
    if terms.lag and signals.lag_ms is not None:
        was = max(_latency_ms(situation, path, before) for path in terms.paths if path.kind == LIVE)
        found[LAG] = over_upper(signals.lag_ms + slowest - was, terms.lag.max_ms)
    if terms.lag:
        load = max(rates[name] / one.service_rps for name, one in situation.operators.items())
        found[DRIFT] = over_drift((load - 1) * STANDING_MS, terms.lag.drift_max, STANDING_MS)
    if terms.energy:
        found[ENERGY] = over_upper(cores, terms.energy.max_cores)
    records = math.fsum(rates.values()), math.fsum(before.values())
    worked = cores, math.fsum(situation.operators[name].core_s * rate for name, rate in before.items())
    limits = {"cpu": (terms.util_max.cpu, worked if worked[1] > 0 else records), "net": (terms.util_max.net, records)}
    for name, (limit, (now, was)) in limits.items():
        if name in signals.busy and was > 0:
            found[name] = over_upper(signals.busy[name] * now / was, limit)
    good = situation.live_rps * _within(situation, rates, LIVE) + replay_rps * _within(situation, rates, REPLAY)
    return objective(terms, slowest, cores, signals.error_rel or 0.0, good), found


def _rates(situation: Situation, replay_rps: float) -> dict[str, float]:
    return {
        name: one.live_ratio * situation.live_rps + one.replay_ratio * replay_rps
        for name, one in situation.operators.items()
    }


def _batch(plan: SharedPlan, rate: float, service: float, trigger_s: float) -> queueing.MicroBatchModel:
    return queueing.micro_batch(rate, service, plan.overhead_s, trigger_s)


def _latency_ms(situation: Situation, path: PathLimit, rates: Mapping[str, float]) -> float:
    plan, total = situation.plan, 0.0
    for name in path.ops:
        rate, service = rates[name], situation.operators[name].service_rps
        if plan.trigger_s is None:
            total += queueing.sojourn_quantile_s(rate, service, path.quantile)
        else:
            total += _batch(plan, rate, service, plan.trigger_s).quantile_s(path.quantile)
    return 1000 * total


def _held(situation: Situation, rate: float, one: OperatorLoad) -> float:
    """Records in an operator; in micro-batches by Little's law."""
    trigger_s = situation.plan.trigger_s
    if trigger_s is None:
        return queueing.number_in_system(rate / one.service_rps)
    return rate * _batch(situation.plan, rate, one.service_rps, trigger_s).mean_s


def _within(situation: Situation, rates: Mapping[str, float], kind: str) -> float:
    """Least share of records within a limit, over the live paths, or the replay's; 1 where there is no limit."""
    plan, shares = situation.plan, [1.0]
    for path in situation.terms.paths:
        if path.kind != kind:
            continue
        share = 1.0
        for name in path.ops:  # each within its part of the limit: less likely than all together
            rate, service = rates[name], situation.operators[name].service_rps
            if plan.trigger_s is None:
                share *= queueing.share_within(rate, service, path.share_s)
            else:
                share *= _batch(plan, rate, service, plan.trigger_s).share_within(path.share_s)
        shares.append(share)
    return min(shares)
