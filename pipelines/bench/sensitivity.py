"""The contract's controller around two queues, told wrong numbers of them: what becomes of live records and a replay.

The sensitivity analysis of the unified batch-stream runtime paper's workload section: the service rate told times a
factor, selectivities likewise, and a model that is frozen before the workload shifts. Nothing learns in the loop: a
model that is not frozen is told of the shift at once. Queues are M/M/1 in equilibrium, with a backlog where more comes
than they serve.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from models.contract.controller import close_interval
from models.contract.queueing import sojourn_quantile_s
from models.contract.signals import OperatorReading, PlannedOperator, SharedPlan, Signals
from models.contract.state import begin
from models.contract.terms import Terms, compile_terms
from models.workload.rates import RateShape, Spike, draw_counts, expected_rates

SERVED: Final = {"map": 1000.0, "join": 450.0}
"""Records/s that each operator truly serves."""
RATIO: Final = {"map": 1.0, "join": 0.5}
"""Records of the source that truly reach it."""
TARGET_S, LEVEL, INTERVAL_S, HOURS = 0.1, 0.99, 10, 2.0
WORK = 6.0e5
"""Records to replay."""
FORECAST = 1.15
"""The 90 % quantile of the next interval's load over its mean, as the model in the loop says it."""
FACTORS, SEEDS = (0.7, 0.85, 1.15, 1.3), range(3)
"""What is told ÷ what is true, of service rates or selectivities; seeds of the load."""
SHIFT_AT, BUSIER, SLOWER = 0.25, 1.25, 0.85
"""Share of the time after which the workload shifts; by what more comes from there on, and what is served less."""


class WrongNumbers(NamedTuple):
    """What is told ÷ what is true: service rates, selectivities; and whether the shift is never told."""

    rate: float = 1.0
    selectivity: float = 1.0
    frozen: bool = False


@dataclass(frozen=True)
class LoopOutcome:
    """What became of a loop.

    Attributes:
        late: share of the seconds whose p99 of live latency is over the target.
        finish_s: when the replay was done; None: not while it was followed.
        replayed: records until then, or until the end.
    """

    late: float
    finish_s: float | None
    replayed: float


def measure_sensitivity() -> dict[str, Any]:
    """Run the loop with each wrong number, over all SEEDS.

    Returns:
        `true` (told the truth), `rate` and `selectivity` by factor, and where the workload shifts `learned` (told of it
        at once) and `frozen`: of each `late`, mean share of the late seconds, `finish_s` (mean; None: one did not end)
        and `finish`, that ÷ the time when told the truth; `replayed`, mean share of the work that was done.
        `worst_late`, of all factors from 0.85 to 1.15.
    """
    true = _mean_of(WrongNumbers())
    rate = {f"{one:g}": _beside(_mean_of(WrongNumbers(rate=one)), true) for one in FACTORS}
    selectivity = {f"{one:g}": _beside(_mean_of(WrongNumbers(selectivity=one)), true) for one in FACTORS}
    learned = _mean_of(WrongNumbers(), shifted=True)
    frozen = _beside(_mean_of(WrongNumbers(frozen=True), shifted=True), learned)
    near = [each[name] for each in (rate, selectivity) for name in ("0.85", "1.15")]
    return {
        "true": true, "rate": rate, "selectivity": selectivity, "learned": learned, "frozen": frozen, "n": len(SEEDS),
        "worst_late": max(one["late"] for one in near),
    }  # fmt: skip


def _mean_of(belief: WrongNumbers, shifted: bool = False) -> dict[str, Any]:
    found = [run_loop(belief, seed, shifted) for seed in SEEDS]
    ends = [one.finish_s for one in found if one.finish_s is not None]
    return {
        "late": float(np.mean([one.late for one in found])),
        "finish_s": float(np.mean(ends)) if len(ends) == len(found) else None,
        "replayed": float(np.mean([one.replayed for one in found])) / WORK,
    }  # fmt: skip


def _beside(told: dict[str, Any], true: dict[str, Any]) -> dict[str, Any]:
    known = told["finish_s"] is not None and true["finish_s"] is not None
    return {**told, "finish": told["finish_s"] / true["finish_s"] if known else None}


def loop_terms() -> Terms:
    """Return the contract of the loop: what a job's own contract comes to, with two operators on the path."""
    path = {"ops": tuple(SERVED), "quantile": LEVEL, "max_ms": 1000 * TARGET_S}
    most = min(SERVED[name] / RATIO[name] for name in SERVED)
    return compile_terms({
        "name": "believed", "paths": [path], "interval_s": INTERVAL_S,
        "controls": {"replay_rps": {"min": 0, "max": most}},
        "scales": {"latency_ms": 1000 * TARGET_S, "energy_cores": 4, "error_rel": 0.01, "goodput_rps": most},
    })  # fmt: skip


def load_shape() -> RateShape:
    """Return the live load: a season of an hour, noise, and three spikes."""
    spikes = tuple(Spike(3600 * at, 0.5, 60.0) for at in (0.3, 0.9, 1.5))
    return RateShape(300.0, 0.4, 3600.0, spikes=spikes, noise=0.05, noise_s=120.0)


def run_loop(belief: WrongNumbers, seed: int, shifted: bool = False, hours: float = HOURS) -> LoopOutcome:
    """Run the controller around the queues.

    Args:
        belief: what it is told.
        seed: of the load.
        shifted: whether the workload shifts.
        hours: how long.
    """
    terms, shape, intervals = loop_terms(), load_shape(), round(3600 * hours / INTERVAL_S)
    starts, shift = INTERVAL_S * np.arange(intervals, dtype=float), round(SHIFT_AT * intervals)
    factor = np.where(np.arange(intervals) >= shift, BUSIER, 1.0) if shifted else np.ones(intervals)
    noise, counts = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(2))
    live = draw_counts(shape, starts, INTERVAL_S, noise, counts) / INTERVAL_S * factor
    foreseen = FORECAST * expected_rates(shape, starts + 1.5 * INTERVAL_S) * (1.0 if belief.frozen else factor)
    plan = SharedPlan(tuple(PlannedOperator(name, SERVED[name], RATIO[name], RATIO[name]) for name in SERVED))
    state, waits, left, late, finish = begin(terms, plan, 0.0), dict.fromkeys(SERVED, 0.0), WORK, 0, None
    for n in range(intervals):
        slower = SLOWER if shifted and n >= shift else 1.0
        rate = min(state.controls.replay_rps, left / INTERVAL_S)
        latency_s, readings = 0.0, {}
        for name, served in SERVED.items():
            truly, comes = served * slower, RATIO[name] * (live[n] + rate)
            waits[name] = max(waits[name] + (comes - truly) * INTERVAL_S, 0.0)
            latency_s += sojourn_quantile_s(comes, truly, LEVEL) + waits[name] / truly
            told, ratio = belief.rate * (served if belief.frozen else truly), belief.selectivity * RATIO[name]
            readings[name] = OperatorReading(live_ratio=ratio, replay_ratio=ratio, certain_rps=told)
        left = max(left - rate * INTERVAL_S, 0.0)
        late += latency_s > TARGET_S
        if left == 0 and finish is None:
            finish = (n + 1) * float(INTERVAL_S)
        state = close_interval(terms, plan, state, Signals(
            (n + 1.0) * INTERVAL_S, live_rps=float(live[n]), live_high_rps=float(foreseen[n]), replay_backlog=left,
            latency_ms={terms.paths[0].name: 1000 * latency_s}, operators=readings, executors=1,
        )).state  # fmt: skip
    return LoopOutcome(float(late) / intervals, finish, WORK - left)
