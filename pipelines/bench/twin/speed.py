"""How fast the twin is with a policy in it: simulated seconds per second of one core."""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np

from configs.policies import POLICIES
from models.policy.catalogue import build, entry
from models.policy.received.peaks import LEVELS
from models.twin.experiment.setup import Setup
from models.twin.sim.arrivals import draw_arrivals
from models.twin.sim.given import Foresight, Load, Looks
from models.twin.sim.job import TwinJob, stack
from models.twin.sim.run import simulate

DAY_S = 86_400
RUNS = 2048
HOURS, REPEATS = 1.0, 3
FREE = sorted(set(POLICIES) - {"schedule", "dqn"}, key=POLICIES.index)
"""Policies that need neither agent nor timetable."""
PEAK_RPS = 3000.0


def measure_speed() -> dict[str, Any]:
    """Time the twin (simulator of the job) on 2048 runs of an hour at once, under each policy of FREE.

    Compiling is not counted, and of three timings the median is told.

    The load is a daily sine of 150 to 3150 records/s with Poisson arrivals. The runs go in turn through the values of
    the policy's one tuned parameter that a backtest tries.

    Returns:
        `runs` (2048), `seconds` simulated per run, `policies` (by name `median`, `lowest` and `highest` of the repeats)
        and `median` over the policies' medians, each in 10⁶ simulated seconds, summed over the 2048 runs, per second of
        this process's CPU time.
    """
    seconds, looks = int(HOURS * 3600), Looks(every_s=15, batch_s=4.0)
    times = np.arange(seconds)
    rate = PEAK_RPS * (1.1 + np.sin(2 * np.pi * times / DAY_S)) / 2
    load = Load(np.stack([draw_arrivals(rate, seed) for seed in range(4)]), np.arange(RUNS) % 4)
    job = TwinJob(overhead_s=0.5, per_record_s=0.005, most=40, tasks=4000, startup_s=(50.0, 60.0, 70.0), cold_s=2.0)
    jobs, seeds, contract = stack([job] * RUNS), np.arange(RUNS), Setup(job=job).contract
    by_policy: dict[str, Any] = {}
    for name in FREE:
        knobs = np.resize(np.array(entry(name).knob_values(contract), float), RUNS)
        policy, ahead = build(name, contract, knob=knobs), _ahead(rate, looks)
        simulate(jobs, Load(load.arrived[:, :31].copy(), load.row), policy, looks, seeds, ahead)
        figures = []
        for _ in range(REPEATS):
            began = time.process_time()
            simulate(jobs, load, policy, looks, seeds, ahead)
            figures.append(RUNS * seconds / (time.process_time() - began) / 1e6)
        by_policy[name] = {"median": statistics.median(figures), "lowest": min(figures), "highest": max(figures)}
    median = statistics.median(one["median"] for one in by_policy.values())
    return {"runs": RUNS, "seconds": seconds, "policies": by_policy, "median": median}


def _ahead(rate: Any, looks: Looks) -> Foresight:
    now = np.arange(looks.count(len(rate))) * looks.every_s
    peak = rate[np.minimum(now + 90, len(rate) - 1)]
    rps = peak[None, :, None, None] * (1 + 0.02 * np.arange(len(LEVELS)))[None, None, None, :]
    return Foresight(np.array([90.0]), LEVELS, rps.astype(np.float32), np.zeros(RUNS, np.int64))
