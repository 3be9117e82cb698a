"""Steered by its promise, in the twin: a small load, and what must hold of every one."""

import json
from concurrent.futures import Future
from functools import partial

import numpy as np
import pytest

from models.forecast.core.series import Series
from models.twin.experiment.benchmark import forecast_trace
from models.twin.experiment.scenario import build_scenario, split_trace
from models.twin.experiment.setup import Setup
from models.twin.promise.steering import judge_steering, steps_after_history
from models.twin.sim.job import TwinError
from pipelines.backtest.load import list_map_loads
from pipelines.bench.twin import promise
from pipelines.bench.twin.drawn import believed_lead_s, half_of


@pytest.fixture(scope="module")
def scenario():
    steps = np.arange(6 * 96)
    values = 1000 - 700 * np.cos(2 * np.pi * steps / 96) + 60 * np.random.default_rng(1).standard_normal(len(steps))
    series, setup = Series(0.0, 900.0, np.maximum(values, 0.0)), Setup(lead_s=60.0, test_days=0.3)
    _, test = split_trace("made", series, setup)
    return build_scenario("made", series, test, setup, range(2), forecast_trace("made", series, setup, ("blend",)))


def test_a_promise_is_kept_without_tuning_at_about_the_cost_of_hindsight(scenario):
    # The contract believes in a lead time two and a half times as long as it is.
    ((found, defaults),) = judge_steering([(scenario, 150.0)], (0.01, 0.05))
    cells = {cell.budget: cell for cell in found}
    for budget, cell in cells.items():
        assert cell.late <= 1.25 * budget
        assert cell.hours <= 1.1 * cell.hindsight_hours
        assert cell.leads == pytest.approx(budget * (scenario.seconds - scenario.warm_s) / 60)
    assert cells[0.05].hours <= cells[0.01].hours  # who may be late more often pays less
    assert {one.policy for one in defaults} <= {"hpa", "flink", "keda", "spark_dstream"} and defaults
    for one in defaults:  # as many late seconds as the shipped policy had, for less
        assert one.steered_late <= 1.25 * one.late and one.steered_hours < one.hours


def test_what_counts_comes_after_eight_days_and_the_first_third():
    setup = Setup(lead_s=60.0)

    def steps(days, most=14.0):
        return steps_after_history("x", Series(0.0, 3600.0, np.ones(24 * days)), setup, most)

    assert steps(12) == range(8 * 24, 12 * 24)
    assert steps(60) == range(20 * 24, 34 * 24) and steps(60, 2.0) == range(20 * 24, 22 * 24)
    with pytest.raises(TwinError, match=r"x: 8.0 days; a promise is judged after 8"):
        steps(8)


def cell(load="a", budget=0.01, late=0.01, hours=11.0, least=10.0, judged=True):
    return {"load": load, "lead_s": 60.0, "budget": budget, "late": late, "hours": hours, "hindsight_hours": least,
            "leads": 9.0, "judged": judged}  # fmt: skip


def test_what_is_judged_together_by_hand():
    cells = [cell(late=0.0125), cell(late=0.0126, hours=10.0), cell(late=0.021, hours=12.0), cell(judged=False)]
    assert promise.judge_together(cells) == {"n": 3, "within": pytest.approx(1 / 3), "beyond": 1, "cost": 1.1}
    assert promise.judge_together([]) == {"n": 0, "within": None, "beyond": None, "cost": None}
    assert "not judged" in promise._line(cell(judged=False)) and "no setting" in promise._line(cell(least=None))


def part(load, lead_s=60.0, why=""):
    beside = {"policy": "hpa", "late": 0.02, "hours": 20.0, "steered_late": 0.02, "steered_hours": 11.0}
    cells = [] if why else [{**cell(load), "lead_s": lead_s}]
    return {"load": load, "lead_s": lead_s, "believed_s": 40.0, "cells": cells, "why": why,
            "defaults": [] if why else [beside]}  # fmt: skip


def test_the_contracts_lead_time_is_wrong_by_up_to_three_times_either_way():
    drawn = [believed_lead_s(name, 60.0) for name in list_map_loads()]
    assert all(20.0 <= lead_s <= 180.0 for lead_s in drawn) and min(drawn) < 40.0 and max(drawn) > 90.0
    assert believed_lead_s("google 5min", 600.0) == pytest.approx(10 * believed_lead_s("google 5min", 60.0), rel=0.05)


def test_it_goes_on_from_the_cells_that_a_file_has(tmp_path, monkeypatch):
    file = tmp_path / "promise.json"
    old = {name: value for name, value in part("c").items() if name != "believed_s"}  # its lead time was not learned
    data = {"parts": [part("a"), part("a", 600.0), part("gone"), old], "change": {"parts": ["kept"]}}
    file.write_text(json.dumps({"data": data}))
    asked = []

    class Here:
        def __init__(self, *_, **__): ...
        def __enter__(self):
            return self

        def __exit__(self, *_): ...

        def submit(self, _judge, names, lead_s, _days):
            asked.append((names, lead_s))
            done = Future()
            done.set_result([part(name, lead_s, "too short" if name == "b" else "") for name in names])
            return done

    monkeypatch.setattr(promise, "worker_pool", Here)
    monkeypatch.setattr(promise, "measure_change", lambda loads, known, _save: {"asked": loads, "known": known})
    found = promise.measure_promise(["b", "a", "c"], [60.0, 600.0], 14.0, file)
    assert asked == [(["b", "c"], 60.0), (["b", "c"], 600.0)]  # the other half has all that it needs
    assert [(one["load"], one["lead_s"]) for one in found["parts"]][:3] == [("b", 60.0), ("a", 60.0), ("c", 60.0)]
    assert found["n"] == 4 and [row["cells judged"] for row in found["leads"]] == [2, 2]
    assert found["beside_defaults"] == pytest.approx(0.55) and found["n_defaults"] == 4
    assert sum(half["n"] for half in found["halves"].values()) == 4
    assert found["change"] == {"asked": ["b", "a", "c"], "known": ["kept"]}


def test_what_is_drawn_for_a_load_in_a_file_does_not_depend_on_its_folder():
    for draw in (half_of, partial(believed_lead_s, lead_s=60.0)):
        assert draw("some/folder/orders_5min.csv") == draw("orders_5min.csv")
    assert believed_lead_s("orders_5min.csv", 60.0) != believed_lead_s("taxi_5min.csv", 60.0)
