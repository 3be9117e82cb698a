"""How long one decision of the contract's controller takes, for plans of one to ten operators."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from models.contract.controller import close_interval
from models.contract.signals import OperatorReading, PlannedOperator, SharedPlan, Signals
from models.contract.state import begin
from models.contract.terms import compile_terms

OPERATORS = (1, 3, 10)
WARM = 50
"""Decisions before the clock counts: imports and caches."""


def measure_decisions(decisions: int = 2000) -> dict[str, Any]:
    """Time decisions with every kind of limit and signal, the load a wave; milliseconds of the clock.

    Args:
        decisions: per plan.

    Returns:
        By plan, and of the largest under "largest": operators, decisions, p50_ms, p99_ms, most_ms; and a decision's
        share of a core at one every ten seconds.
    """
    rows = [_measure(count, decisions) for count in OPERATORS]
    return {"plans": rows, "largest": rows[-1], "core": rows[-1]["p50_ms"] / 1000 / 10}


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
    p50, p99 = np.quantile(took[WARM:], [0.5, 0.99]).tolist()
    return {"operators": count, "decisions": decisions, "p50_ms": p50, "p99_ms": p99, "most_ms": max(took[WARM:])}
