"""A contract's configurations tried in a job's twin, chosen among by the rule of a job's starts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from configs.configurations import TRIGGER
from configs.contract import Contract
from models.contract.promised.derive import derive_terms
from models.contract.slow.configurations import DWELL, Configurations, advance_configurations, reward_of
from models.contract.terms import Terms
from models.policy.core.capacity import Floats
from models.policy.core.sustained import sustained_rates
from models.twin.advice.serve import SEEDS
from models.twin.sim.given import Load
from models.twin.sim.job import LOWEST, TwinError, TwinJob, stack
from models.twin.sim.run import advance, set_targets
from models.twin.sim.state import begin, mean_latency


@dataclass(frozen=True, eq=False)
class TriedConfigurations:
    """What a load came to under each of a contract's configurations (N), and which of them starts would have taken.

    Attributes:
        names: of the configurations.
        cost: (N,) J of an interval, mean of all that had records, whether it was in force or not.
        late: (N,) share of the seconds that were late, likewise.
        ran: (N,) share of the intervals in which the rule had it in force.
        last: (N,) share of the futures that ended with it.
        intervals: of the load.
        unmodelled: settings that the twin knows nothing of: with them a configuration is as it is without them.
    """

    names: tuple[str, ...]
    cost: Floats
    late: Floats
    ran: Floats
    last: Floats
    intervals: int
    unmodelled: tuple[str, ...]


def try_configurations(contract: Contract, twin: TwinJob, arrived: Floats, executors: Floats) -> TriedConfigurations:
    """Serve a load under each configuration, with the executors that were there, and choose as starts would.

    Every `DWELL` intervals a start is thought to come. What a choice meets is what its configuration came to in these
    intervals of the load, so that all choices have the same luck with load and noise.

    Args:
        contract: of the job, with its configurations; its controller's interval is what is judged.
        twin: fitted to the job; where a configuration states no trigger, its own is in force.
        arrived: (T + 1,) records before each second, never falling.
        executors: (T,) that were there in each second.

    Raises:
        TwinError: too little load for every configuration to run once.
        ValueError: the contract states no configurations.
    """
    names, terms = tuple(contract.configurations), derive_terms(contract, sustained_rates(contract))
    needed_s = math.ceil((len(names) + 1) * DWELL * terms.interval_s)
    if (seconds := len(arrived) - 1) < needed_s:
        raise TwinError(
            f"{seconds} s of load: {needed_s} are needed for each of {len(names)} configurations to run for {DWELL} "
            f"intervals of {terms.interval_s:g} s; let the job run longer"
        )
    reward, late = _serve(contract, terms, twin, arrived, executors)
    kept = late <= contract.error_budget
    ran = [_choose(names, reward[:, :, future], kept[:, :, future]) for future in range(SEEDS)]
    each = np.arange(len(names))
    return TriedConfigurations(
        names, cost=-np.nanmean(reward, axis=(1, 2)), late=late.mean(axis=(1, 2)),
        ran=np.mean([[np.mean(one == name) for name in each] for one in ran], axis=0),
        last=np.mean([one[-1] == each for one in ran], axis=0), intervals=reward.shape[1],
        unmodelled=tuple(sorted({key for one in contract.configurations.values() for key in one} - {TRIGGER})),
    )  # fmt: skip


def _serve(
    contract: Contract, terms: Terms, twin: TwinJob, arrived: Floats, executors: Floats
) -> tuple[Floats, Floats]:
    """(N, intervals, SEEDS) what an interval earned, NaN without records, and the share of seconds that were late."""
    many, every = len(contract.configurations), max(round(terms.interval_s), 1)
    there = replace(
        twin, least=1, most=int(executors.max()), startup_s=(0.0,), latency_target_s=contract.latency_target_s,
        cores=contract.executors.cores,
    )  # fmt: skip
    jobs = stack([
        replace(there, trigger_s=_trigger_s(settings.get(TRIGGER), twin))
        for settings in contract.configurations.values() for _ in range(SEEDS)
    ])  # fmt: skip
    runs, futures = many * SEEDS, np.tile(np.arange(SEEDS), many)
    load = Load(arrived[None], np.zeros(runs, np.int64))
    state = begin(jobs, np.full(runs, max(executors[0], 1.0)), futures)
    reward, late = [], []
    for now in range(0, load.seconds - every + 1, every):
        before, over = state.latencies.copy(), state.x["over"].copy()
        set_targets(state, jobs, np.full(runs, max(round(float(executors[now : now + every].mean())), 1)), now)
        advance(state, jobs, load, now, now + every)
        told = state.latencies - before
        spent, seconds = state.x["over"] - over, np.maximum(told.sum(axis=1), 1)
        late.append(np.minimum(spent / seconds, 1.0))
        means = mean_latency(told)
        reward.append([reward_of(terms, *one) for one in zip(means, 1 - late[-1], strict=True)])
    shape = (len(late), many, SEEDS)
    return np.array(reward).reshape(shape).transpose(1, 0, 2), np.array(late).reshape(shape).transpose(1, 0, 2)


def _choose(names: tuple[str, ...], reward: Floats, kept: NDArray[np.bool_]) -> NDArray[np.int64]:
    """(intervals,) index of the configuration in force, of (N, intervals) rewards and whether the promise was kept."""
    known, ran = Configurations.untried(names), []
    seen, good = np.zeros(len(names), int), np.zeros(len(names), int)
    for number in range(reward.shape[1]):
        at = known.current
        ran.append(at)
        seen[at] += 1
        good[at] += kept[at, number]
        feasible = {name for name, many, fine in zip(names, seen, good, strict=True) if 2 * fine >= many}
        known = advance_configurations(known, float(reward[at, number]), feasible)
    return np.array(ran)


def _trigger_s(stated: str | int | float | bool | None, twin: TwinJob) -> float:
    return twin.trigger_s if stated is None else max(pd.Timedelta(str(stated)).total_seconds(), LOWEST["trigger_s"])
