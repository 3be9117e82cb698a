"""Figures of the console beside those of a lake: what counts as the same, and what made-up jobs tell."""

from collections import Counter

import pytest

from pipelines.bench.team.console.decided_jobs import stated_contract, told_seconds
from pipelines.bench.team.console.records import NOW
from pipelines.bench.team.console.same_figures import compared
from pipelines.console.read.fold import ReadModel, fold


def test_what_differs_is_said_and_estimates_may_differ_by_little():
    kept = {
        "row.executors": 3, "row.budget_left": 0.5, "row.burn_long": 20.0, "row.burn_short": 0.2,
        "fine.1.arrival_rps": 100.0, "forecast.levels": [0.1, 0.9], "decisions.0.codes": ["hold"],
    }  # fmt: skip
    near = {**kept, "row.budget_left": 0.51, "row.burn_long": 21.0, "row.burn_short": 0.25,
            "fine.1.arrival_rps": 100.01, "decisions.0.codes": ("hold",)}  # fmt: skip
    found = compared({"orders": (near, kept)})
    assert (found["compared"], found["differ"], found["estimates"]) == (7, 0, 3)
    assert (found["budget_off"], found["burn_off"]) == (0.01, 0.05)
    far = {**near, "row.budget_left": 0.53, "row.executors": 4, "forecast.levels": [0.1]}
    del far["fine.1.arrival_rps"]
    assert compared({"orders": (far, kept)})["differing"] == [
        "orders: row.executors is 4, in the lake 3", "orders: row.budget_left is 0.53, in the lake 0.5",
        "orders: fine.1.arrival_rps is nothing, in the lake 100.0",
        "orders: forecast.levels is [0.1], in the lake [0.1, 0.9]",
    ]  # fmt: skip


def test_a_figure_that_is_not_known_is_another_than_one_that_is():
    assert compared({"orders": ({"row.burn_long": None}, {"row.burn_long": 1.0})})["differ"] == 1
    assert compared({"orders": ({"row.burn_long": None}, {"row.burn_long": None})})["differ"] == 0


@pytest.mark.parametrize("number", [0, 1])
def test_made_up_jobs_are_late_are_decided_and_send_some_records_twice_and_some_that_are_none(number):
    records = [*told_seconds(number, NOW, 180)]
    told = Counter(one.topic for one in records)
    assert told["metrics"] == 180 + 60 + 2 and {*told} >= {
        "decisions",
        "outcomes",
        "forecasts",
        "heartbeats",
        "replays",
    }
    model = fold(ReadModel(), records, NOW + 200)
    job = model.jobs[stated_contract(number).job]
    assert model.refused == 2 and job.standing()["late_s"] > 10 and job.stood is not None
