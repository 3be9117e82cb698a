"""A promise of seconds becomes a quantile of records, and the way in which that is safe."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from models.contract.promised.level import (
    path_limit_ms,
    peak_weight,
    records_level,
    seconds_share,
    valley_weight,
)
from models.contract.queueing import micro_batch
from models.policy.core.budget import Account, Promise

LOADS = st.lists(st.integers(0, 1000), min_size=4, max_size=60)


def test_by_hand():
    """5 % of the seconds, late for 2 s at a stretch, which touch 3: two thirds of 5 % of the time."""
    assert records_level(0.05, 2.0) == pytest.approx(1 - 0.05 * 2 / 3)
    assert records_level(0.05, 2.0, weight=0.5) == pytest.approx(1 - 0.05 / 3)
    assert seconds_share(0.05 / 3, 2.0, weight=0.5) == pytest.approx(0.05)
    assert path_limit_ms(10.0, 0.95, 4.0) == pytest.approx(9800)
    assert valley_weight([1, 2, 3, 4], 0.5) == pytest.approx(0.6)  # 3 of 10 records in half of the seconds
    assert peak_weight([1, 2, 3, 4], 0.5) == pytest.approx(1.4)
    assert valley_weight([1, 2, 3, 4], 0.375) == pytest.approx(0.2 / 0.375)  # the first and half of the second


@pytest.mark.parametrize(("budget", "stretch_s", "weight"), [(0.5, 1e9, 3.0), (0.0, 1.0, 1.0), (0.1, 1.0, 0.0)])
def test_a_promise_that_comes_to_no_level_is_refused(budget, stretch_s, weight):
    with pytest.raises(ValueError, match="come to the level"):
        records_level(budget, stretch_s, weight)


@given(LOADS, st.data())
def test_no_seconds_that_are_late_hold_fewer_records_than_the_valley_or_more_than_the_peak(load, data):
    """Whatever seconds are late, b of all: they hold at least b·valley_weight of the records, at most b·peak_weight."""
    assume(sum(load) > 0)
    late = data.draw(st.lists(st.sampled_from(range(len(load))), min_size=1, max_size=len(load) - 1, unique=True))
    share, records = len(late) / len(load), sum(load[at] for at in late) / sum(load)
    assert share * valley_weight(load, share) <= records + 1e-9
    assert records <= share * peak_weight(load, share) + 1e-9


@given(LOADS, st.data(), st.floats(0.01, 0.9))
def test_with_the_valleys_weight_a_kept_level_is_a_kept_promise_wherever_late_seconds_fall(load, data, budget):
    assume(sum(load) > 0 and valley_weight(load, budget) > 0)
    late = data.draw(st.lists(st.sampled_from(range(len(load))), max_size=len(load), unique=True))
    if sum(load[at] for at in late) / sum(load) < budget * valley_weight(load, budget) - 1e-9:
        assert len(late) / len(load) <= budget + 1e-9


def produced(load, rate, batch_s=4.0, overhead_s=1.0):
    """A query in batches: latency of every record, and the account of the promise, `rate` records/s at each time.

    Args:
        load: (seconds,) records/s, evenly within each second.
        rate: (seconds,) records/s that are served in a batch which begins then.
    """
    begun = np.concatenate([[0.0], np.cumsum(load)])
    at = np.arange(len(begun), dtype=float)
    promise, account = Promise(10.0, 0.05, 1.0), Account()
    now, taken, latency, when = batch_s, 0.0, [], []
    while now < len(load):
        until = np.interp(now, at, begun)
        done = now + overhead_s + (until - taken) / rate[int(now)]
        numbers = np.arange(np.ceil(taken), np.ceil(until))
        if len(numbers):
            born = np.interp(numbers, begun, at)
            latency.append(done - born)
            when.append(born)
            account = account.add_batch(promise, 1e9 + done, float(done - born[0]), 1.0)
        taken, now = until, max(done, now + batch_s)
    return np.concatenate(latency), np.concatenate(when), account


def drawn(seed, late_in_peaks):
    """A load that swings five to one; the rate falls for a while where the load is high, or low, some of the time."""
    rng = np.random.default_rng(seed)
    seconds = 20_000
    load = np.round(60 * (1 + 0.67 * np.sin(np.arange(seconds) / 300)) * rng.lognormal(0, 0.1, seconds))
    slow = np.zeros(seconds, bool)
    high = load > np.quantile(load, 0.75) if late_in_peaks else load < np.quantile(load, 0.25)
    for start in rng.choice(np.flatnonzero(high), rng.integers(2, 25), replace=False):
        slow[start : start + rng.integers(5, 40)] = True
    return load, np.where(slow, load / rng.uniform(1.5, 4.0), 400.0).clip(1.0)


@pytest.mark.parametrize("seed", range(12))
def test_where_lateness_comes_with_load_who_keeps_the_path_keeps_the_promise(seed):
    """Simulated records: the level and limit of a budget are kept only where the account's share of late seconds is."""
    latency, born, account = produced(*drawn(seed, late_in_peaks=True))
    late = account.late_s / account.seconds
    assert late > 0
    weight = np.mean(latency > 10) / np.mean(np.isin(np.arange(20_000), born[latency > 10].astype(int)))
    assert weight > 0.9  # what is late is loaded at least as the mean is, up to what is not late of a late second
    for budget in (0.5 * late, 0.8 * late, 0.99 * late):  # promises that the account says are broken
        level = records_level(budget, 2.0)
        assert np.quantile(latency, level) > path_limit_ms(10.0, level, 4.0) / 1000


def test_where_lateness_falls_into_valleys_only_the_valleys_weight_is_safe():
    """Of the same promise the default level sees nothing: few records are late, though too many seconds are."""
    load, rate = drawn(1, late_in_peaks=False)
    latency, _, account = produced(load, rate)
    late = account.late_s / account.seconds
    budget = late / 1.2
    level = records_level(budget, 1e9)
    assert np.quantile(latency, level) < 10.0  # kept, by its records, and broken by its seconds
    safe = records_level(budget, 2.0, valley_weight(load, budget))
    assert np.quantile(latency, safe) > path_limit_ms(10.0, safe, 4.0) / 1000


@settings(max_examples=60)
@given(st.floats(0, 0.97), st.floats(0.1, 3), st.floats(0.5, 8), st.floats(0.001, 0.3))
def test_a_query_in_equilibrium_at_its_path_limit_has_no_late_second(load, overhead_s, trigger_s, budget):
    """Late records in every batch would be late seconds in every batch: the limit leaves room for the oldest."""
    model = micro_batch(load * 100, 100.0, overhead_s, trigger_s)
    level = records_level(budget, model.interval_s / 2)
    target_s = model.batch_s + model.interval_s  # what the oldest record takes
    assert 1000 * model.quantile_s(level) == pytest.approx(path_limit_ms(target_s, level, model.interval_s))
