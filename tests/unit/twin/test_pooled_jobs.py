"""Rules by which a pool may be divided, and several simulated jobs under them."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from configs.pool import ClusterPool, PoolJob
from models.forecast.core.series import Series
from models.policy.catalogue import build
from models.pool.wants import Want
from models.twin.experiment.scenario import Scenario
from models.twin.experiment.setup import Setup
from models.twin.pool import mix as mixes
from models.twin.pool.pooled import Pooled, SharedJobs
from models.twin.pool.rules import ByWorth, FirstCome, Fixed, best_split, split_by
from models.twin.sim.given import Load
from models.twin.sim.job import stack
from models.twin.sim.run import simulate


def wants(**asked):
    return {job: Want(job, 0.0, executors, 1, 1, 1, (0.0,), 1.0) for job, executors in asked.items()}


def test_first_come_first_served_takes_from_nobody():
    rule = FirstCome(5)
    memory, has = rule.cut(rule.fresh(), wants(a=4, b=1), 0.0)
    assert has == {"a": 4, "b": 1}
    memory, has = rule.cut(memory, wants(a=4, b=3), 15.0)
    assert has == {"a": 4, "b": 1}
    memory, has = rule.cut(memory, wants(a=5, b=3), 30.0)
    memory, has = rule.cut(memory, wants(a=2, b=3), 45.0)
    assert has == {"a": 2, "b": 3}
    memory, has = rule.cut(memory, wants(a=4, b=2), 60.0)
    assert has == {"a": 3, "b": 2}


def test_who_has_waited_longest_is_served_first():
    rule = FirstCome(4)
    memory, _ = rule.cut(rule.fresh(), wants(a=1, b=3), 0.0)
    memory, _ = rule.cut(memory, wants(a=1, b=4), 15.0)
    memory, _ = rule.cut(memory, wants(a=3, b=4), 30.0)
    assert rule.cut(memory, wants(a=3, b=4), 45.0)[1] == {"a": 1, "b": 3}
    assert rule.cut(memory, wants(a=3, b=1), 45.0)[1] == {"a": 3, "b": 1}


def test_shares_come_to_all_cores_and_each_has_one():
    assert split_by(np.array([6.0, 3.0, 3.0]), 8) == [4, 2, 2]
    assert split_by(np.array([100.0, 1.0, 1.0]), 4) == [2, 1, 1]
    assert split_by(np.array([0.9, 1.55, 1.55]), 4) == [1, 2, 1]  # who gets a core in place of a part has no remainder


def test_the_best_shares_in_hindsight_are_those_of_a_search_over_all():
    costs = np.array([[90.0, 10, 5, 1], [50, 40, 0, 0], [9, 1, 1, 0]])
    every = [split for split in itertools.product(range(1, 5), repeat=3) if sum(split) <= 6]
    best = min(every, key=lambda split: sum(costs[job, many - 1] for job, many in enumerate(split)))
    assert best_split(costs, 6) == list(best) == [2, 3, 1]


def test_shares_in_hindsight_are_chosen_on_the_draws_that_they_are_judged_on(monkeypatch):
    """The draws of the first job need an executor, those of the second one three; other draws are never late."""
    need = np.array([1, 3])

    def simulated(jobs, load, policy, looks, seeds, foresight):
        has = np.array([share for pool in policy.pools for share in pool.rule.shares.values()])
        known = seeds < len(need)
        late = np.where(known, has < need[np.where(known, seeds, 0)], False)
        return SimpleNamespace(violation=late.astype(float))

    monkeypatch.setattr(mixes, "simulate", simulated)
    monkeypatch.setattr(mixes, "_foresight", lambda distinct, where: None)
    series, total = Series(0.0, 60.0, np.ones(1)), np.arange(61.0)[None]
    jobs = tuple(Scenario(name, Setup(), 0.0, 0, np.ones(60), np.ones(0), total, series, series) for name in ("a", "b"))
    (rule,) = mixes._in_hindsight([mixes.Mix(jobs, np.array([2.0, 2.0]), np.ones(2), 4)])
    assert rule.shares == {"job0": 1, "job1": 3}


@pytest.fixture(scope="module")
def opposite_peaks():
    """Two jobs of at most 7 executors each, on a pool of 8, whose peaks come one after the other."""
    setup = Setup(lead_s=30.0, executors=8)
    rps = float(stack([setup.twin_job]).capacity(setup.looks.batch_s).sustained_rps(np.array([6.0]))[0])
    second = np.arange(7200)
    high = (second // 1800 % 2).astype(float)
    rates = rps * np.stack([0.15 + 0.75 * high, 0.15 + 0.75 * (1 - high)])
    arrived = np.concatenate([np.zeros((2, 1)), np.cumsum(np.round(rates), axis=1)], axis=1)
    return setup, Load(arrived, np.arange(2))


def late_share(opposite_peaks, rule):
    setup, load = opposite_peaks
    contract, names = setup.contract, ("a", "b")
    policy = Pooled(
        build("mpc", contract), [SharedJobs(names, rule)], contract.latency_target_s, *setup.planned_s,
        contract.error_budget, contract.window_days,
    )  # fmt: skip
    outcome = simulate(stack([setup.twin_job] * 2, setup.belief), load, policy, setup.looks, np.arange(2))
    assert (outcome.targets.sum(axis=1) <= 8).all()
    return float(outcome.violation.mean())


def test_jobs_with_opposite_peaks_share_what_neither_could_be_given_for_good(opposite_peaks):
    pool = ClusterPool(name="two", cores=8, jobs={"a": PoolJob(), "b": PoolJob()})
    shared, fixed = late_share(opposite_peaks, ByWorth(pool)), late_share(opposite_peaks, Fixed({"a": 4, "b": 4}))
    assert shared < 0.3 * fixed
