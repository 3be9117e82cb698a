"""Steered by its promise, in the twin: a small load, and what must hold of every one."""

import json

import numpy as np
import pytest

from models.forecast.core.series import Series
from models.twin.experiment.benchmark import forecast_trace
from models.twin.experiment.scenario import build_scenario, split_trace
from models.twin.experiment.setup import Setup
from models.twin.experiment.steering import judge_steering
from pipelines.bench.twin import promise


@pytest.fixture(scope="module")
def scenario():
    steps = np.arange(6 * 96)
    values = 1000 - 700 * np.cos(2 * np.pi * steps / 96) + 60 * np.random.default_rng(1).standard_normal(len(steps))
    series, setup = Series(0.0, 900.0, np.maximum(values, 0.0)), Setup(lead_s=60.0, test_days=1)
    _, test = split_trace("made", series, setup)
    return build_scenario("made", series, test, setup, range(2), forecast_trace("made", series, setup, ("blend",)))


def test_a_promise_is_kept_without_tuning_at_about_the_cost_of_hindsight(scenario):
    cells = {cell.budget: cell for cell in judge_steering(scenario, (0.01, 0.05))}
    for budget, cell in cells.items():
        assert cell.late <= 1.25 * budget
        assert cell.hours <= 1.1 * cell.hindsight_hours
        assert cell.leads == pytest.approx(budget * (scenario.seconds - scenario.warm_s) / 60)
    assert cells[0.05].hours <= cells[0.01].hours  # who may be late more often pays less


def cell(load="a", budget=0.01, late=0.01, hours=11.0, least=10.0, judged=True):
    return {"load": load, "lead_s": 60.0, "budget": budget, "late": late, "hours": hours, "hindsight_hours": least,
            "leads": 9.0, "judged": judged}  # fmt: skip


def test_what_is_judged_together_by_hand():
    cells = [cell(late=0.0125), cell(late=0.0126, hours=10.0), cell(late=0.021, hours=12.0)]
    assert promise._together(cells) == {"n": 3, "within": pytest.approx(1 / 3), "beyond": 1, "cost": 1.1}
    assert promise._together([]) == {"n": 0, "within": None, "beyond": None, "cost": None}
    assert "not judged" in promise._line(cell(judged=False)) and "no setting" in promise._line(cell(least=None))


def test_it_goes_on_from_the_loads_that_a_file_has(tmp_path, monkeypatch):
    file = tmp_path / "promise.json"
    file.write_text(json.dumps({"data": {"cells": [cell()]}}))

    class Here:
        def __init__(self, *_, **__): ...
        def __enter__(self):
            return self

        def __exit__(self, *_): ...

        def map(self, _judge, names, leads):
            return [[cell(load=name)] for name in names]

    monkeypatch.setattr(promise, "ProcessPoolExecutor", Here)
    found = promise.measure_promise(["b", "a"], 60.0, file)
    assert [one["load"] for one in found["cells"]] == ["b", "a"] and found["n"] == 2
