"""What else could have served a measured load under the same promise, and for how much, judged in the job's twin."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from configs.contract import Contract
from models.policy.catalogue import build, build_steered
from models.policy.core.capacity import Floats
from models.policy.core.policy import Policy
from models.twin.oracle.optimum import plan_clairvoyantly
from models.twin.sim.given import Load, Looks
from models.twin.sim.job import Belief, TwinJob, stack
from models.twin.sim.run import SimOutcome, simulate

SEEDS = 8
"""Draws of start-up delays and batch noise; their means are what is said."""
SMOOTH_S = 5
"""Seconds over which a look averages the arrivals, as live."""


class Alternatives(NamedTuple):
    """Executor-seconds, from registration on, of other ways to serve a load; None where none keeps the promise.

    Attributes:
        fixed: the smallest number of executors that keeps the promise.
        fixed_executor_s: what they take.
        reactive_executor_s: `reactive`, steered by the same promise, whether it keeps it or not.
        reactive_late: share of the seconds that it is late.
        clairvoyant_executor_s: the least that any plan takes which knows the whole load.
    """

    fixed: int | None
    fixed_executor_s: float | None
    reactive_executor_s: float
    reactive_late: float
    clairvoyant_executor_s: float | None


def price_alternatives(job: TwinJob, contract: Contract, arrived: Floats, start: float | None = None) -> Alternatives:
    """Serve a load in a job's twin by every fixed number of executors, by `reactive`, and by the best plan there is.

    Args:
        job: the twin, fitted; its query is taken for warm.
        contract: of the job: promise, bounds and planning.
        arrived: (T + 1,) records produced before each second, never falling.
        start: utilisation from which `reactive` is steered, as found on the past; None: the contract's.

    Raises:
        TwinError: `arrived` falls or is not finite.
    """
    looks = Looks(1, SMOOTH_S, contract.batch_s)
    numbers = np.arange(job.least, job.most + 1)
    fixed = [_mean(_served(job, contract, arrived, looks, _always(contract, int(n)))) for n in numbers]
    kept = [(int(n), paid) for n, (paid, late) in zip(numbers, fixed, strict=True) if late <= contract.error_budget]
    reactive = _served(job, contract, arrived, looks, build_steered("reactive", contract, start))
    paid, late = _mean(reactive, job)
    jobs, load = stack([job], Belief.of(contract.planning)), Load(arrived[None], np.zeros(1, np.int64))
    seeds, budget = np.zeros(1, np.int64), np.array([contract.error_budget])
    best = simulate(jobs, load, plan_clairvoyantly(jobs, load, looks, seeds, budget), looks, seeds)
    least, least_late = _mean(best, job)
    number, steady = kept[0] if kept else (None, None)
    return Alternatives(number, steady, paid, late, least if least_late <= contract.error_budget else None)


def _served(job: TwinJob, contract: Contract, arrived: Floats, looks: Looks, policy: Policy) -> SimOutcome:
    jobs = stack([job] * SEEDS, Belief.of(contract.planning))
    return simulate(jobs, Load(arrived[None], np.zeros(SEEDS, np.int64)), policy, looks, np.arange(SEEDS))


def _always(contract: Contract, executors: int) -> Policy:
    return build("static", contract, knob=float(executors))


def _mean(outcome: SimOutcome, job: TwinJob | None = None) -> tuple[float, float]:
    """Executor-seconds and share of late seconds; with a job, what it paid while executors started is taken away."""
    paid = outcome.executor_s
    if job is not None:
        asked = np.maximum(np.diff(outcome.targets, axis=0), 0.0).sum(axis=0)
        paid = paid - asked * float(np.mean(job.startup_s))
    return float(paid.mean()), float(outcome.violation.mean())
