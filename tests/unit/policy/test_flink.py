import numpy as np
import pytest

from models.policy.core.choice import Why
from models.policy.core.policy import decide
from models.policy.rules.flink import Flink, capacity_needed
from tests.fakes.views import a_view, driven

MINUTE = 60.0


def looks(minutes, **seen):
    """One look a minute; a field may be a function of the minute."""
    for minute in range(minutes):
        at = {name: value(minute) if callable(value) else value for name, value in seen.items()}
        yield a_view(now_s=minute * MINUTE, since_s=MINUTE, **at)


def asked(policy, minutes, **seen):
    return driven(policy, list(looks(minutes, **seen)))[:, 0]


def test_the_vector_of_the_operator():
    # BacklogBasedScalingTest (facts only): 500/s, busy 850 ms/s, lag 2000, catch-up 2 s, restart 1 s, 0.8, p = 1.
    needed = capacity_needed(np.array([500.0]), np.array([2000.0]), 0.8, 2.0, 1.0)
    assert needed[0] == 1875
    assert np.ceil(1 * needed / (500 / 0.85))[0] == 4
    policy = Flink("flink", 0.8, boundary=0.1, catch_up_s=2.0, restart_s=1.0, window_s=120.0, stabilisation_s=0.0)
    load = {"arrival_rps": 500, "processed_rps": 500, "busy": 0.85, "lag_records": 2000, "executors": 1}
    assert asked(policy, 4, **load)[2] == 4


def test_no_catch_up_leaves_the_lag_out_and_no_utilisation_needs_infinity():
    rate, lag = np.array([500.0]), np.array([2000.0])
    assert capacity_needed(rate, lag, 0.8, 0.0, 1.0)[0] == 625
    assert np.isinf(capacity_needed(rate, lag, 0.0, 2.0, 1.0)[0])


BUSY = {"arrival_rps": 800, "processed_rps": 800, "busy": 1.0, "lag_records": 6000, "executors": 4}


def test_up_when_the_window_is_full_and_not_before():
    # One executor does 200/s; 800/0.7 + 800 * 300/1800 + 6000/1800 = 1279.5 need 7.
    targets = asked(Flink("flink"), 17, **BUSY)
    assert (targets[:15] == 4).all() and targets[15] == 7


def test_after_a_change_it_stabilises_and_fills_a_new_window():
    looks_at = {**BUSY, "arrival_rps": lambda m: 800 if m < 16 else 2000}
    targets = asked(Flink("flink"), 40, **looks_at)
    assert targets[16] == targets[34] == 7 and targets[36] > 7


@pytest.mark.parametrize("busy", [0.45, 0.95])
def test_within_the_band_nothing_changes(busy):
    seen = {"arrival_rps": 800 * busy, "processed_rps": 800 * busy, "busy": busy, "lag_records": 0, "executors": 4}
    assert (asked(Flink("flink"), 90, **seen) == 4).all()


def test_down_waits_an_hour_and_takes_the_highest_of_it():
    # 20 executors of 200/s; 25 % of the use need 1000/0.7 + 1000/6 → 8, for a while 30 % need 10.
    rate = lambda m: 1200 if 20 <= m < 50 else 1000  # noqa: E731
    seen = {"arrival_rps": rate, "processed_rps": rate, "busy": lambda m: rate(m) / 4000, "lag_records": 0}
    targets = asked(Flink("flink"), 100, executors=20, **seen)
    assert (targets[:75] == 20).all() and targets[76] == 10


def test_one_decrease_takes_at_most_six_tenths():
    seen = {"arrival_rps": 10, "processed_rps": 10, "busy": 0.0025, "lag_records": 0, "executors": 20}
    assert asked(Flink("flink"), 90, **seen)[-1] == 8


def test_nothing_is_taken_away_with_five_minutes_of_lag():
    seen = {"arrival_rps": 400, "processed_rps": 400, "busy": 0.1, "lag_records": 400 * 301, "executors": 20}
    assert (asked(Flink("flink"), 120, **seen) == 20).all()
    assert asked(Flink("flink"), 120, **{**seen, "lag_records": 0})[-1] < 20


def test_what_catching_up_shows_counts_where_busy_time_promises_more():
    # Half busy at 400/s promises 800/s; but with lag no more than 400/s are done, so twice as many are needed.
    seen = {"arrival_rps": 400, "processed_rps": 400, "busy": 0.5, "executors": 4}
    known = asked(Flink("flink"), 17, **seen, lag_records=400 * 31)[-1]
    # 400/0.7 + 400/6 + 12400/1800 = 645 of 100/s each
    assert known == 7


def test_no_load_is_infinitely_fast():
    seen = {"arrival_rps": 0, "processed_rps": 0, "busy": 0, "lag_records": 0, "executors": 10}
    assert asked(Flink("flink"), 90, **seen)[-1] == 4


def test_without_measurements_the_target_stays_and_a_wait_is_told():
    assert (asked(Flink("flink"), 30, arrival_rps=np.nan, processed_rps=np.nan, busy=np.nan) == 4).all()
    policy = Flink("flink", window_s=60.0, stabilisation_s=0.0)
    memory = policy.fresh(1)
    for view in looks(3, arrival_rps=10, processed_rps=10, busy=0.01, lag_records=0, executors=20):
        memory, choice = decide(policy, memory, view)
    assert choice.why[0] & Why.DELAYED_DOWN
