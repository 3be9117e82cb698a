"""A simulated job as the lake would hold it: the rows that its agent would have sent, with their noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from models.policy.catalogue import build_steered
from models.policy.core.capacity import parallelism
from models.policy.core.policy import decide
from models.twin.advice.serve import POLICY, hear_last_value, looks_of
from models.twin.sim.given import Load
from models.twin.sim.job import Belief, stack
from models.twin.sim.run import advance, first_executors, observe, set_targets
from models.twin.sim.state import begin
from pipelines.bench.twin.faulty_jobs import FaultyJob

STEP_S = 0.25
"""Seconds between two looks at the simulated job; shorter than any of its batches."""
PHASES = {"planning_s": 0.25, "offsets_s": 0.08, "log_s": 0.3, "state_commit_s": 0.2}
"""Shares of a batch's overhead."""
BEGAN = 1_800_000_000.0
SPREAD_S = 10.0

Rows = list[dict[str, Any]]


def record_job(drawn: FaultyJob, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Run a drawn job under the default policy and return what its agent would have sent.

    Args:
        drawn: the job.
        seed: of delays, batches and measurements.

    Returns:
        Rows of `metrics` (intervals and batches, fields of `MetricSample`) and of `outcomes` (raises that came).
    """
    batches, raises, there = _run(drawn, seed)
    chance = np.random.default_rng([seed, 99])
    metrics = [*_intervals(drawn, there), *_batches(drawn, batches, chance)]
    columns = ["wall_time", "decision_id", "status", "executors_before", "target", "decided_at", "confirmed_at",
               "useful_at"]  # fmt: skip
    return pd.DataFrame(metrics), pd.DataFrame(_outcomes(raises, batches, there), columns=columns)


def _run(drawn: FaultyJob, seed: int) -> tuple[np.ndarray, Rows, np.ndarray]:
    """(B, 5) start, end, rows, executors and records done before; raises asked for; (T / STEP_S,) executors."""
    contract, arrived = drawn.contract, drawn.arrived
    looks, policy = looks_of(contract), build_steered(POLICY, contract)
    ahead = hear_last_value(arrived, contract)._replace(row=np.zeros(1, np.int64))
    jobs, load = stack([drawn.job], Belief.of(contract.planning)), Load(arrived[None], np.zeros(1, np.int64))
    state, memory = begin(jobs, first_executors(jobs, load, looks), np.array([seed])), policy.fresh(1)
    x, last = state.x[0], -1.0
    batches: list[list[float]] = []
    raises: Rows = []
    there: list[float] = []
    for number, now in enumerate(range(0, load.seconds, looks.every_s)):
        memory, choice = decide(policy, memory, observe(state, jobs, load, looks, now, ahead.at(number)))
        if choice.target[0] > x["target"]:
            raises.append({"at": float(now), "before": float(x["target"]), "target": float(choice.target[0])})
        set_targets(state, jobs, choice.target, now)
        steps, part = round(min(looks.every_s, load.seconds - now) / STEP_S), 0
        while part < steps:
            begins = now + part * STEP_S
            # In whole steps before its next event a job stays as it is.
            event = x["batch_end"] if x["batch_end"] < np.inf else max(x["next_start"], x["halt_until"])
            still = int(min(max((min(event, x["next_ready"]) - begins) // STEP_S, 1.0), steps - part))
            advance(state, jobs, load, begins, begins + still * STEP_S)
            if x["batch_end"] < np.inf:
                one = [x["batch_start"], x["batch_end"], x["rows"], x["executors"], x["done"]]
                batches[len(batches) - (x["batch_start"] == last) :] = [one]
                last = float(x["batch_start"])
            there += [float(x["executors"])] * still
            part += still
    return np.array(batches), raises, np.array(there)


def _intervals(drawn: FaultyJob, there: np.ndarray) -> Rows:
    rates, every = np.diff(drawn.arrived), round(1 / STEP_S)
    return [
        {
            "kind": "interval", "wall_time": BEGAN + second + 1, "time_scale": 1.0, "span_s": 1.0, "mode": "act",
            "arrival_rps": float(rate), "executors": there[(second + 1) * every - 1],
        }
        for second, rate in enumerate(rates)
    ]  # fmt: skip


def _batches(drawn: FaultyJob, batches: np.ndarray, chance: np.random.Generator) -> Rows:
    """What the agent sends of each batch; the shares of its tasks' time and its skew are measured with noise."""

    def noise(width: float) -> float:
        return float(np.exp(chance.normal(0, width)))

    found: Rows = []
    told_at, job = -np.inf, drawn.job
    for number, (start, end, rows, executors, done) in enumerate(batches):
        run_s = job.per_record_s * rows * noise(0.05)
        oldest = float(np.interp(done, drawn.arrived, np.arange(len(drawn.arrived))))
        slots = parallelism(max(int(executors), 1), job.cores, drawn.tasks)
        phases = {name: share * job.overhead_s * noise(0.2) for name, share in PHASES.items()}
        phases["state_commit_s"] *= slots
        spill_s = drawn.spill_share * run_s * noise(0.2)
        row = {
            "kind": "batch", "wall_time": BEGAN + end, "time_scale": 1.0, "span_s": end - start, "mode": "act",
            "batch_id": number, "batch_rows": rows, "batch_s": end - start, "executors": executors,
            "task_ceiling": drawn.tasks, "latency_max_s": end - oldest, **phases, "run_s": run_s,
            "gc_s": drawn.gc_share * run_s * noise(0.2), "sink_wait_s": drawn.wait_share * run_s * noise(0.2),
            "spilled_bytes": round(spill_s / 2 * drawn.disk_bps),
        }  # fmt: skip
        if end - told_at >= SPREAD_S:
            told_at, skew = end, max(drawn.skew * noise(0.15), 1.0)
            median_s = run_s / (drawn.tasks - 1 + skew)
            row |= {"task_median_s": median_s, "task_max_s": skew * median_s}
        found.append(row)
    return found


def _outcomes(raises: Rows, batches: np.ndarray, there: np.ndarray) -> Rows:
    found: Rows = []
    for number, asked in enumerate(raises):
        first = int(asked["at"] / STEP_S)
        came = np.flatnonzero(there[first:] >= asked["target"])
        if len(came):
            at = asked["at"] + (came[0] + 1) * STEP_S
            used = batches[batches[:, 0] >= at - STEP_S, 1]
            useful = BEGAN + used[0] if len(used) else np.nan
            found.append({
                "wall_time": BEGAN + at, "decision_id": str(number), "status": "confirmed",
                "executors_before": asked["before"], "target": asked["target"], "decided_at": BEGAN + asked["at"],
                "confirmed_at": BEGAN + at, "useful_at": useful,
            })  # fmt: skip
    return found
