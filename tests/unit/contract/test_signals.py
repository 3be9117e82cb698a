import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.contract.declared import build, plain
from models.contract.signals import OperatorReading, PlannedOperator, SharedPlan, Signals, clean_signals


def test_what_no_sensor_can_mean_is_unread():
    read = Signals(
        7, live_rps=math.nan, live_high_rps=math.inf, replay_backlog=-1.0, latency_ms={"p": math.nan, "q": 3},
        operators={"map": OperatorReading(math.inf, 2.0, math.nan, 1.0)}, lag_ms=-5.0, state_bytes=1e300,
        busy={"cpu": 0.5, "net": math.nan}, tenants={"a": -1.0, "b": 2.0}, executors=0,
    )  # fmt: skip
    assert clean_signals(read) == Signals(
        7.0, latency_ms={"q": 3.0}, operators={"map": OperatorReading(None, 2.0, None, 1.0)}, busy={"cpu": 0.5},
        tenants={"b": 2.0},
    )  # fmt: skip


def test_a_latency_without_end_is_the_longest():
    assert clean_signals(Signals(0.0, latency_ms={"p": math.inf})).latency_ms["p"] == 1e18


@pytest.mark.parametrize("time_s", [math.nan, math.inf, -math.inf])
def test_signals_need_a_time(time_s):
    with pytest.raises(ValueError, match=r"time_s=.* Is the clock set"):
        clean_signals(Signals(time_s))


ANY = st.none() | st.floats()
READ = st.builds(
    Signals, st.floats(-1e10, 1e10), ANY, ANY, ANY, ANY, st.dictionaries(st.text(min_size=1, max_size=3), st.floats()),
    st.dictionaries(st.text(min_size=1, max_size=3), st.builds(OperatorReading, ANY, ANY, ANY, ANY)), ANY, ANY, ANY,
    st.dictionaries(st.sampled_from(["cpu", "net"]), st.floats()), ANY, ANY, ANY,
    st.dictionaries(st.text(min_size=1, max_size=3), st.floats()), st.none() | st.integers(-1, 9), st.booleans(),
)  # fmt: skip


@settings(max_examples=40)
@given(READ)
def test_clean_signals_are_kept_by_json_and_stay_as_they_are(signals):
    seen = clean_signals(signals)
    assert clean_signals(seen) == seen and build(Signals, plain(seen)) == seen


def test_a_plan_has_operators_with_names_of_their_own():
    with pytest.raises(ValueError, match="at least one"):
        SharedPlan(())
    with pytest.raises(ValueError, match="two are called 'a'"):
        SharedPlan((PlannedOperator("a", 1.0), PlannedOperator("a", 2.0)))
    with pytest.raises(ValueError, match="prior_rps=0"):
        build(SharedPlan, {"operators": [{"name": "a", "prior_rps": 0}]})
