"""A job that live records and a replay share: contracts and plans for it, and an M/M/1 queue in a closed loop."""

from models.contract.controller import close_interval
from models.contract.queueing import sojourn_quantile_s
from models.contract.signals import OperatorReading, PlannedOperator, SharedPlan, Signals
from models.contract.state import begin
from models.contract.terms import compile_terms

PATH = "live map 0.99"
EAGER = {"alpha": 0, "beta": 0, "gamma": 0}
"""Weights under which nothing but its limits slows the replay."""


def declared(**changes):
    """The least contract that is one: p99 of one operator within 20 ms, a replay of up to 1000 records/s."""
    return {
        "name": "clicks",
        "scales": {"latency_ms": 20, "energy_cores": 8, "error_rel": 0.02, "goodput_rps": 1000},
        "paths": [{"ops": ["map"], "quantile": 0.99, "max_ms": 20}],
        "controls": {"replay_rps": {"min": 0, "max": 1000}},
        **changes,
    }


def shared_terms(**changes):
    return compile_terms(declared(**changes))


def shared_plan(*names, prior_rps=800.0, **changes):
    return SharedPlan(tuple(PlannedOperator(name, prior_rps) for name in names or ("map",)), **changes)


def queue_signals(n, live_rps, replay_rps, service_rps=1000.0, interval_s=10, **changes):
    """What an M/M/1 queue shows at the end of interval n, its p99 as in equilibrium."""
    total = live_rps + replay_rps
    done = min(total, service_rps) * interval_s
    shown = {
        "time_s": 1e9 + n * interval_s, "live_rps": live_rps, "replay_backlog": 1e9, "executors": 1,
        "latency_ms": {PATH: 1000 * sojourn_quantile_s(total, service_rps, 0.99)},
        "operators": {"map": OperatorReading(done, done / service_rps)},
    }  # fmt: skip
    return Signals(**{**shown, **changes})


def run_queue(terms, loads, service_rps=1000.0, state=None, change=lambda n: {}):
    """The closed intervals of a controller around a queue, live rates as given; live records are held back as told."""
    plan, closed = shared_plan(), []
    state = state or begin(terms, plan, 1e9)
    for n, live in enumerate(loads, start=state.interval + 1):
        cap = state.controls.live_rps
        admitted = live if cap is None else min(live, cap)
        seen = queue_signals(n, admitted, state.controls.replay_rps, service_rps, terms.interval_s, **change(n))
        closed.append(close_interval(terms, plan, state, seen))
        state = closed[-1].state
    return closed
