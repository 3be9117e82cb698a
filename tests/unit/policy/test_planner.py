from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from configs.contract import Contract, Executors, Planning
from models.policy.core import carried, window
from models.policy.core.choice import Why, make_choice
from models.policy.live import plan
from models.policy.planners.planner import Planner
from models.policy.received.observation import Observation
from models.policy.received.outlook import Outlook
from models.policy.rules.fixed import Static

# 200 records/s per executor: 0.004 s each, batches of 2 s with 0.4 s of overhead.
PLANNING = Planning(target_utilisation=0.8, catch_up_s=15, batch_s=2, cooldown_s=4, scale_down_delay_s=8, max_step_up=2)
CONTRACT = Contract(job="j", executors=Executors(min=1, max=4), planning=PLANNING)
NOW = 1_800_000_000.0
CALM = Observation(
    now_s=NOW, since_s=1, job_s=NOW, scale=1, arrival_rps=100, lag_records=100, processed_rps=100, busy=0.5,
    in_batch=0.7, batch_s=1.0,
    executors=1, target=1, tasks=8, overhead_s=0.4, per_record_s=0.004, since_change_s=100,
    forecast_note="no forecast yet",
)  # fmt: skip
KINDS = {"forecast": Planner, "reactive": Planner, "static": Static}


def policy_of(name):
    return KINDS[name].of(name, CONTRACT)


def coming(rps):
    """A forecast that says one rate for the next 20 s."""
    return Outlook((20.0,), (0.9,), ((rps,),))


def seen(recent_need=None, forecast_rps=None, **changes):
    """An observation; `recent_need` executors were needed 4 s ago."""
    if recent_need is not None:
        memory = policy_of("reactive").fresh(1)
        memory = window.push_values(
            memory, "need", np.array([float(recent_need)]), NOW - 4, PLANNING.scale_down_delay_s
        )
        changes["carried"] = carried.dump(memory)
    if forecast_rps is not None:
        changes |= {"forecast_rps": forecast_rps, "ahead": coming(forecast_rps)}
    return replace(CALM, **changes)


def planned(observation, name, contract=CONTRACT):
    return plan.make_plan(observation, contract, policy_of(name))[1]


def executors_for(rps, observation):
    view = observation.to_view(CONTRACT)
    return view.capacity.executors_for(np.array([rps]), view.least, view.most)[0][0]


def test_before_a_batch_has_ended_the_text_says_that_lag_is_unknown_and_capacity_is_guessed():
    fresh = {"processed_rps": None, "busy": None, "in_batch": None, "batch_s": None}
    said = planned(seen(arrival_rps=46.0, lag_records=0, **fresh), "reactive").reason
    assert "46 rec/s, lag not known yet, by the contract's guesses need " in said
    # One that was started again has a lag of before, by the end offsets.
    assert "lag 700 need" in planned(seen(arrival_rps=46.0, lag_records=700, **fresh), "reactive").reason
    assert "lag 0 need" in planned(seen(arrival_rps=46.0, lag_records=0), "reactive").reason


def test_flink_vector():
    # autoscaling.md F: 500/s, lag 2000, catch-up 2 s, utilisation 0.8, a capacity of 588.2/s each; our formula has
    # no restart term, so 2000/2 + 500/0.8 = 1625 instead of 1875: three executors instead of four. The lag that a
    # batch in flight explains, 1.5 batches of 2 s, is no backlog and comes on top here.
    planning = Planning(target_utilisation=0.8, catch_up_s=2, batch_s=2, overhead_s=0)
    contract = Contract(job="j", executors=Executors(min=1, max=8), planning=planning)
    observation = seen(arrival_rps=500, lag_records=3500, overhead_s=0, per_record_s=1 / 588.2, tasks=64)
    _, made = plan.make_plan(observation, contract, Planner.of("reactive", contract))
    assert made.needed_observed == 3
    dearer = replace(observation, per_record_s=1 / (1625 / 3 - 0.1))  # 1625 is just more than three carry
    assert plan.make_plan(dearer, contract, Planner.of("reactive", contract))[1].needed_observed == 4


@pytest.mark.parametrize(("rate", "executors"), [(0, 1), (160, 1), (161, 2), (320, 2), (420, 3), (430, 4), (10_000, 4)])
def test_reactive_scales_by_load(rate, executors):
    made = planned(seen(arrival_rps=rate, lag_records=0, target=executors, recent_need=executors), "reactive")
    assert made.needed_observed == executors
    assert made.executors == executors


def test_a_forecast_raises_and_says_so():
    made = planned(seen(forecast_rps=300, forecast_note="m v2"), "forecast")
    assert made.executors == 2
    assert made.codes == ["up", "forecast"]
    assert "m v2" in made.reason


def test_a_raise_that_observed_load_asks_for_is_not_the_forecasts():
    made = planned(seen(arrival_rps=300, forecast_rps=310), "forecast")
    assert made.codes[:2] == ["up", "observed"]


def test_a_low_forecast_lowers_nothing():
    made = planned(seen(arrival_rps=300, target=2, executors=2, recent_need=2, forecast_rps=1.0), "forecast")
    assert made.executors == 2


@pytest.mark.parametrize("broken", [None, float("nan"), float("inf")])
def test_without_a_usable_forecast_the_reactive_plan_is_made_and_named(broken):
    with_broken = planned(seen(arrival_rps=300, forecast_rps=broken), "forecast")
    reactive = planned(seen(arrival_rps=300), "reactive")
    assert with_broken.executors == reactive.executors == 2
    assert "no_forecast" in with_broken.codes


def test_a_late_forecast_is_named_late():
    made = planned(seen(forecast_note="late forecast: 40 s old, at most 12 s"), "forecast")
    assert "late_forecast" in made.codes


def test_down_waits_for_the_delay_and_goes_one_at_a_time():
    held = planned(seen(target=4, executors=4, recent_need=4), "reactive")
    assert held.executors == 4 and "delayed_down" in held.codes
    lowered = planned(seen(target=4, executors=4, recent_need=1), "reactive")
    assert lowered.executors == 3 and lowered.codes[:2] == ["down", "observed"]


def test_nothing_is_taken_away_while_catching_up():
    made = planned(seen(target=4, executors=4, recent_need=1, lag_records=1500), "reactive")
    assert made.executors == 4 and "catch_up" in made.codes


def test_cooldown_holds_a_raise():
    made = planned(seen(arrival_rps=600, since_change_s=1.0), "reactive")
    assert made.executors == 1 and "cooldown" in made.codes


def test_the_ceiling_is_named_and_never_passed():
    made = planned(seen(arrival_rps=5000, tasks=2), "reactive")
    assert made.executors == 2 and "ceiling" in made.codes


def test_bad_rate_holds():
    made = planned(seen(arrival_rps=float("nan"), target=3), "forecast")
    assert made.executors == 3 and made.codes == ["hold", "no_forecast", "not_a_number"]
    assert made.needed_observed is None


def test_static_is_what_the_contract_says():
    made = planned(seen(), "static")
    assert (made.executors, made.codes) == (3, ["up"])
    assert planned(seen(target=3), "static").codes == ["hold"]


class Wild:
    """A policy that answers one number, whatever it sees."""

    name = "hpa"

    def __init__(self, answer, why=0):
        self.answer, self.why = answer, why

    def fresh(self, runs):
        return {}

    def decide(self, memory, view):
        return memory, make_choice(np.full(view.runs, self.answer), np.full(view.runs, self.why))


@pytest.mark.parametrize(
    ("answer", "executors", "code"),
    [(float("nan"), 2, "not_a_number"), (float("inf"), 2, "not_a_number"), (9, 4, "clamped"), (-3, 1, "clamped")],
)
def test_an_answer_that_cannot_be_is_held_or_cut_and_says_so(answer, executors, code):
    _, made = plan.make_plan(seen(target=2), CONTRACT, Wild(answer))
    assert made.executors == executors and code in made.codes
    assert "no number" in made.reason or "out of 1 to 4" in made.reason


def test_what_a_policy_was_not_trained_on_is_told():
    _, made = plan.make_plan(seen(target=2), CONTRACT, Wild(3, int(Why.UNFAMILIAR)))
    assert made.codes == ["up", "observed", "unfamiliar"] and "trained" in made.reason


def test_capacity_that_grows_less_than_executors_needs_more_of_them():
    less = CONTRACT.model_copy(update={"planning": PLANNING.model_copy(update={"scaling": 0.7})})
    assert planned(seen(arrival_rps=300), "reactive").needed_observed == 2
    assert planned(seen(arrival_rps=300), "reactive", less).needed_observed == 3


rates = st.floats(0, 1e6) | st.just(float("nan"))
observations = st.builds(
    seen,
    arrival_rps=st.floats(0, 1e5), lag_records=st.integers(0, 10**7), executors=st.integers(0, 9),
    target=st.integers(1, 4), tasks=st.integers(1, 64), overhead_s=st.floats(0, 3), per_record_s=st.floats(1e-4, 0.1),
    since_change_s=st.floats(0, 1e5), recent_need=st.integers(1, 4), forecast_rps=st.none() | rates,
    forecast_note=st.just("n"),
)  # fmt: skip


@given(observations, st.sampled_from(["forecast", "reactive", "static"]))
def test_every_plan_is_within_bounds_and_has_a_reason(observation, policy):
    made = planned(observation, policy)
    assert 1 <= made.executors <= 4
    assert made.reason and made.codes


@given(observations)
def test_a_forecast_never_gives_fewer_executors_than_none(observation):
    with_forecast = planned(observation, "forecast")
    without = planned(replace(observation, ahead=None, forecast_rps=None), "forecast")
    assert with_forecast.executors >= without.executors


@given(observations, st.floats(0, 1e5))
def test_more_load_never_needs_fewer(observation, more):
    low = executors_for(observation.arrival_rps, observation)
    high = executors_for(observation.arrival_rps + more, observation)
    assert high >= low
