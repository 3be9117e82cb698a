"""What is said when the error budget goes too fast."""

from dataclasses import replace

import numpy as np
import pytest

from configs.contract import Contract, Executors, Planning
from models.policy.core.budget import Account, Promise
from models.policy.core.capacity import Capacity, speed_table
from models.policy.live.burn import describe_burn
from models.policy.live.plan import make_plan
from models.policy.planners.planner import Planner
from models.policy.received.observation import Observation

# One executor of one core does 0.8 / 0.01 = 80 records/s: two do 160.
CONTRACT = Contract(
    job="orders", executors=Executors(min=1, max=4), error_budget=0.05,
    planning=Planning(batch_s=2.0, overhead_s=0.4, per_record_s=0.01),
)  # fmt: skip
SEEN = Observation(
    now_s=1e9, since_s=1.0, job_s=18 * 3600.0, scale=60.0, arrival_rps=100.0, lag_records=300, processed_rps=None,
    busy=None, in_batch=None, batch_s=None, executors=2, target=2, tasks=8, overhead_s=0.4, per_record_s=0.01,
    since_change_s=9.2, lead_s=14.0, burn=(12.3, 20.0), carried=Planner.of("forecast", CONTRACT).fresh(1),
)  # fmt: skip


def said(contract=CONTRACT, decided=4, **changes):
    seen = replace(SEEN, **changes)
    capacity = Capacity(speed_table(4, 1, seen.tasks)[None], np.array([0.4]), np.array([seen.per_record_s]), 2.0)
    return describe_burn(seen, contract, capacity, decided)


@pytest.mark.parametrize("burn", [None, (5.9, 20.0), (20.0, 5.9), (0.0, 0.0)])
def test_nothing_is_said_unless_both_windows_burn_fast(burn):
    assert said(burn=burn) is None


def test_half_of_the_seconds_late_is_fast_for_any_promise():
    loose = CONTRACT.model_copy(update={"error_budget": 0.2})  # of which at most 5 times the budget can be late
    assert said(loose, burn=(2.4, 3.0)) is None and said(loose, burn=(2.5, 3.0)).startswith("the budget goes 2 times")


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"target": 4, "unmet": 4}, "2 executors are there, and the cluster has no room for more"),
        ({"unmet": 4}, "2 executors are there, and the cluster has no room for more"),
        ({"target": 4, "missing_s": 2.4}, "for 2 s fewer executors run than are asked for, 2 of 4"),
        ({"target": 4}, "2 executors asked for 9 s ago have not come"),  # as older logs have it
        ({"target": 3, "arrival_rps": 900.0}, "1 executor asked for 9 s ago has not come"),
        ({"arrival_rps": 170.0}, "170 rec/s arrive, 2 executors sustain 160"),
        ({"per_record_s": 0.0126}, "a record takes 1.3 times as long as the contract guesses"),
        ({}, "300 records wait"),
        ({"executors": 4, "target": 4}, "300 records wait, and there may be no more executors"),
        ({"executors": 4, "target": 4, "decided": 1}, "300 records wait"),
    ],
)  # fmt: skip
def test_the_first_cause_that_holds_is_told(changes, cause):
    assert said(**changes) == f"the budget goes 12 times as fast as allowed: {cause}"


def test_a_decision_says_it_for_programs_too_and_replays():
    seen = replace(SEEN, carried={})
    _, made = make_plan(seen, CONTRACT, Planner.of("forecast", CONTRACT))
    again = Observation.from_inputs(seen.inputs())
    assert again == seen and "burn" in made.codes and "the budget goes 12 times" in made.reason
    older = {name: value for name, value in seen.inputs().items() if name != "burn"}
    _, before = make_plan(Observation.from_inputs(older), CONTRACT, Planner.of("forecast", CONTRACT))
    assert "burn" not in before.codes


def test_it_is_told_long_before_half_of_the_budget_is_gone():
    """A week with 1 % late may have 6,048 late seconds; ten late minutes after a quiet hour are told as they come."""
    promise, account, told = Promise(5.0, 0.01, 7.0), Account(), None
    for second in range(1, 3600 + 600, 2):
        account = account.add_batch(promise, float(second), 2.0 if second < 3600 else 9.0, 1.0)
        burn = account.burn(promise.budget)
        if told is None and burn is not None and min(burn) >= 6.0:
            told = account.late_s
    assert told is not None and told < 0.1 * promise.budget * 7 * 86_400
