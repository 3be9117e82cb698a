from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from configs.contract import Contract, Executors, Planning
from models.policy.planner import Observation, executors_for, needed_rps, plan

# 200 records/s per executor: 0.004 s each, batches of 2 s with 0.4 s of overhead.
PLANNING = Planning(target_utilisation=0.8, catch_up_s=15, batch_s=2, cooldown_s=4, scale_down_delay_s=8, max_step_up=2)
CONTRACT = Contract(job="j", executors=Executors(min=1, max=4), planning=PLANNING)
CALM = Observation(
    arrival_rps=100, lag_records=100, executors=1, target=1, tasks=8, overhead_s=0.4, per_record_s=0.004,
    since_change_s=100, recent_need=1, forecast_rps=None, forecast_note="no forecast yet",
)  # fmt: skip


def seen(**changes):
    return replace(CALM, **changes)


def test_flink_vector():
    # autoscaling.md F: 500/s, lag 2000, catch-up 2 s, utilisation 0.8, a capacity of 588.2/s each; our formula has
    # no restart term, so 2000/2 + 500/0.8 = 1625 instead of 1875: three executors instead of four.
    planning = Planning(target_utilisation=0.8, catch_up_s=2)
    assert needed_rps(500, 2000, planning) == pytest.approx(1625)
    assert needed_rps(500, 2000, planning) / 588.2 == pytest.approx(2.763, abs=1e-3)


@pytest.mark.parametrize(("rate", "executors"), [(0, 1), (160, 1), (161, 2), (320, 2), (420, 3), (430, 4), (10_000, 4)])
def test_reactive_scales_by_load(rate, executors):
    made = plan(seen(arrival_rps=rate, lag_records=0, target=executors, recent_need=executors), CONTRACT, "reactive")
    assert made.needed_observed == executors
    assert made.executors == executors


def test_a_forecast_raises_and_says_so():
    made = plan(seen(forecast_rps=300, forecast_note="m v2"), CONTRACT, "forecast")
    assert made.executors == 2
    assert made.codes == ["up", "forecast"]
    assert "m v2" in made.reason


def test_a_raise_that_observed_load_asks_for_is_not_the_forecasts():
    made = plan(seen(arrival_rps=300, forecast_rps=310), CONTRACT, "forecast")
    assert made.codes[:2] == ["up", "observed"]


def test_a_low_forecast_lowers_nothing():
    made = plan(seen(arrival_rps=300, target=2, executors=2, recent_need=2, forecast_rps=1.0), CONTRACT, "forecast")
    assert made.executors == 2


@pytest.mark.parametrize("broken", [None, float("nan"), float("inf")])
def test_without_a_usable_forecast_the_reactive_plan_is_made_and_named(broken):
    with_broken = plan(seen(arrival_rps=300, forecast_rps=broken), CONTRACT, "forecast")
    reactive = plan(seen(arrival_rps=300), CONTRACT, "reactive")
    assert with_broken.executors == reactive.executors == 2
    assert "no_forecast" in with_broken.codes


def test_a_late_forecast_is_named_late():
    made = plan(seen(forecast_note="late forecast: 40 s old, at most 12 s"), CONTRACT, "forecast")
    assert "late_forecast" in made.codes


def test_down_waits_for_the_delay_and_goes_one_at_a_time():
    held = plan(seen(target=4, executors=4, recent_need=4), CONTRACT, "reactive")
    assert held.executors == 4 and "delayed_down" in held.codes
    lowered = plan(seen(target=4, executors=4, recent_need=1), CONTRACT, "reactive")
    assert lowered.executors == 3 and lowered.codes[:2] == ["down", "observed"]


def test_nothing_is_taken_away_while_catching_up():
    made = plan(seen(target=4, executors=4, recent_need=1, lag_records=1500), CONTRACT, "reactive")
    assert made.executors == 4 and "catch_up" in made.codes


def test_cooldown_holds_a_raise():
    made = plan(seen(arrival_rps=600, since_change_s=1.0), CONTRACT, "reactive")
    assert made.executors == 1 and "cooldown" in made.codes


def test_the_ceiling_is_named_and_never_passed():
    made = plan(seen(arrival_rps=5000, tasks=2), CONTRACT, "reactive")
    assert made.executors == 2 and "ceiling" in made.codes


def test_bad_rate_holds():
    made = plan(seen(arrival_rps=float("nan"), target=3), CONTRACT, "forecast")
    assert made.executors == 3 and made.codes == ["hold"]


observations = st.builds(
    Observation,
    arrival_rps=st.floats(0, 1e5), lag_records=st.integers(0, 10**7), executors=st.integers(0, 9),
    target=st.integers(1, 4), tasks=st.integers(1, 64), overhead_s=st.floats(0, 3), per_record_s=st.floats(1e-4, 0.1),
    since_change_s=st.floats(0, 1e5), recent_need=st.integers(1, 4),
    forecast_rps=st.none() | st.floats(0, 1e6) | st.just(float("nan")), forecast_note=st.just("n"),
)  # fmt: skip


@given(observations, st.sampled_from(["forecast", "reactive", "static"]))
def test_every_plan_is_within_bounds_and_has_a_reason(observation, policy):
    made = plan(observation, CONTRACT, policy)
    assert 1 <= made.executors <= 4
    assert made.reason and made.codes


@given(observations)
def test_a_forecast_never_gives_fewer_executors_than_none(observation):
    with_forecast = plan(observation, CONTRACT, "forecast")
    without = plan(replace(observation, forecast_rps=None), CONTRACT, "forecast")
    assert with_forecast.executors >= without.executors


@given(observations, st.floats(0, 1e5))
def test_more_load_never_needs_fewer(observation, more):
    low, _ = executors_for(observation.arrival_rps, observation, CONTRACT)
    high, _ = executors_for(observation.arrival_rps + more, observation, CONTRACT)
    assert high >= low
