"""Plans: kept promises of probability, refusals with what would do, replanning."""

import math
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import ndtri

from models.backfill.finish import finish_steps, finishing, replayed, weigh
from models.backfill.given import BackfillPlanError, Fleet, LiveOutlook, LivePromise, ReplayWork, SlotRate
from models.backfill.joint import unknown_errors
from models.backfill.plan import DeadlineError, Surroundings, at_once_schedule, plan_backfill, shortest_s
from models.backfill.replan import Tolerance, replan
from models.policy.core.capacity import speed_table

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
STEPS, STEP_S = 24, 600.0


def around(steps=STEPS, most=16, seed=0, factor=1.0, extra=0):
    """A night that ends: live records rise from 300 to 1100 per second; a slot serves some 150."""
    live = factor * (700 - 400 * np.cos(np.pi * np.arange(STEPS)[-steps:] / STEPS))
    outlook = LiveOutlook(live[:, None] * np.exp(0.1 * ndtri(LEVELS)), LEVELS, STEP_S)
    fleet = Fleet(speed_table(40, 1, 4000, 0.85), 1, most, np.array([45.0, 60, 75]))
    unsure = SlotRate(150.0, 0.03)
    return Surroundings(outlook, unknown_errors(steps), LivePromise(0.125, 1.15), unsure, fleet, 4 + extra, extra, seed)


WORK = ReplayWork(4e6, 1.0, 0.05)
HOURS = 3 * 3600.0


@cache
def planned():
    """What most tests look at: the same each time, and a third of a second's work."""
    return plan_backfill(WORK, HOURS, around(), 0.9)


def test_a_plan_is_as_sure_as_asked_and_says_so():
    plan = planned()
    futures = around().futures(WORK)
    assert plan.schedule.chance >= 0.9
    assert finishing(futures, plan.extra, WORK.records).chance(HOURS) == plan.schedule.chance
    assert plan.finish.quantile(0.5) < plan.finish.quantile(0.9) <= HOURS
    assert plan.cost == plan.schedule.hours < plan.at_once_hours
    assert plan.live_risk < 0.1


def test_records_that_are_replayed_add_up_to_the_work():
    futures = around().futures(WORK)
    plan = planned()
    done = replayed(futures, plan.extra)
    ends = finish_steps(done, WORK.records)
    shares = np.clip(ends[:, None] - np.arange(futures.steps), 0, 1)
    sums = (np.diff(done, axis=1) * shares).sum(axis=1)
    assert sums[np.isfinite(ends)] == pytest.approx(WORK.records)


def test_more_time_never_costs_more_and_more_sureness_never_ends_later():
    plans = [*(plan_backfill(WORK, hours * 3600, around(), 0.9) for hours in (1.5, 2)), planned()]
    costs = [plan.schedule.hours for plan in plans]
    assert all(later <= 1.01 * sooner for sooner, later in pairwise(costs)), costs
    unsure, sure = (plan_backfill(WORK, HOURS, around(), asked) for asked in (0.5, 0.97))
    ends = [plan.finish.quantile(0.9) for plan in (unsure, planned(), sure)]
    assert all(surer <= less + STEP_S / 20 for less, surer in pairwise(ends)), ends


def test_the_chance_holds_in_futures_that_were_not_planned_with():
    plan = planned()
    others = replace(around(seed=77), count=8000).futures(WORK)
    assert finishing(others, plan.extra, WORK.records).chance(HOURS) == pytest.approx(0.9, abs=0.05)


def test_a_plan_is_the_same_each_time():
    one, two = planned(), plan_backfill(WORK, HOURS, around(), 0.9)
    assert np.array_equal(one.extra, two.extra) and one.schedule[1:] == two.schedule[1:]


def test_an_impossible_deadline_is_refused_with_what_is_possible():
    with pytest.raises(DeadlineError, match="The earliest is") as refused:
        plan_backfill(WORK, 1800, around(), 0.9)
    error = refused.value
    assert error.earliest_s == shortest_s(WORK, around()) > 1800
    assert error.executors > 16
    assert plan_backfill(WORK, 1800, around(most=error.executors), 0.9).schedule.chance >= 0.9
    with pytest.raises(DeadlineError):
        plan_backfill(WORK, 1800, around(most=error.executors - 1), 0.9)
    late = STEP_S * math.ceil(error.earliest_s / STEP_S)
    assert plan_backfill(WORK, late, around(), 0.9).schedule.chance >= 0.9


def test_what_no_number_of_executors_does_is_said():
    with pytest.raises(DeadlineError, match="no number of executors") as refused:
        plan_backfill(ReplayWork(1e9), HOURS, around(), 0.9)
    assert refused.value.executors is None and math.isinf(refused.value.earliest_s)


@pytest.mark.parametrize(("by_s", "sure"), [(0.0, 0.9), (300.0, 0.9), (25 * STEP_S, 0.9), (HOURS, 0.0), (HOURS, 1.0)])
def test_deadlines_and_probabilities_out_of_range_are_refused(by_s, sure):
    with pytest.raises(BackfillPlanError):
        plan_backfill(WORK, by_s, around(), sure)


def test_a_schedule_is_kept_while_all_goes_as_told():
    plan = planned()
    passed = 4
    middle = np.median(np.diff(_totals(plan))[:, None], axis=1)[:passed].sum()
    again = replan(plan, passed, WORK.records - middle, around(STEPS - passed, extra=int(plan.extra[passed - 1])))
    assert not again.changed
    assert np.array_equal(again.plan.extra[: 18 - passed], plan.extra[passed:18])


def _totals(plan):
    return np.concatenate([[0.0], np.cumsum(plan.replay_rps * STEP_S)])


def test_who_is_behind_gets_executors_and_who_is_ahead_gives_them_back():
    plan = planned()
    now = around(STEPS - 6, extra=int(plan.extra[5]))
    behind = replan(plan, 6, 0.97 * WORK.records, now)
    assert behind.changed and behind.kept_chance < 0.5 and behind.plan.schedule.chance >= 0.8
    assert behind.plan.extra[:12].sum() > plan.extra[6:18].sum()
    ahead = replan(plan, 6, 0.2 * WORK.records, now)
    assert ahead.changed and ahead.kept_chance == 1 and ahead.plan.extra[:12].sum() < plan.extra[6:18].sum()
    assert not replan(plan, 6, 0.2 * WORK.records, now, Tolerance(save=0)).changed


def test_what_cannot_be_had_any_more_is_tried_with_all_executors():
    plan = planned()
    lost = replan(plan, 16, WORK.records, around(STEPS - 16))
    assert not lost.attainable
    assert np.array_equal(lost.plan.extra, at_once_schedule(around(STEPS - 16).futures(WORK))[0])


def test_where_executors_share_a_computer_what_cannot_be_had_any_more_keeps_its_schedule_and_one_executor():
    plan, late = planned(), around(STEPS - 16)
    shared = replace(late, fleet=replace(late.fleet, growth=1.0))
    for extra, expected in ((0 * plan.extra, [1] * 8), (plan.extra, np.maximum(plan.extra[16:18], 1).tolist())):
        standing = replace(plan, schedule=plan.schedule._replace(extra=extra))
        lost = replan(standing, 16, WORK.records, shared)
        assert not lost.attainable and lost.plan.extra[: len(expected)].tolist() == expected


def test_where_executors_share_a_computer_those_that_make_it_as_likely_as_not_are_taken():
    """Less likely than a new schedule is to be, but no less than one that is kept."""
    plan, late = replace(planned(), schedule=planned().schedule._replace(extra=0 * planned().extra)), around(STEPS - 6)
    shared = replace(late, fleet=replace(late.fleet, growth=1.0))
    tried = []
    for records in np.arange(0.2, 2.0, 0.02) * WORK.records:
        futures = shared.futures(replace(WORK, records=records))
        tried.append((float(weigh(futures, at_once_schedule(futures)[:1], records, 12)[0][0]), records))
    every, records = next(one for one in tried if 0.5 < one[0] < 0.8)
    looked = replan(plan, 6, records, shared)
    assert looked.changed and not looked.attainable and 0.5 <= looked.plan.schedule.chance <= every


def test_tolerances_are_multiples_of_the_chance_of_missing():
    assert Tolerance().chances(0.9) == pytest.approx((0.5, 0.97, 0.8))
    assert Tolerance().chances(0.99) == pytest.approx((0.95, 0.997, 0.98))
    assert Tolerance(1.0, 0.0, 1.0).chances(0.5) == (0.5, 1.0, 0.5)
    assert Tolerance().chances(0.5) == pytest.approx((0.25, 0.85, 0.25)), "never below half of what was asked for"


def test_a_tiny_change_moves_no_executor():
    plan = planned()
    for factor in (0.995, 1.005):
        assert not replan(plan, 0, WORK.records, around(factor=factor)).changed
