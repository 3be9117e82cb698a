"""A contract's configurations tried in a job's twin, chosen among by the rule of a job's starts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

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
        cost: (N,) J of an interval, mean of all in which a batch ended, whether it was in force or not.
        late: (N,) share of the seconds that were late, likewise.
        ran: (N,) share of the intervals in which the rule had it in force.
        last: (N,) share of the futures that ended with it.
        intervals: of the load.
        interval_s: seconds of one.
        unmodelled: settings that the twin knows nothing of: with them a configuration is as it is without them.
    """

    names: tuple[str, ...]
    cost: Floats
    late: Floats
    ran: Floats
    last: Floats
    intervals: int
    interval_s: float
    unmodelled: tuple[str, ...]


def try_configurations(
    contract: Contract, twin: TwinJob, arrived: Floats, executors: Floats, trigger: str
) -> TriedConfigurations:
    """Serve a load under each configuration, with the executors that were there, and choose as starts would.

    Every `DWELL` intervals a start is thought to come. What a choice meets is what its configuration came to in these
    intervals of the load, so that all choices have the same luck with load and noise.

    Args:
        contract: of the job, with its configurations; its controller's interval is what is judged.
        twin: fitted to the job, whatever trigger it had.
        arrived: (T + 1,) records before each second, never falling.
        executors: (T,) that were there in each second.
        trigger: of the job where a configuration states none, such as "2 seconds".

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
    triggers = [str(settings.get(TRIGGER, trigger)) for settings in contract.configurations.values()]
    served = _serve(contract, terms, twin, triggers, arrived, executors)
    ran = [_choose(names, served, contract.error_budget, future) for future in range(SEEDS)]
    each = np.arange(len(names))
    return TriedConfigurations(
        names, cost=-np.nanmean(served.reward, axis=(1, 2)),
        late=served.late_s.sum(axis=(1, 2)) / np.maximum(served.told_s.sum(axis=(1, 2)), 1),
        ran=np.mean([[np.mean(one == name) for name in each] for one in ran], axis=0),
        last=np.mean([one[-1] == each for one in ran], axis=0),
        intervals=served.reward.shape[1], interval_s=terms.interval_s,
        unmodelled=tuple(sorted({key for one in contract.configurations.values() for key in one} - {TRIGGER})),
    )  # fmt: skip


class _Served(NamedTuple):
    """(N, intervals, SEEDS) what an interval earned, NaN without a batch's end; seconds that came out, those late."""

    reward: Floats
    told_s: Floats
    late_s: Floats


def _serve(
    contract: Contract, terms: Terms, twin: TwinJob, triggers: list[str], arrived: Floats, executors: Floats
) -> _Served:
    every = max(round(terms.interval_s), 1)
    there = replace(
        twin, least=1, most=int(executors.max()), startup_s=(0.0,), latency_target_s=contract.latency_target_s,
        cores=contract.executors.cores,
    )  # fmt: skip
    each = [replace(there, trigger_s=_seconds(trigger)) for trigger in triggers]
    jobs, runs = stack([one for one in each for _ in range(SEEDS)]), len(each) * SEEDS
    load = Load(arrived[None], np.zeros(runs, np.int64))
    state = begin(jobs, np.full(runs, max(executors[0], 1.0)), np.tile(np.arange(SEEDS), len(each)))
    intervals = []
    for now in range(0, load.seconds - every + 1, every):
        before, over = state.latencies.copy(), state.x["over"].copy()
        set_targets(state, jobs, np.full(runs, max(round(float(executors[now : now + every].mean())), 1)), now)
        advance(state, jobs, load, now, now + every)
        told = state.latencies - before
        told_s = told.sum(axis=1)
        late_s = np.minimum(state.x["over"] - over, told_s)
        within = 1 - late_s / np.maximum(told_s, 1)
        reward = [reward_of(terms, *one) for one in zip(mean_latency(told), within, strict=True)]
        intervals.append((reward, told_s, late_s))
    shape = (len(intervals), len(each), SEEDS)
    return _Served(*(np.array(of).reshape(shape).transpose(1, 0, 2) for of in zip(*intervals, strict=True)))


def _choose(names: tuple[str, ...], served: _Served, budget: float, future: int) -> NDArray[np.int64]:
    """(intervals,) index of the configuration in force, as `choose_configuration` of a managed job's start has it."""
    known, ran = Configurations.untried(names), []
    told, kept = np.zeros(len(names), int), np.zeros(len(names), int)
    for number in range(served.reward.shape[1]):
        at = known.current
        ran.append(at)
        told_s, late_s = served.told_s[at, number, future], served.late_s[at, number, future]
        told[at] += told_s > 0
        kept[at] += told_s > 0 and late_s <= budget * told_s
        feasible = {name for name, many, fine in zip(names, told, kept, strict=True) if 2 * fine >= many}
        runs_on = (number + 1) % DWELL > 0
        known = advance_configurations(known, float(served.reward[at, number, future]), feasible, runs_on)
    return np.array(ran)


def _seconds(trigger: str) -> float:
    return float(max(pd.Timedelta(trigger).total_seconds(), LOWEST["trigger_s"]))
