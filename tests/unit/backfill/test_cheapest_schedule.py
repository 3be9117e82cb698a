"""The cheapest schedule beside every schedule there is, and the bound of who knows all."""

from itertools import pairwise, product

import numpy as np
import pytest

from models.backfill import search
from models.backfill.finish import weigh
from models.backfill.futures import Futures, held_for
from models.backfill.given import Fleet
from models.backfill.search import cheapest_schedule, with_tail
from models.twin.backfill.hindsight import least_hours


def small(seed, steps=4, count=16):
    """A few steps and executors, with capacities that grow less than in proportion and a load that moves."""
    random = np.random.default_rng(seed)
    most = 4
    fleet = Fleet(np.arange(most + 1.0) ** random.uniform(0.7, 1.0), 1, most, np.array([random.uniform(0, 60)]))
    live = random.uniform(20, 220, steps) * np.exp(0.1 * random.standard_normal((count, steps)))
    slot = 100 * np.exp(0.05 * random.standard_normal(count))
    held = held_for(live, 90.0, 0.0, fleet)
    return Futures(live, held, slot, np.ones(count), np.full(count, fleet.lead_s[0]), 100.0, fleet, int(held[0, 0]))


def every_schedule(futures):
    return np.array(list(product(range(futures.fleet.most), repeat=futures.steps)))


def brute_force(futures, records, steps, sure):
    """The least hours over every schedule that is sure enough; infinite where none is."""
    every = with_tail(every_schedule(futures)[:, :steps], futures.steps)
    chances, hours = weigh(futures, every, records, steps)
    return hours[chances >= sure].min(initial=np.inf)


def works(futures):
    """Records between what is free and what all executors replay."""
    bounds = [weigh(futures, np.full((1, futures.steps), extra), 0.0, futures.steps) for extra in (0, 3)]
    assert bounds
    rates = [np.median(futures.replay_rps(np.full(futures.steps, extra)).sum(axis=-1)) * 100 for extra in (0, 3)]
    return [rates[0] + share * (rates[1] - rates[0]) for share in (0.15, 0.5, 0.8)]


def test_it_is_as_cheap_as_the_best_of_all_schedules():
    ratios = []
    for seed in range(12):
        futures = small(seed)
        for records in works(futures):
            best, found = brute_force(futures, records, 4, 0.8), cheapest_schedule(futures, records, 4, 0.8)
            assert (found is None) == np.isinf(best)
            if found is not None:
                assert found.chance >= 0.8
                ratios.append(found.hours / best if best > 0 else 1.0 + found.hours)
    assert len(ratios) > 25
    assert np.mean(np.array(ratios) < 1 + 1e-9) >= 0.6
    assert max(ratios) <= 1.08


def test_nothing_is_paid_where_what_is_free_suffices():
    futures = small(0)
    free = futures.replay_rps(np.zeros(4, int)).sum(axis=-1).min() * 100
    found = cheapest_schedule(futures, 0.99 * free, 4, 0.9)
    assert found.hours == 0 and found.chance == 1


def test_more_time_never_costs_more_and_more_sureness_never_less():
    for seed in range(8):
        futures = small(seed, steps=6)
        records = works(futures)[1] / 2
        hours = [
            found.hours if (found := cheapest_schedule(futures, records, d, 0.8)) else np.inf for d in (3, 4, 5, 6)
        ]
        assert all(later <= 1.03 * sooner + 1e-9 for sooner, later in pairwise(hours)), hours
        each = [cheapest_schedule(futures, records, 5, sure) for sure in (0.5, 0.7, 0.9)]
        costs = [one.hours if one else np.inf for one in each]
        assert all(sure >= 0.97 * unsure - 1e-9 for unsure, sure in pairwise(costs)), costs


def test_no_schedule_goes_below_the_bound_and_the_bound_is_near():
    gaps = []
    for seed in range(10):
        futures = small(seed, count=1)
        for records in works(futures):
            best, bound = brute_force(futures, records, 4, 1.0), least_hours(futures, 4, records)[0]
            if np.isfinite(best):
                assert bound <= best + 1e-12
                gaps.append(bound / best if best > 0 else 1.0)
    assert np.median(gaps) > 0.75 and len(gaps) > 15


def test_it_is_the_same_each_time():
    futures = small(5)
    one, two = (cheapest_schedule(futures, works(futures)[1], 4, 0.8) for _ in range(2))
    assert np.array_equal(one.extra, two.extra) and one[1:] == two[1:]


def test_it_is_the_same_however_many_are_weighed_at_once(monkeypatch):
    futures = small(3, steps=6)
    records = works(futures)[1]
    found = cheapest_schedule(futures, records, 5, 0.8)
    for together in (1, 10_000):
        monkeypatch.setattr(search, "TOGETHER", together)
        other = cheapest_schedule(futures, records, 5, 0.8)
        assert np.array_equal(found.extra, other.extra) and found[1:] == other[1:]


@pytest.mark.parametrize("extra", [[0, 0, 0], [2, 3, 0]])
def test_latecomers_go_on_with_the_most_that_was_planned(extra):
    assert with_tail(np.array(extra), 5).tolist() == [*extra, *[max(max(extra), 1)] * 2]
