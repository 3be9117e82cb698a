"""Executors beyond those of live records: asked for by a schedule, or kept because it asks for them soon."""

import pytest

from configs.contract import Contract, Executors
from models.policy.replays.executors import add_executors, with_replays

CONTRACT = Contract(job="orders", executors=Executors(min=1, max=6))


@pytest.mark.parametrize(
    ("live", "extra", "soon", "running", "executors", "words"),
    [
        (4, 0, 0, 4, 4, ""),
        (4, 1, 1, 4, 5, "; 1 more for replays"),
        (6, 2, 2, 6, 6, ""),
        (5, 2, 2, 5, 6, "; 1 more for replays"),
        (2, 0, 2, 6, 4, "; 2 kept for replays"),
        (2, 0, 2, 3, 3, "; 1 kept for replays"),
        (2, 0, 2, 2, 2, ""),
        (2, 1, 2, 6, 4, "; 1 more for replays; 1 kept for replays"),
        (2, 1, 9, 9, 6, "; 1 more for replays; 3 kept for replays"),
    ],
)
def test_asked_for_and_kept_by_hand(live, extra, soon, running, executors, words):
    assert add_executors(live, "so", extra, CONTRACT.executors.max, soon, running) == (executors, f"so{words}")


def test_what_older_logs_do_not_hold_keeps_nothing():
    assert with_replays(2, "so", ["up"], None, CONTRACT.executors.max) == (2, "so", ["up"])
    decided = {"executors": 1, "signals": {"executors": 6}}
    assert with_replays(2, "so", ["up"], decided, CONTRACT.executors.max) == (3, "so; 1 more for replays", ["up"])
    assert with_replays(2, "so", ["up"], {**decided, "executors_soon": 3}, CONTRACT.executors.max)[0] == 5


@pytest.mark.parametrize(("standing", "executors"), [(None, 4), (5, 4), (4, 4), (3, 3), (2, 3)])
def test_an_executor_that_the_decision_before_gave_back_is_not_kept_though_metrics_still_have_it(standing, executors):
    decided = {"executors": 0, "executors_soon": 1, "signals": {"executors": 4}, "standing": standing}
    assert with_replays(3, "so", ["hold"], decided, CONTRACT.executors.max)[0] == executors
