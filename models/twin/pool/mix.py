"""Jobs with loads of their own on a pool that is too small for all their peaks, and what each rule makes of that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from configs.pool import ClusterPool, PoolJob
from models.policy.catalogue import build_steered
from models.policy.core.capacity import Floats, Integers
from models.twin.experiment.contenders import Sweep, Trial, make_contender
from models.twin.experiment.lanes import collect_forecasts, load_of
from models.twin.experiment.scenario import Scenario
from models.twin.pool.pooled import Pooled, SharedJobs
from models.twin.pool.rules import ByWorth, DivisionRule, FirstCome, Fixed, best_split, split_by
from models.twin.sim.given import Foresight
from models.twin.sim.job import stack
from models.twin.sim.run import SimOutcome, simulate

OURS, FIRST_COME, STATIC, WEIGHTED = "by worth", "first come, first served", "static shares", "static, in hindsight"
RULES = (OURS, FIRST_COME, STATIC, WEIGHTED)


@dataclass(frozen=True, eq=False)
class Mix:
    """Jobs of one pool.

    Attributes:
        scenarios: of each job, of one setup, with one draw of the arrivals and the blend's forecasts.
        peaks: (J,) executors that each one's peak needs.
        weights: (J,) what a late second of each costs.
        cores: of the pool; an executor has one.
    """

    scenarios: tuple[Scenario, ...]
    peaks: Floats
    weights: Floats
    cores: int

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the jobs."""
        return tuple(f"job{at}" for at in range(len(self.scenarios)))


class MixResult(NamedTuple):
    """What one rule came to on one mix, (J,) each.

    Attributes:
        late_s: late seconds.
        hours: executor-hours.
        most_changes: the most changes of the target within any minute.
        weights: what a late second costs.
    """

    late_s: Floats
    hours: Floats
    most_changes: Floats
    weights: Floats

    @property
    def cost(self) -> float:
        """Late seconds by their weights."""
        return float(self.late_s @ self.weights)


def run_rules(
    mixes: Sequence[Mix], report: Callable[[str], None] = lambda name: None
) -> dict[str, list[MixResult]]:  # fmt: skip
    """Simulate all mixes under every rule; the jobs' policy is `mpc`, steered by its promise, in all of them.

    Args:
        mixes: of one setup.
        report: called with the name of each rule before it is simulated.

    Returns:
        By rule a result per mix.
    """
    rules: dict[str, list[DivisionRule]] = {
        OURS: [ByWorth(_pool(mix)) for mix in mixes],
        FIRST_COME: [FirstCome(mix.cores) for mix in mixes],
        STATIC: [Fixed(dict(zip(mix.names, split_by(mix.peaks, mix.cores), strict=True))) for mix in mixes],
    }
    report(WEIGHTED)
    rules[WEIGHTED] = list(_in_hindsight(mixes))
    found = {}
    for name in RULES:
        report(name)
        found[name] = _results(mixes, _simulated(mixes, rules[name]))
    return found


def _pool(mix: Mix) -> ClusterPool:
    jobs = {name: PoolJob(weight=float(weight)) for name, weight in zip(mix.names, mix.weights, strict=True)}
    return ClusterPool(name="mix", cores=mix.cores, jobs=jobs)


def _in_hindsight(mixes: Sequence[Mix]) -> Sequence[DivisionRule]:
    """The static shares of each mix that cost least on the very load that is judged."""
    most = max(mix.cores for mix in mixes)
    jobs = [scenario for mix in mixes for scenario in mix.scenarios]
    alone = [SharedJobs((f"job{share}",), Fixed({f"job{share}": share})) for _ in jobs for share in range(1, most + 1)]
    seeds = np.repeat(np.arange(len(jobs)), most)  # each job's draws are those that the shares are judged on
    outcome = _run([scenario for scenario in jobs for _ in range(most)], alone, seeds)
    counted = np.array([one.seconds - one.warm_s for one in jobs], float)
    late = outcome.violation.reshape(len(jobs), most) * counted[:, None]
    first, found = 0, list[DivisionRule]()
    for mix in mixes:
        costs = late[first : first + len(mix.scenarios)] * mix.weights[:, None]
        found.append(Fixed(dict(zip(mix.names, best_split(costs, mix.cores), strict=True))))
        first += len(mix.scenarios)
    return found


def _simulated(mixes: Sequence[Mix], rules: Sequence[DivisionRule]) -> SimOutcome:
    pools = [SharedJobs(mix.names, rule) for mix, rule in zip(mixes, rules, strict=True)]
    jobs = [scenario for mix in mixes for scenario in mix.scenarios]
    return _run(jobs, pools, np.arange(len(jobs)))


def _run(scenarios: Sequence[Scenario], pools: Sequence[SharedJobs], seeds: Integers) -> SimOutcome:
    setup = scenarios[0].setup
    contract = setup.contract
    policy = Pooled(
        build_steered("mpc", contract), pools, contract.latency_target_s, *setup.planned_s, contract.error_budget,
        contract.window_days,
    )  # fmt: skip
    distinct = list(dict.fromkeys(scenarios))
    where = np.array([distinct.index(one) for one in scenarios])
    load, jobs = load_of(distinct, where), stack([setup.twin_job] * len(seeds), setup.belief)
    return simulate(jobs, load, policy, setup.looks, seeds, _foresight(distinct, where))


def _foresight(distinct: Sequence[Scenario], where: Integers) -> Foresight:
    one = make_contender("mpc")
    heard = collect_forecasts([Trial(one, Sweep(scenario, one.setting, np.zeros(1))) for scenario in distinct])
    return heard._replace(row=where)


def _results(mixes: Sequence[Mix], outcome: SimOutcome) -> list[MixResult]:
    found, first = [], 0
    for mix in mixes:
        runs = slice(first, first + len(mix.scenarios))
        setup = mix.scenarios[0].setup
        counted = np.array([one.seconds - one.warm_s for one in mix.scenarios], float)
        found.append(MixResult(
            outcome.violation[runs] * counted, outcome.executor_s[runs] / 3600,
            _most_changes(outcome.targets[:, runs], setup.looks.every_s), mix.weights,
        ))  # fmt: skip
        first += len(mix.scenarios)
    return found


def _most_changes(targets: Floats, every_s: int) -> Floats:
    """(J,) the most changes of the target within any minute."""
    changed = (np.diff(targets, axis=0) != 0).astype(float)
    within = max(round(60 / every_s), 1)
    sums = np.cumsum(np.concatenate([np.zeros((1, changed.shape[1])), changed]), axis=0)
    most: Floats = (sums[within:] - sums[:-within]).max(axis=0)
    return most
