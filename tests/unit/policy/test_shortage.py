"""What is said when the most executors are too few."""

from dataclasses import replace

import numpy as np
import pytest

from configs.contract import Contract, Executors, Planning
from models.policy.core.capacity import Capacity, speed_table
from models.policy.live.plan import make_plan
from models.policy.live.shortage import describe_shortage, find_shortage
from models.policy.planners.planner import Planner
from models.policy.received.observation import Observation
from models.policy.received.outlook import Outlook

# In batches of half the latency target, 2 s, one executor of one core does 0.8 / 0.01 = 80 records/s: four do 320.
CONTRACT = Contract(
    job="orders", latency_target_s=4.0, executors=Executors(min=1, max=4), planning=Planning(batch_s=1.5)
)
SEEN = Observation(
    now_s=1e9, since_s=1.0, job_s=18 * 3600.0, scale=60.0, arrival_rps=100.0, lag_records=0, processed_rps=None,
    busy=None, in_batch=None, batch_s=None, executors=2, target=2, tasks=8, overhead_s=0.4, per_record_s=0.01,
    since_change_s=100.0, lead_s=14.0, carried=Planner.of("forecast", CONTRACT).fresh(1),
)  # fmt: skip
AHEAD = Outlook((5.0, 10.0, 15.0), (0.1, 0.5, 0.9), ((1.0, 310.0, 500.0), (1.0, 330.0, 500.0), (1.0, 380.0, 900.0)))


def found(contract=CONTRACT, **changes):
    seen = replace(SEEN, **changes)
    capacity = Capacity(speed_table(4, 1, seen.tasks)[None], np.array([0.4]), np.array([0.01]), contract.batch_s)
    shortage = find_shortage(seen, contract, capacity)
    return shortage and describe_shortage(shortage, seen)


def test_what_the_most_executors_sustain_is_no_shortage():
    assert found() is None and found(arrival_rps=320.0) is None
    assert found(ahead=replace(AHEAD, rps=((1.0, 320.0, 900.0),) * 3)) is None  # the median counts


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"arrival_rps": 330.0}, "320 rec/s; 330 arrive: 8 needed"),
        ({"ahead": AHEAD}, "320 rec/s; 380 come, too many by 18:10: 8 needed"),
        ({"ahead": AHEAD, "tasks": 5}, "200 rec/s; 380 come, too many by 18:05: 5 needed"),
        ({"arrival_rps": 1e3}, "320 rec/s; 1000 arrive: 8 tasks are too few for any number of executors"),
    ],
)  # fmt: skip
def test_a_shortage_is_told_with_its_moment_and_its_remedy(changes, said):
    assert found(**changes) == f"at most 4 executors carry {said}"


def test_where_executors_hardly_help_each_other_none_are_said_to_be_needed():
    shared = CONTRACT.model_copy(update={"planning": Planning(batch_s=1.5, scaling=0.02)})
    assert found(shared, arrival_rps=1e15).endswith("8 tasks are too few for any number of executors")


def test_only_batches_too_long_for_the_target_make_a_shortage_however_short_they_are_planned():
    assert found(arrival_rps=319.0) is None  # above the 293 of batches of 1.5 s
    longer = CONTRACT.model_copy(update={"planning": Planning(batch_s=3.0)})
    assert found(longer, arrival_rps=346.0) is None and found(longer, arrival_rps=347.0).startswith("at most 4")


def test_a_decision_says_it_at_once_and_for_programs_too():
    seen = replace(SEEN, ahead=AHEAD, carried={})
    _, made = make_plan(seen, CONTRACT, Planner.of("forecast", CONTRACT))
    assert "shortage" in made.codes and made.reason.endswith("380 come, too many by 18:10: 8 needed")
