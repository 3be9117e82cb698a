"""Backfills followed in the twin: nothing of the future is used, nothing is taken from live, records add up."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from models.backfill.given import ReplayWork
from models.backfill.replan import Tolerance
from models.forecast.core.series import Series
from models.twin.backfill.case import PARTS, DrawnBackfill, DrawnJob
from models.twin.backfill.follow import all_at_once, clairvoyant_hours, first_plan, follow, own_executors_hours
from models.twin.experiment.foresight import issue_forecasts

HOUR = 3600
DAYS = 6


@cache
def wave(seed):
    """Rates of a daily wave, and what was foretold of them."""
    hours = np.arange(DAYS * 24 * 2) / 2
    noise = np.exp(0.05 * np.random.default_rng(seed).standard_normal(len(hours)))
    rates = (900 - 500 * np.cos(2 * np.pi * hours / 24)) * noise
    return rates, issue_forecasts("blend", Series(0.0, 1800.0, rates), 48)


def made(seed=1, true_cost=1.1, fixed=False, share=1.0):
    """A backfill of 5 M records beside a daily wave, begun on its last day but one."""
    rates, issued = wave(seed)
    total = np.concatenate([[0.0], np.cumsum(np.repeat(rates, 1800))])
    job = DrawnJob(10, 0.9, np.array([50.0, 60, 70]), 150.0, 0.125, fixed)
    work = ReplayWork(5e6 * share, 1.0, 0.1)
    return DrawnBackfill(
        job, work, true_cost, (DAYS - 2) * 24.0 * HOUR, 600.0, 18, total, np.arange(len(total), dtype=float), issued,
        seed,
    )  # fmt: skip


@pytest.fixture(scope="module")
def case():
    return made()


@pytest.fixture(scope="module")
def plan(case):
    return first_plan(case, 0.9)


@pytest.fixture(scope="module")
def followed(case, plan):
    return follow(case, plan, Tolerance())


def test_it_is_done_near_what_was_told_and_costs_between_the_bound_and_at_once(case, plan, followed):
    found, once = followed, all_at_once(case, plan)
    assert math.isfinite(found.finish_s)
    assert clairvoyant_hours(case) <= found.hours <= once.hours
    assert once.finish_s < found.finish_s
    assert clairvoyant_hours(case) > 0
    assert found.busiest <= 0.875 + 1e-9, "live latency keeps its idle share"


def test_executors_of_its_own_keep_nothing_idle_for_live_records(case):
    """They have none: what they cost does not depend on the share that live latency needs of the live job's."""
    busier = replace(case, job=case.job._replace(idle=0.5))
    assert own_executors_hours(case) == own_executors_hours(busier)
    took_s = 60.0 + case.work.records * case.true_cost / (case.job.slot_rps * case.job.fleet.worth[4])
    assert own_executors_hours(case) * HOUR == pytest.approx(4 * took_s)


def test_it_is_the_same_each_time(followed):
    wave.cache_clear()
    assert followed == follow(made(), first_plan(made(), 0.9), Tolerance())


def test_nothing_that_comes_later_is_known(case, plan):
    """Another future, the same past: the same plan, and the same schedule until it is noticed."""
    later = case.moments_s > case.begins_s
    jump = np.where(later, 1.5, 1.0)
    total = np.concatenate([[0.0], np.cumsum(np.diff(case.total) * jump[1:])])
    told = case.issued
    begun = int((case.begins_s - told.begins_s) // told.step_s)
    forged = told._replace(
        quantiles=np.concatenate([told.quantiles[: begun + 1], 1.5 * told.quantiles[begun + 1 :]]),
        last=np.concatenate([told.last[: begun + 1], 1.5 * told.last[begun + 1 :]]),
    )
    other = replace(case, total=total, issued=forged)
    assert np.array_equal(first_plan(other, 0.9).extra, plan.extra)
    assert not np.array_equal(other.live_rps, case.live_rps)


def test_a_dearer_record_takes_longer_unless_it_is_replanned(plan):
    dear = made(true_cost=1.4)
    once = follow(dear, plan, None)
    assert once.finish_s > follow(made(), plan, None).finish_s
    assert not once.kept
    again = follow(dear, plan, Tolerance())
    assert again.changes > 0 and again.finish_s < once.finish_s


def test_a_live_job_of_fixed_size_leaves_its_valley_for_nothing():
    scaled, fixed = made(share=0.6), made(share=0.6, fixed=True)
    costs = [follow(one, first_plan(one, 0.9), Tolerance()).hours for one in (scaled, fixed)]
    assert costs[1] < 0.7 * costs[0]
    assert (fixed.held >= 10).all() and scaled.held.min() < 10


def test_arrivals_have_the_trace_s_mean_in_every_part(case):
    edges = case.begins_s + np.arange(case.horizon * PARTS + 1) * case.part_s
    mean = case.mean_rps(edges[:-1], edges[1:]).reshape(case.live_rps.shape)
    assert case.live_rps == pytest.approx(mean, rel=0.05)
