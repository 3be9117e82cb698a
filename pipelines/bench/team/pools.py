"""`tidecast bench team --parts pools`: what late seconds cost on a pool divided by worth, and by other rules."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from configs.pool import ClusterPool, PoolJob
from models.pool.divide import grant
from models.pool.wants import PoolMemory, Want
from models.twin.pool.mix import OURS, RULES, MixResult, run_rules
from pipelines.bench.team.mixes import draw_mix

JUDGED = range(100, 120)
"""Seeds of the mixes that are judged; the rule was developed on those of 0 to 7."""
MANY, REPEATED = 500, 50
"""Jobs of the pool whose division is timed, and divisions."""


def measure_pools(report: Callable[[str], None] = lambda text: None) -> dict[str, Any]:
    """Simulate twenty mixes for a day each under every rule, and time the division of a pool of 500 jobs.

    Args:
        report: called with a line per rule.

    Returns:
        `cost_to` by rule: median over the mixes of our cost of late seconds over its, with the share of mixes in which
        ours is lower, and the same ratio of late seconds unweighted; `most_changes` of a job's target within any
        minute; `mixes`, each with its cores, weights, and by rule cost, late seconds and executor-hours; and
        `step_ms`, median, and `step_p99_ms`, of a division.
    """
    mixes = [draw_mix(seed) for seed in JUDGED]
    found = run_rules(mixes, report)
    each = [
        {"seed": seed, "cores": mix.cores, "weights": mix.weights.tolist(), "peaks": mix.peaks.tolist(),
         "series": [one.name for one in mix.scenarios], "rules": {name: _told(found[name][at]) for name in RULES}}
        for at, (seed, mix) in enumerate(zip(JUDGED, mixes, strict=True))
    ]  # fmt: skip
    others = [name for name in RULES if name != OURS]
    return {
        "cost_to": {_key(name): _beside(each, name) for name in others},
        "most_changes": max(float(one.most_changes.max()) for one in found[OURS]),
        "n": len(each), "mixes": each, **time_division(),
    }  # fmt: skip


def time_division() -> dict[str, float]:
    """Time the division of a pool of 500 jobs that all ask for more than there is; milliseconds of the clock."""
    rng = np.random.default_rng(0)
    names = [f"job{at}" for at in range(MANY)]
    pool = ClusterPool(
        name="many", cores=3 * MANY, jobs={name: PoolJob(weight=1 + at % 4) for at, name in enumerate(names)}
    )
    memory, took = PoolMemory(), []
    for turn in range(REPEATED):
        wants = {name: _want(name, rng, 15.0 * turn) for name in names}
        began = time.perf_counter()
        memory, _ = grant(pool, memory, wants, 15.0 * turn)
        took.append(1000 * (time.perf_counter() - began))
    return {"step_ms": float(np.median(took)), "step_p99_ms": float(np.quantile(took, 0.99)), "step_jobs": MANY}


def _want(name: str, rng: np.random.Generator, now: float) -> Want:
    late = np.cumsum(rng.exponential(20.0, 13)[::-1])[::-1]
    wanted, running = rng.integers(2, 13), rng.integers(1, 6)
    ahead = tuple((now + 60.0 * step, int(rng.integers(2, 13))) for step in range(1, 13))
    return Want(name, now, int(wanted), int(running), 1, 1, tuple(late.tolist()), float(rng.uniform()), ahead)


def _told(one: MixResult) -> dict[str, Any]:
    return {
        "cost": one.cost, "late_s": one.late_s.tolist(), "hours": float(one.hours.sum()),
        "most_changes": float(one.most_changes.max()),
    }  # fmt: skip


def _beside(each: Sequence[dict[str, Any]], other: str) -> dict[str, float]:
    """Medians of ours over another rule's; a mix in which nobody is late is equal."""
    pairs = [(one["rules"][OURS], one["rules"][other]) for one in each]
    costs = [(ours["cost"] + 1) / (theirs["cost"] + 1) for ours, theirs in pairs]
    plain = [(sum(ours["late_s"]) + 1) / (sum(theirs["late_s"]) + 1) for ours, theirs in pairs]
    hours = [ours["hours"] / theirs["hours"] for ours, theirs in pairs]
    return {
        "cost": float(np.median(costs)), "lower": float(np.mean(np.array(costs) < 1)),
        "worst": float(max(costs)), "unweighted": float(np.median(plain)), "hours": float(np.median(hours)),
    }  # fmt: skip


def _key(rule: str) -> str:
    return rule.replace(", ", "_").replace(" ", "_")
