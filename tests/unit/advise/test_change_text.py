"""A change of a contract in words, and beside each other what it comes to."""

import numpy as np

from configs.contract import Contract
from models.twin.contract.changed import changed_terms
from models.twin.contract.tried import ContractOutcome
from pipelines.advise.change_text import format_change, format_terms


def contract(**fields):
    return Contract.model_validate({"job": "orders", **fields})


def outcome(late, hours, **fields):
    return ContractOutcome(contract(**fields), np.array(late), 3600 * np.array(hours), 3, 43_200)


def test_terms_say_what_they_are_and_which_way_they_went():
    before = contract(latency_target_s=10, executors={"max": 6}, planning={"overhead_s": 0.5})
    after = contract(latency_target_s=5, executors={"max": 8}, price_per_executor_hour=0.04)
    first, *lines, last = format_terms("orders", "old.yaml", changed_terms(before, after)).splitlines()
    assert first == "orders: 4 terms differ from old.yaml"
    assert lines == [
        "  latency_target_s: 10 → 5 (the latency target, s: a stricter promise)",
        "  executors.max: 6 → 8 (the most executors: a higher ceiling)",
        "  price_per_executor_hour: none → 0.04 (the price of an executor-hour)",
        "  planning.overhead_s: 0.5 → 0.6",
    ]
    assert last == "  from that follow planning.catch_up_s 30 → 15"
    assert format_terms("orders", "x", changed_terms(after, before)[:1]).startswith("orders: 1 term differs from x\n")


def test_cost_is_told_by_the_day_and_by_future():
    before = outcome([0.01, 0.03], [10.0, 12.0], error_budget=0.02, price_per_executor_hour=0.5)
    after = outcome([0.04, 0.07], [12.0, 13.0], error_budget=0.05)
    text = format_change(before, after)
    said = [" ".join(line.split()) for line in text.splitlines()]
    assert said == [
        "by its twin, over 12.0 hours of its load, in the same 2 futures for both:",
        "before after change, by future",
        "late seconds 2.00 % 5.50 % +3.00 to +4.00 points",
        "of at most 2.00 %: kept 5.00 %: broken",
        "executor-hours a day 22.00 25.00 +2.00 to +4.00",
        "most executors asked for 3 3",
        "price a day 11.00 –",
    ]


def test_what_the_twin_does_not_serve_is_said():
    one, other = outcome([0.0], [1.0]), outcome([0.0], [1.0], backpressure={}, configurations={"a": {}})
    text = format_change(one, other)
    assert "(backpressure)" in text and "(configurations)" in text and "price" not in text
