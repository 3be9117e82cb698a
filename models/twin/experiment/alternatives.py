"""What else could have served a measured load under the same promise, and for how much, judged in the job's twin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from configs.contract import Contract
from models.policy.catalogue import build, build_steered
from models.policy.core.capacity import Floats, Integers
from models.policy.core.choice import Choice
from models.policy.core.policy import Policy, decide
from models.policy.core.view import Memory, View
from models.twin.oracle.optimum import plan_clairvoyantly
from models.twin.sim.given import Load, Looks
from models.twin.sim.job import Belief, TwinJob, TwinJobs, stack
from models.twin.sim.run import simulate

SEEDS = 8
"""Draws of start-up delays and batch noise; their means are what is said."""
TOGETHER = 8
"""Fixed numbers of executors that share a simulation: looking takes the time, and each of them memory."""
SMOOTH_S = 5
"""Seconds over which a look averages the arrivals, as live."""


class Alternatives(NamedTuple):
    """Executor-seconds, from registration on, of other ways to serve a load; None where none keeps the promise.

    Attributes:
        fixed: the smallest number of executors that keeps the promise.
        fixed_executor_s: what they take.
        reactive_executor_s: `reactive`, steered by the same promise, whether it keeps it or not.
        reactive_late: share of the seconds of production that it is late.
        clairvoyant_executor_s: the least that any plan takes which knows the whole load.
    """

    fixed: int | None
    fixed_executor_s: float | None
    reactive_executor_s: float
    reactive_late: float
    clairvoyant_executor_s: float | None


def price_alternatives(job: TwinJob, contract: Contract, arrived: Floats, start: float | None = None) -> Alternatives:
    """Serve a load in a job's twin by every fixed number of executors, by `reactive`, and by the best plan there is.

    All are judged as the promise counts: by the seconds in which anything was produced.

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
    fixed = [
        one
        for part in np.split(numbers, range(TOGETHER, len(numbers), TOGETHER))
        for one in _served_each(job, contract, arrived, looks, _always(contract, np.repeat(part, SEEDS)), len(part))
    ]
    kept = [(int(n), paid) for n, (paid, late) in zip(numbers, fixed, strict=True) if late <= contract.error_budget]
    paid, late = _served(job, contract, arrived, looks, build_steered("reactive", contract, start))
    jobs, load = stack([job], Belief.of(contract.planning)), Load(arrived[None], np.zeros(1, np.int64))
    # A plan takes its budget as a share of all seconds.
    allowed_s = np.round(contract.error_budget * load.produced_s(0, load.seconds), 9)
    seeds, budget = np.zeros(1, np.int64), allowed_s / load.seconds
    plan = plan_clairvoyantly(jobs, load, looks, seeds, budget)
    ((least, least_late),) = _costs(jobs, load, plan, looks, seeds)
    number, steady = kept[0] if kept else (None, None)
    return Alternatives(number, steady, paid, late, least if least_late <= contract.error_budget else None)


@dataclass(frozen=True, eq=False)
class Registering:
    """A policy that is asked each second, and the executor-seconds, from registration on, that its job has meanwhile.

    Which of the executors that were asked for came, which were called off on their way, and which were asked for while
    others were leaving, only the simulated job knows: `View.executors` tells.

    Attributes:
        policy: that decides.
        executor_s: (runs,) so far; grows with every look.
    """

    policy: Policy
    executor_s: Floats

    @property
    def name(self) -> str:
        """Name of the policy."""
        return self.policy.name

    def fresh(self, runs: int) -> Memory:
        """Return the policy's memory."""
        return self.policy.fresh(runs)

    def decide(self, memory: Memory, view: View) -> tuple[Memory, Choice]:
        """Return what the policy does, and count the executors of the second that begins."""
        self.executor_s[:] += view.executors
        return decide(self.policy, memory, view)


def _served(job: TwinJob, contract: Contract, arrived: Floats, looks: Looks, policy: Policy) -> tuple[float, float]:
    return _served_each(job, contract, arrived, looks, policy, 1)[0]


def _served_each(
    job: TwinJob, contract: Contract, arrived: Floats, looks: Looks, policy: Policy, many: int
) -> list[tuple[float, float]]:
    """What so many policies in one come to, each of which decides for `SEEDS` runs."""
    jobs, seeds = stack([job] * (many * SEEDS), Belief.of(contract.planning)), np.tile(np.arange(SEEDS), many)
    return _costs(jobs, Load(arrived[None], np.zeros(len(seeds), np.int64)), policy, looks, seeds, many)


def _costs(
    jobs: TwinJobs, load: Load, policy: Policy, looks: Looks, seeds: Integers, many: int = 1
) -> list[tuple[float, float]]:
    """Executor-seconds from registration on, and share of late seconds of production, if looked at each second.

    They are means over the runs, or over each of so many equal parts of them.
    """
    counted = Registering(policy, np.zeros(len(seeds)))
    outcome = simulate(jobs, load, counted, looks, seeds)
    late = outcome.violation * load.seconds / np.maximum(load.produced_s(0, load.seconds), 1.0)
    # A share that meets a budget to the second could be above it by its last bit.
    return [
        (float(paid.mean()), round(float(share.mean()), 12))
        for paid, share in zip(np.split(counted.executor_s, many), np.split(late, many), strict=True)
    ]


def _always(contract: Contract, executors: Integers | int) -> Policy:
    return build("static", contract, knob=np.asarray(executors, float))
