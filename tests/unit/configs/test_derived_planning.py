"""What a contract does not state of its planning follows from its promise and its lead time."""

import pickle

import pytest

from configs.contract import Contract, Executors, Planning


def test_the_stated_default_contract_plans_as_it_always_did():
    plan = Contract(job="orders").planning
    assert (plan.quantile, plan.hold_s, plan.scale_down_delay_s, plan.cooldown_s, plan.catch_up_s) == (
        0.9, 6.0, 8.0, 3.0, 15.0,
    )  # fmt: skip


def test_a_slow_cluster_and_a_loose_promise_are_planned_for():
    plan = Contract(job="orders", latency_target_s=60.0, error_budget=0.04, planning=Planning(lead_s=600.0)).planning
    assert plan.quantile == pytest.approx(0.8) and plan.hold_s == 360.0 and plan.scale_down_delay_s == 480.0
    assert plan.catch_up_s == 180.0 and plan.cooldown_s == 3.0


def test_a_short_target_needs_no_long_pause_and_nothing_is_ever_zero():
    plan = Contract(job="orders", latency_target_s=2.0, error_budget=0.0, planning=Planning(lead_s=0.0)).planning
    assert plan.cooldown_s == pytest.approx(1.2) and plan.hold_s == plan.scale_down_delay_s == 1.0
    assert plan.quantile < 1.0


def test_what_is_stated_is_kept_and_what_was_derived_is_read_again_as_it_was():
    made = Contract(job="orders", executors=Executors(max=9), planning=Planning(lead_s=60.0, hold_s=5.0, quantile=0.5))
    assert made.planning.hold_s == 5.0 and made.planning.quantile == 0.5 and made.planning.scale_down_delay_s == 48.0
    again = Contract.model_validate_json(made.text)
    assert again.hash == made.hash and again.planning.hold_s == 5.0 and again.planning.scale_down_delay_s == 48.0


def test_a_lead_time_that_was_learned_moves_none_of_it():
    """Peaks are learned for one hold: it must not follow the lead time from raise to raise."""
    made = Contract(job="orders").planned_for(100.0)
    assert made.planning.lead_s == 100.0 and made.planning.hold_s == 6.0 and made.planning.scale_down_delay_s == 8.0


def test_how_long_an_executor_is_kept_goes_with_the_lead_time_unless_it_is_stated():
    """With starts three times as slow as the contract guessed, it was given back before it could be of use."""
    derives = Contract(job="orders", planning=Planning(lead_s=20.0))
    states = Contract(job="orders", planning=Planning(lead_s=20.0, scale_down_delay_s=5.0))
    assert (derives.planning.scale_down_delay_s, derives.delay_for(40.0), derives.delay_for(0.1)) == (16.0, 32.0, 1.0)
    assert states.delay_for(40.0) == 5.0
    assert derives.model_copy(update={"error_budget": 0.1}).delay_for(40.0) == 32.0
    edited = derives.planning.model_copy(update={"scale_down_delay_s": 7.0})
    assert derives.model_copy(update={"planning": edited}).delay_for(40.0) == 7.0
    assert Contract.model_validate_json(derives.text).delay_for(40.0) == 16.0, "a text holds all values as stated"
    assert derives.planned_for(40.0, None, 32.0).planning.scale_down_delay_s == 32.0
    assert "delay_stated" not in derives.text and pickle.loads(pickle.dumps(derives)).delay_for(40.0) == 32.0
