"""A load served in a job's twin by the default policy, steered by the contract's promise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from configs.contract import Contract
from models.forecast.core.series import Series
from models.policy.catalogue import build_steered
from models.policy.core.capacity import Floats
from models.policy.received.nowcast import forecast_offsets
from models.twin.experiment.foresight import LEVELS, correct_at_looks, issue_forecasts, steps_per_forecast_step
from models.twin.experiment.peak_training import recent_rates
from models.twin.sim.given import Foresight, Load, Looks
from models.twin.sim.job import Belief, TwinError, TwinJob, stack
from models.twin.sim.run import SimOutcome, simulate

POLICY = "mpc"
SEEDS = 6
"""Draws of start-up delays and batch noise; their means are what is said."""
PER_RUN = ("batch_s", "catch_up_s", "hold_s")
"""Fields of the policy that may differ between the runs of a simulation."""
KEPT = 1.5
"""A promise is taken for kept up to this multiple of its budget: over hours its account swings as far as that."""


@dataclass(frozen=True)
class Cost:
    """What serving a load came to in the twin.

    Attributes:
        late: share of the seconds of production that were late, as a promise counts them.
        executor_s: executor-seconds, from the request of an executor on.
        p99_s: seconds within which 99 % of the seconds' slowest records came out.
    """

    late: float
    executor_s: float
    p99_s: float

    def weighed(self, budget: float) -> float:
        """Return the executor-seconds, times how often the budget of late seconds was spent if it was overspent."""
        return self.executor_s * max(1.0, self.late / (KEPT * budget))


def looks_of(contract: Contract) -> Looks:
    """Return when the policy looks at a job: every second where executors come fast, at most every 15 s."""
    every = int(np.clip(contract.planning.lead_s // 3, 1, 15))
    return Looks(every, max(every, 5), contract.batch_s)


def hear_last_value(arrived: Floats, contract: Contract) -> Foresight:
    """Return what the policy hears: the rate as it is, with the errors that this forecast had until then.

    Args:
        arrived: (T + 1,) records before each second.
        contract: of the job: lead time and hold, as far ahead as it plans.

    Raises:
        TwinError: fewer than two forecast steps of load.
    """
    planned_s, looks = (max(contract.planning.lead_s, 1.0), contract.planning.hold_s), looks_of(contract)
    many = steps_per_forecast_step(1.0, sum(planned_s))
    seconds = len(arrived) - 1
    if seconds < 3 * many:
        raise TwinError(f"{seconds} s of load: {3 * many} are needed at this lead time; let the job run longer")
    issued = issue_forecasts("last_value", Series(0.0, 1.0, np.diff(arrived)), many, many)
    moments, ends = np.arange(0, seconds, looks.every_s), forecast_offsets(*planned_s)
    now = recent_rates(arrived, moments, looks.smooth_s)[0]
    asked_at = np.maximum(moments.astype(float), issued.begins_s)  # before the first forecast that one holds
    rps = correct_at_looks(issued, asked_at, now, ends, issued.step_s, None)
    return Foresight(ends, LEVELS, rps[None], np.zeros(SEEDS, np.int64))


def act(job: TwinJob, contract: Contract, arrived: Floats, ahead: Foresight) -> SimOutcome:
    """Simulate `SEEDS` runs of a job on a load under `mpc`, steered by the contract's promise.

    Args:
        job: the twin.
        contract: of the job.
        arrived: (T + 1,) records before each second, never falling.
        ahead: from `hear_last_value`, of a contract with the same lead time and hold.

    Raises:
        TwinError: `arrived` falls or is not finite.
    """
    return act_each([(job, contract)], arrived, ahead)[0]


def act_each(every: Sequence[tuple[TwinJob, Contract]], arrived: Floats, ahead: Foresight) -> list[SimOutcome]:
    """Simulate as `act` does each of some jobs under its own contract; return what they come to, in their order.

    As many as possible share a simulation, where each comes to the same as alone: a look costs about as much for one.

    Raises:
        TwinError: as `act`.
    """
    together: dict[tuple[Any, ...], list[int]] = {}
    for at, one in enumerate(every):
        together.setdefault(_decided_by(*one), []).append(at)
    found: dict[int, SimOutcome] = {}
    for places in together.values():
        outcome = _act([every[at] for at in places], arrived, ahead)
        for number, at in enumerate(places):
            found[at] = SimOutcome._make(of[..., number * SEEDS : (number + 1) * SEEDS] for of in outcome)
    return [found[at] for at in range(len(every))]


def _act(every: Sequence[tuple[TwinJob, Contract]], arrived: Floats, ahead: Foresight) -> SimOutcome:
    """Simulate `SEEDS` runs of each of some jobs with equal `_decided_by`, one job's runs behind the other's."""
    seeds, row = np.tile(np.arange(SEEDS), len(every)), np.zeros(len(every) * SEEDS, np.int64)
    policies: list[Any] = [build_steered(POLICY, contract) for _, contract in every]
    policy, looks = policies[0], looks_of(every[0][1])
    if len(every) > 1:
        own: dict[str, Any] = {
            name: np.repeat([getattr(one.policy, name) for one in policies], SEEDS) for name in PER_RUN
        }
        policy, looks = replace(policy, policy=replace(policy.policy, **own)), replace(looks, batch_s=own["batch_s"])
    jobs = stack(
        [job for job, _ in every for _ in range(SEEDS)],
        [Belief.of(one.planning) for _, one in every for _ in range(SEEDS)],
    )
    return simulate(jobs, Load(arrived[None], row), policy, looks, seeds, ahead._replace(row=row))


def _decided_by(job: TwinJob, contract: Contract) -> tuple[Any, ...]:
    """What the runs of a simulation have in common: all of the policy but `PER_RUN`, and the width of their tables."""
    steered: Any = build_steered(POLICY, contract)
    of = (getattr(steered.policy, one.name) for one in fields(steered.policy) if one.name not in PER_RUN)
    return job.most, steered.budget, *of


def produced_s(arrived: Floats) -> int:
    """Return the seconds in which anything was produced, at least 1, of (T + 1,) records before each second."""
    return max(int(np.count_nonzero(np.diff(arrived) > 0)), 1)


def late_shares(found: SimOutcome, arrived: Floats) -> Floats:
    """Return (runs,) shares of the seconds of production that were late, of runs that `act` served the load to."""
    return found.violation * ((len(arrived) - 1) / produced_s(arrived))


def mean_share(late: Floats) -> float:
    """Return the mean of (runs,) shares; one that meets a budget to the second is not above it by its last bit."""
    return round(float(late.mean()), 12)


def serve_each(every: Sequence[tuple[TwinJob, Contract]], arrived: Floats, ahead: Foresight) -> list[Cost]:
    """Return what `act_each` says of each job, means over its runs.

    Raises:
        TwinError: as `act`.
    """
    return [
        Cost(mean_share(late_shares(one, arrived)), float(one.executor_s.mean()), float(one.p99_s.mean()))
        for one in act_each(every, arrived, ahead)
    ]
