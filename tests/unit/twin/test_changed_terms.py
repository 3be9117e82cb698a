"""Which terms of two contracts differ: what is stated, what follows from it, and nothing that is only written so."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from configs.contract import Contract
from models.twin.contract.changed import changed_terms


def contract(**fields):
    return Contract.model_validate({"job": "orders", **fields})


def keys(before, after):
    return {one.key: (one.before, one.after, one.follows) for one in changed_terms(before, after)}


def test_what_follows_from_a_changed_promise_is_told_apart():
    found = keys(contract(latency_target_s=10), contract(latency_target_s=4))
    assert found.pop("latency_target_s") == (10.0, 4.0, False)
    assert found == {
        "planning.catch_up_s": (30.0, 12.0, True), "planning.cooldown_s": (3.0, 2.4, True),
    }  # fmt: skip
    stated = contract(latency_target_s=4, planning={"catch_up_s": 20})
    assert keys(contract(latency_target_s=10), stated)["planning.catch_up_s"] == (30.0, 20.0, False)


@pytest.mark.parametrize(
    ("before", "after", "key", "values"),
    [
        ({}, {"price_per_executor_hour": 0.5}, "price_per_executor_hour", (None, 0.5)),
        ({}, {"executors": {"max": 9}}, "executors.max", (4, 9)),
        ({"planning": {"timetable_rps": [1, 2]}}, {}, "planning.timetable_rps", ([1.0, 2.0], [])),
        ({}, {"configurations": {"usual": {"trigger": "1 second"}}}, "configurations.usual.trigger",
         (None, "1 second")),
        ({"backpressure": {"paths": [{"max_ms": 900}]}}, {"backpressure": {"paths": [{"max_ms": 800}]}},
         "backpressure.paths.0.max_ms", (900.0, 800.0)),
        ({}, {"backpressure": {"tables": {"sales": "/lake/a"}}}, "backpressure.tables.sales", (None, "/lake/a")),
    ],
)  # fmt: skip
def test_each_kind_of_term_is_told_by_its_key(before, after, key, values):
    assert keys(contract(**before), contract(**after))[key] == (*values, False)


def test_alerts_are_told_and_never_their_address():
    one, other = ({"webhook": f"https://hooks.example/{secret}"} for secret in ("T0P", "S3CRET"))
    assert keys(contract(), contract(alerts=one)) == {
        "alerts.webhook": (None, "an address", False), "alerts.repeat_s": (None, 3600.0, False),
    }  # fmt: skip
    assert keys(contract(alerts=one), contract(alerts={**other, "repeat_s": 60})) == {
        "alerts.webhook": ("an address", "another address", False), "alerts.repeat_s": (3600.0, 60.0, False),
    }  # fmt: skip
    assert keys(contract(alerts=one), contract()).keys() == {"alerts.webhook", "alerts.repeat_s"}
    assert not keys(contract(alerts=one), contract(alerts={**one, "repeat_s": 3600}))


def test_a_default_that_is_stated_is_no_change():
    assert changed_terms(contract(), contract(latency_target_s=5, planning={"lead_s": 10.0, "hold_s": 6.0})) == []


@given(*2 * [st.builds(contract, latency_target_s=st.floats(1, 99), error_budget=st.sampled_from([0.01, 0.05]))])
def test_the_way_back_differs_in_the_same_terms(one, other):
    there, back = keys(one, other), keys(other, one)
    assert {key: (b, a, f) for key, (a, b, f) in back.items()} == there and bool(there) == (one != other)
