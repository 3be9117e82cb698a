"""How long the contract's controller takes to close an interval, and a running job's evaluation beside a replay."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from configs.contract import Contract, Executors, Planning
from models.contract.controller import close_interval
from models.contract.signals import OperatorReading, PlannedOperator, SharedPlan, Signals
from models.contract.state import begin
from models.contract.terms import compile_terms
from models.policy.core.batch_time import BatchTime
from models.policy.received.observation import Observation
from models.policy.received.outlook import Outlook
from models.policy.replays.control import decide_rate
from models.policy.replays.kept import ReplayControl, with_latency, with_progress

OPERATORS = (1, 3, 10)
WARM = 50
"""Decisions before the clock counts: imports and caches."""
BATCH_EVERY = 4
"""Evaluations, a second each, from batch to batch of the live query."""
CONTRACT = Contract(
    job="bench", latency_target_s=10.0, executors=Executors(min=1, max=6), error_budget=0.05,
    planning=Planning(overhead_s=0.5, per_record_s=0.01),
)  # fmt: skip


def measure_decisions(decisions: int = 2000) -> dict[str, Any]:
    """Time `close_interval` with every kind of limit and signal, and `decide_rate`, the load a wave; ms of the clock.

    Args:
        decisions: per plan, and of `decide_rate`.

    Returns:
        By plan, and of the largest under "largest": operators, decisions, p50_ms, p99_ms, most_ms; "core", its share
        of a core at one every ten seconds; and "evaluation", the same of `decide_rate` for a job with one replay, with
        its "core" at one a second.
    """
    rows = [_measure(count, decisions) for count in OPERATORS]
    return {
        "plans": rows, "largest": rows[-1], "core": rows[-1]["p50_ms"] / 1000 / 10,
        "evaluation": _measure_evaluations(decisions),
    }  # fmt: skip


def _measure(count: int, decisions: int) -> dict[str, Any]:
    names = [f"o{at}" for at in range(count)]
    terms = compile_terms({
        "name": "bench", "scales": {"latency_ms": 1000, "energy_cores": 8, "error_rel": 0.02, "goodput_rps": 1000},
        "paths": [{"ops": names, "quantile": 0.99, "max_ms": 2000}, {"ops": names[:1], "quantile": 0.5, "max_ms": 900}],
        "controls": {"replay_rps": {"min": 0, "max": 1000}, "live_rps": {"min": 100, "max": 2000}},
        "memory": {"max_bytes": 1e9}, "lag": {"max_ms": 5000}, "energy": {"max_cores": 6},
        "error": {"o0": {"eps_rel": 0.05, "pf": 0.01}},
    })  # fmt: skip
    plan = SharedPlan(tuple(PlannedOperator(name, 1500.0) for name in names))
    state, took = begin(terms, plan, 0.0), []
    for n in range(1, decisions + WARM + 1):
        live = 600 * (1 + 0.5 * math.sin(n / 20))
        total = live + state.controls.replay_rps
        seen = Signals(
            time_s=10.0 * n, live_rps=live, live_high_rps=1.1 * live, replay_backlog=1e7, lag_ms=500.0, executors=2,
            latency_ms={path.name: total for path in terms.paths}, state_bytes=1e8, queue_bytes=1e6,
            operators={name: OperatorReading(10 * total, total / 150) for name in names}, energy_cores=3.0,
            busy={"cpu": 0.6, "mem": 0.5, "net": 0.2, "disk": 0.1}, tenants={"a": live / 3, "b": live / 2},
            error_rel=0.02,
        )  # fmt: skip
        began = time.perf_counter()
        state = close_interval(terms, plan, state, seen).state
        took.append(1000 * (time.perf_counter() - began))
    return {"operators": count, **_summarise(took)}


def _measure_evaluations(decisions: int) -> dict[str, Any]:
    """A job that is evaluated each second, with a replay, its forecast, and an estimate that moves: all that counts."""
    control, took = ReplayControl(), []
    guess = BatchTime.guess(CONTRACT.planning.overhead_s, CONTRACT.planning.per_record_s)
    for n in range(1, decisions + WARM + 1):
        live, learned = 60 * (1 + 0.5 * math.sin(n / 300)), 1 + 0.2 * math.sin(n / 200)
        known = replace(guess, per_record_s=learned * guess.per_record_s)
        control = with_progress(control, {
            "id": "again", "state": "running", "records": 10**9, "done": 100 * n, "wall_time": float(n), "rows": 500,
            "work_s": 4.0, "admitted_rps": 100.0, "executors": 2, "executors_soon": 2, "reading_since": 0.0,
        })  # fmt: skip
        if n % BATCH_EVERY == 0:
            control = with_latency(control, {"latency_p50_s": 3.0, "latency_p95_s": 5.0, "latency_max_s": 6.0})
        seen = Observation(
            now_s=float(n), since_s=1.0, job_s=float(n), scale=1.0, arrival_rps=live, lag_records=int(4 * live),
            processed_rps=live, busy=0.4, in_batch=2.0, batch_s=3.0, executors=4, target=4, tasks=8,
            overhead_s=known.overhead_s, per_record_s=known.per_record_s, since_change_s=float(n), lead_s=15.0,
            ahead=Outlook((15.0, 30.0, 45.0, 60.0), (0.5, 0.9), tuple((live, 1.2 * live) for _ in range(4))),
        )  # fmt: skip
        began = time.perf_counter()
        control, _ = decide_rate(control, seen, CONTRACT, known, 0.05, executors=4, live=2, standing=4)
        took.append(1000 * (time.perf_counter() - began))
    return {**_summarise(took), "core": float(np.mean(took[WARM:])) / 1000}


def _summarise(took: Sequence[float]) -> dict[str, Any]:
    counted = took[WARM:]
    p50, p99 = np.quantile(counted, [0.5, 0.99]).tolist()
    return {"decisions": len(counted), "p50_ms": p50, "p99_ms": p99, "most_ms": max(counted)}
