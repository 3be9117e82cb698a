"""The lead time that is learned: formulas by hand, changes of the cluster, starts that never came."""

import json
import math
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import stdtrit

from models.policy.core.lead_time import MOST_S, LeadTime, Regression, StartUp, learn, predict

ONE = np.array([1.0, 0.0, 0.0])


def learned(seconds, prior_s=10.0, **how):
    lead = LeadTime.guess(prior_s)
    for each in seconds:
        lead = lead.learn(StartUp(float(each), **how))
    return lead


def drawn(median, count, chance, spread=0.15):
    return median * np.exp(spread * chance.standard_normal(count))


def test_one_raise_moves_the_belief_as_computed_by_hand():
    (belief,) = learn([Regression.guess(math.e, 0.0, 1.0)], ONE, [2.0], [1.0])
    # precision 1 + 1, line (1 * 1 + 1 * 2) / 2, shape 3 + 1/2, rate 2 * 0.04 + (2 - 1) * (2 - 1.5) / 2
    assert belief.weight[0][0] == 2 and belief.line[0] == pytest.approx(1.5)
    assert (belief.shape, belief.rate) == (3.5, pytest.approx(0.33))
    assert predict([belief], ONE)[0] == pytest.approx((7.0, 1.5, math.sqrt(0.33 / 3.5 * 1.5)))


def test_before_any_raise_the_contract_counts():
    lead, scale = LeadTime.guess(14.0), math.sqrt(0.08 / 3 * (1 + 1 / 3))
    assert lead.quantile_s(0.5) == pytest.approx(14.0)
    assert lead.quantile_s(0.9) == pytest.approx(14.0 * math.exp(scale * stdtrit(6, 0.9)))


def test_many_equal_clusters_are_told_as_they_are():
    chance = np.random.default_rng(1)
    lead = learned(drawn(6.0, 40, chance))
    assert lead.quantile_s(0.5) == pytest.approx(6.0, rel=0.08)
    assert lead.quantile_s(0.9) == pytest.approx(6.0 * math.exp(0.15 * 1.2816), rel=0.15)


def test_eight_raises_after_a_change_the_new_lead_is_known():
    errors = []
    for seed in range(40):
        chance = np.random.default_rng(seed)
        before, after = (10.0, 60.0) if seed % 2 else (60.0, 10.0)
        lead = learned([*drawn(before, 30, chance), *drawn(after, 8, chance)])
        truth = after * math.exp(0.15 * 1.2816)
        errors.append((abs(lead.quantile_s(0.5) / after - 1), abs(lead.quantile_s(0.9) / truth - 1)))
    median, tail = np.quantile(errors, 0.95, axis=0)
    assert median <= 0.2 and tail <= 0.3


def test_one_accident_is_forgotten_after_the_next_raises():
    chance = np.random.default_rng(3)
    usual = drawn(10.0, 20, chance)
    calm, shaken, changed = learned(usual), learned([*usual, 120.0]), learned([*usual, 120.0, 110.0])
    assert shaken.quantile_s(0.9) < 1.5 * calm.quantile_s(0.9) < 0.2 * changed.quantile_s(0.9)  # two are a change
    after = learned([*usual, 120.0, *drawn(10.0, 3, chance)])
    assert after.quantile_s(0.9) == pytest.approx(calm.quantile_s(0.9), rel=0.3)


def test_starts_that_never_came_are_taken_for_longer_than_they_were_waited_for():
    usual = drawn(10.0, 12, np.random.default_rng(4))
    lead = learned(usual)
    for _ in range(3):
        lead = lead.learn(StartUp(60.0, censored=True))
    assert 60 < lead.quantile_s(0.5) < 130
    # One that was given up early tells nothing new.
    early = learned(usual).learn(StartUp(2.0, censored=True))
    assert early.quantile_s(0.5) == pytest.approx(learned(usual).quantile_s(0.5), rel=0.02)


def test_raises_of_several_executors_and_of_busy_jobs_have_a_lead_of_their_own():
    chance, lead = np.random.default_rng(5), LeadTime.guess(10.0)
    for _ in range(60):
        executors, busy = int(chance.integers(1, 5)), float(chance.integers(0, 2))
        seconds = 8.0 * executors**0.5 * (1.5 if busy else 1.0) * math.exp(0.1 * chance.standard_normal())
        lead = lead.learn(StartUp(seconds, executors, busy))
    assert lead.quantile_s(0.5, 1, 0.0) == pytest.approx(8.0, rel=0.1)
    assert lead.quantile_s(0.5, 4, 0.0) == pytest.approx(16.0, rel=0.1)
    assert lead.quantile_s(0.5, 4, 1.0) == pytest.approx(24.0, rel=0.1)


SECONDS = st.floats(0, 1e7) | st.just(math.inf)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(SECONDS, st.integers(0, 500), st.floats(-1, 2), st.booleans()), max_size=12), SECONDS)
def test_whatever_comes_quantiles_are_ordered_bounded_and_survive_as_json(starts, prior_s):
    lead = LeadTime.guess(prior_s)
    for start in starts:
        lead = lead.learn(StartUp(*start))
    assert LeadTime.from_json_values(json.loads(json.dumps(asdict(lead)))) == lead
    values = [lead.quantile_s(level, executors) for executors in (1, 7) for level in (0.05, 0.5, 0.9, 0.99)]
    assert all(0 < value <= MOST_S * (1 + 1e-9) for value in values)
    assert values[:4] == sorted(values[:4]) and values[4:] == sorted(values[4:])
    assert sum(likely for likely, _ in lead.hypotheses) == pytest.approx(1) and lead.starts == len(starts)
