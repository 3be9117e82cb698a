"""The clairvoyant optimum can be carried out and beats what policies do; no policy goes below the bound."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from configs.contract import Contract
from models.policy.planners.planner import Planner
from models.policy.rules.fixed import Static
from models.twin.oracle.bound import lower_bound
from models.twin.oracle.optimum import Optimum, plan_clairvoyantly
from models.twin.oracle.polish import simulate_plans
from models.twin.sim.given import Load, Looks
from models.twin.sim.job import TwinJob, stack
from models.twin.sim.run import first_executors, simulate

LOOKS = Looks(every_s=15)
BUDGETS, KNOBS = np.array([0.001, 0.01, 0.05]), np.linspace(0.3, 1.2, 24)
JOB = TwinJob(overhead_s=0.5, per_record_s=0.001, most=16, startup_s=(60.0,))


def arrived(rates):
    """Records before each second."""
    return np.concatenate([[0.0], np.cumsum(rates)])[None]


def runs(job, count):
    """So many copies of a job, its load's rows and seeds."""
    return stack([job] * count), np.zeros(count, np.int64)


def planned(job, load, budgets=BUDGETS):
    """The clairvoyant plans' targets and what the twin makes of them."""
    jobs, rows = runs(job, len(budgets))
    plan = plan_clairvoyantly(jobs, Load(load, rows), LOOKS, rows, np.asarray(budgets))
    return plan.targets, simulate(jobs, Load(load, rows), plan, LOOKS, rows)


def planners(knobs):
    """With these utilisations, a run each."""
    return dataclasses.replace(
        Planner.of("reactive", Contract(job="j")), utilisation=knobs, step_up=16.0, step_down=16.0, down_delay_s=120.0,
        cooldown_s=0.0,
    )  # fmt: skip


def swept(job, load, seeds=0):
    """Cost and violation of planners with many utilisations."""
    jobs, rows = runs(job, len(KNOBS))
    found = simulate(jobs, Load(load, rows), planners(KNOBS), LOOKS, rows + seeds)
    return found.executor_s, found.violation


def daylike(seed, seconds=7200, mean=4000.0, spikes=0):
    """A wave with slow and Poisson noise, and sudden peaks."""
    random = np.random.default_rng(seed)
    t = np.arange(seconds)
    slow = np.interp(t, np.arange(0, seconds + 300, 300), random.normal(0, 0.06, seconds // 300 + 1))
    rates = mean * (1 + 0.6 * np.sin(2 * np.pi * t / seconds)) * np.exp(slow)
    for _ in range(spikes):
        at, length = random.integers(0, seconds - 300), random.integers(60, 300)
        rates[at : at + length] *= 2
    return arrived(random.poisson(rates))


def test_a_steady_load_is_met_with_the_same_executors_throughout():
    # 3500 records/s of 1 ms ask for 3.5 slots; with 4 executors batches take 0.5 / (1 - 0.875) = 4 s, and no record
    # waits for more than two of them and a second.
    targets, outcome = planned(JOB, arrived(np.full(1800, 3500.0)), [0.0])
    assert set(targets[8:-20, 0]) == {4.0}
    assert outcome.violation[0] == 0


def test_a_step_up_is_foreseen_by_one_start_up():
    # From 1.5 slots to 5.5 at second 1200: executors are asked for once, at most one look more than the start-up ahead.
    rates = np.where(np.arange(2400) < 1200, 1500.0, 5500.0)
    targets, outcome = planned(JOB, arrived(rates), [0.001])
    raised = np.flatnonzero(np.diff(targets[:, 0]) > 0) + 1
    assert outcome.violation[0] <= 0.001
    assert (raised * 15 >= 1200 - 60 - 15).all()
    assert raised[0] * 15 <= 1200 - 45
    assert targets[60:70, 0].max() == 2


def test_a_dip_shorter_than_the_start_up_is_not_worth_a_dismissal():
    rates = np.where(np.abs(np.arange(1800) - 900) < 20, 1500.0, 5500.0)
    targets, _ = planned(JOB, arrived(rates), [0.0])
    assert (targets[20:100, 0] >= 6).all()


def test_no_planner_is_cheaper_at_the_same_budget():
    """With two loads and three start-ups, in one simulation: none changes anything in another."""
    loads = np.vstack([daylike(1), daylike(2, spikes=4)])
    cases = [(dataclasses.replace(JOB, startup_s=(s,)), row) for row in range(len(loads)) for s in (10.0, 60.0, 300.0)]

    def simulated(count, policy_of):
        """What a policy comes to that so many runs of each case have, by case."""
        jobs = stack([job for job, _ in cases for _ in range(count)])
        load, seeds = Load(loads, np.repeat([row for _, row in cases], count)), np.zeros(len(cases) * count, np.int64)
        found = simulate(jobs, load, policy_of(jobs, load, seeds), LOOKS, seeds)
        return found.executor_s.reshape(-1, count), found.violation.reshape(-1, count)

    budgets = np.tile(BUDGETS, len(cases))
    best = simulated(len(BUDGETS), lambda jobs, load, seeds: plan_clairvoyantly(jobs, load, LOOKS, seeds, budgets))
    others = simulated(len(KNOBS), lambda *_: planners(np.tile(KNOBS, len(cases))))
    for (job, row), paid, late, cost, violation in zip(cases, *best, *others, strict=True):
        assert (late <= BUDGETS).all(), (job.startup_s, row)
        for budget, least in zip(BUDGETS, paid, strict=True):
            assert least <= cost[violation <= budget].min(initial=np.inf), (job.startup_s, row)


def test_a_plan_costs_in_the_search_what_it_costs_in_the_twin():
    job = dataclasses.replace(JOB, noise=0.1, cold_s=2.0, startup_s=(30.0, 70.0))
    load = daylike(8, 1800)
    targets, outcome = planned(job, load)
    jobs, rows = runs(job, 3)
    executors = first_executors(jobs, Load(load, rows), LOOKS)
    paid, late = simulate_plans(targets, jobs, Load(load, rows), 15, rows, executors)
    assert (paid == outcome.executor_s).all()
    assert (late == outcome.violation).all()


def test_a_looser_budget_never_costs_more():
    _, outcome = planned(JOB, daylike(4, spikes=3))
    assert (np.diff(outcome.executor_s) <= 0).all()


def test_a_restarting_engine_is_changed_seldom():
    job = dataclasses.replace(JOB, restart_s=(25.0,))
    targets, outcome = planned(job, daylike(5), [0.05])
    assert outcome.violation[0] <= 0.05
    assert 1 <= outcome.changes[0] <= 12
    assert len(set(targets[:, 0])) > 1


def test_a_load_beyond_all_executors_gets_the_plan_with_the_fewest_late_seconds():
    targets, outcome = planned(dataclasses.replace(JOB, most=3), arrived(np.full(900, 6000.0)), [0.01])
    assert outcome.violation[0] > 0.9
    assert targets.max() <= 3


def test_runs_with_different_loads_and_seeds_are_planned_apart():
    loads = np.vstack([daylike(6, 1800), daylike(7, 1800)])
    jobs = stack([JOB] * 4)
    load, seeds = Load(loads, np.array([0, 1, 0, 1])), np.array([0, 0, 1, 1])
    plan = plan_clairvoyantly(jobs, load, LOOKS, seeds, np.full(4, 0.01))
    assert (simulate(jobs, load, plan, LOOKS, seeds).violation <= 0.01).all()


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    startup=st.sampled_from([0.0, 4.0, 20.0, 60.0]),
    overhead=st.sampled_from([0.0, 0.5, 2.0]),
    restarts=st.booleans(),
    noise=st.sampled_from([0.0, 0.1]),
    executors=st.integers(1, 9),
)
def test_nothing_costs_less_than_the_bound(seed, startup, overhead, restarts, noise, executors):
    job = TwinJob(
        overhead, 0.001, least=1, most=9, cores=1 + seed % 2, tasks=12, scaling=1.0 if seed % 3 else 0.8,
        startup_s=(startup, startup + 10), restart_s=(20.0,) if restarts else (), noise=noise,
    )  # fmt: skip
    load = daylike(seed, 900, 3000.0, spikes=1)
    cost, violation = swept(job, load, seed)
    jobs, rows = runs(job, 1)
    fixed = simulate(jobs, Load(load, rows), Static("static", float(executors)), LOOKS, rows)
    _, best = planned(job, load)
    paid = np.concatenate([cost, fixed.executor_s, best.executor_s])
    late = np.concatenate([violation, fixed.violation, best.violation])
    jobs, rows = runs(job, len(late))
    assert (lower_bound(jobs, Load(load, rows), LOOKS, late) <= paid + 1e-6).all()


def test_the_bound_of_a_steady_load_is_near_what_the_load_asks_for():
    # 4.5 slots of work: no policy does it with fewer executor-seconds, and five executors throughout do it.
    load, (jobs, rows) = arrived(np.full(3600, 4500.0)), runs(JOB, 1)
    found = lower_bound(jobs, Load(load, rows), LOOKS, np.zeros(1))[0]
    assert 4.4 * 3600 <= found <= 5 * 3600


def test_the_bound_asks_for_the_start_up_of_a_peak():
    # Eight slots for two minutes twice an hour: whoever serves them in time pays their start-up too.
    rates = np.full(3600, 900.0)
    rates[1500:1620] = rates[3300:3420] = 7900.0
    load = arrived(rates)
    slow, fast = (
        lower_bound(
            stack([dataclasses.replace(JOB, startup_s=(s,))]), Load(load, np.zeros(1, np.int64)), LOOKS, np.zeros(1)
        )
        for s in (120.0, 15.0)
    )
    assert slow[0] > fast[0] + 2 * 6 * 60


@pytest.mark.parametrize("job", [dataclasses.replace(JOB, noise=0.2), dataclasses.replace(JOB, restart_s=(25.0,))])
def test_a_budget_is_kept_of_the_seconds_that_count_where_chance_and_restarts_take_room(job):
    load = Load(daylike(9, mean=6000.0, spikes=2), np.zeros(2, np.int64), counts=np.array([900]))
    jobs, seeds, budgets = stack([job] * 2), np.zeros(2, np.int64), np.array([0.001, 0.003])
    found = simulate(jobs, load, plan_clairvoyantly(jobs, load, LOOKS, seeds, budgets), LOOKS, seeds)
    assert (found.violation <= budgets).all()
    assert (np.diff(found.executor_s) <= 0).all()


def test_a_plan_that_counts_later_costs_in_the_search_what_it_costs_in_the_twin():
    job, targets = dataclasses.replace(JOB, noise=0.1), np.full((120, 1), 4.0)
    targets[30:90] = 9.0
    load, (jobs, rows) = Load(daylike(8, 1800), np.zeros(1, np.int64), counts=np.array([600])), runs(job, 1)
    paid, late = simulate_plans(targets, jobs, load, 15, rows, first_executors(jobs, load, LOOKS))
    outcome = simulate(jobs, load, Optimum("optimum", targets, 15), LOOKS, rows)
    assert (paid == outcome.executor_s).all() and (late == outcome.violation).all() and late > 0
