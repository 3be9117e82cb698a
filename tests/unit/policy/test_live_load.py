"""What live records a replay has to expect: steady in noise, quick where the load has risen, and as forecast."""

import pytest

from configs.backpressure import Backpressure
from configs.contract import Contract
from models.contract.promised.derive import SustainedRates, derive_terms
from models.contract.promised.text import describe_terms
from models.policy.core.batch_time import BatchTime
from models.policy.received.observation import Observation
from models.policy.received.outlook import Outlook
from models.policy.replays.control import decide_rate
from models.policy.replays.kept import ReplayControl, with_progress
from models.policy.replays.live_load import Arrived, highest_ahead, highest_within
from models.policy.replays.recomputed import recompute_rate


def after(*rates):
    arrived = Arrived()
    for rate in rates:
        arrived = arrived.then(rate)
    return arrived


def test_noise_is_evened_out_over_an_interval():
    arrived = after(71.0, 79.0, 75.0)
    assert arrived == (75.0, 3)
    assert arrived.steady_rps(84.9) == 75.0  # two deviations of a mean of three seconds are 10
    assert arrived.steady_rps(60.0) == 75.0


def test_more_than_noise_above_the_mean_counts_at_once():
    assert after(71.0, 79.0, 75.0).steady_rps(85.1) == 85.1
    assert after(0.0, 0.0).steady_rps(0.1) == 0.1
    assert Arrived().steady_rps(40.0) == 40.0


@pytest.mark.parametrize(("within_s", "most"), [(0.0, 9.0), (10.0, 9.0), (11.0, 30.0), (100.0, 30.0)])
def test_the_most_of_the_next_seconds_is_that_of_the_steps_they_reach_into(within_s, most):
    ahead = Outlook(levels=(0.5, 0.9), offsets_s=(10.0, 20.0, 30.0), rps=((5.0, 9.0), (20.0, 30.0), (1.0, 2.0)))
    assert highest_ahead(ahead) == [9.0, 30.0, 2.0]
    assert highest_within(ahead, within_s) == most


def test_without_a_forecast_nothing_is_expected():
    assert highest_ahead(None) == [] and highest_within(None, 10.0) is None


def stating(rule):
    return Contract(job="a", backpressure=Backpressure() if rule is None else Backpressure(admit_by=rule))


@pytest.mark.parametrize(("rule", "is_by_forecast"), [(None, True), ("forecast", True), ("arrivals", False)])
def test_the_rule_is_the_contracts_choice_and_one_that_is_left_out_changes_no_contract(rule, is_by_forecast):
    assert stating(rule).admits_by_forecast is is_by_forecast and Contract(job="a").admits_by_forecast
    assert ("admit_by" in stating(rule).text) is (rule is not None)
    rates = SustainedRates(100.0, 400.0)
    assert derive_terms(stating(rule), rates).hash == derive_terms(stating(None), rates).hash
    said = "beside live records as forecast" if is_by_forecast else "as they come, whatever is forecast"
    assert said in "\n".join(describe_terms(stating(rule), rates, derive_terms(stating(rule), rates)))


def test_by_the_papers_rule_alone_a_replay_begins_beside_what_comes_whatever_is_forecast():
    ahead = Outlook(levels=(0.5, 0.9), offsets_s=(10.0, 20.0), rps=((100.0, 120.0), (5.0, 6.0)))
    seen = Observation(
        now_s=1e9, since_s=1.0, job_s=1e9, scale=1.0, arrival_rps=50.0, lag_records=0, processed_rps=None, busy=None,
        in_batch=None, batch_s=None, executors=1, target=1, tasks=8, overhead_s=0.5, per_record_s=0.005,
        since_change_s=99.0, ahead=ahead,
    )  # fmt: skip
    told = {"id": "r", "state": "waiting", "records": 9_999, "done": 0, "wall_time": 1e9}
    found = {}
    for rule in ("forecast", "arrivals"):
        control = with_progress(ReplayControl(), told)
        _, rate = decide_rate(control, seen, stating(rule), BatchTime.guess(0.5, 0.005), 0.002, 1, 1, None)
        assert recompute_rate(rate.inputs) == rate.rps
        found[rule] = rate.rps, rate.inputs["signals"].get("live_high_rps")
    # By the forecast a much calmer time comes, for which one that has not begun waits.
    assert found["forecast"] == (0.0, 120.0) and found["arrivals"][0] > 40 and found["arrivals"][1] is None
