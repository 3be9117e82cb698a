"""Steered by its promise, in the twin: a small load, and what must hold of every one."""

from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from configs.errors import SettingsError
from models.forecast.core.series import Series
from models.twin.experiment.benchmark import forecast_trace
from models.twin.experiment.scenario import build_scenario, split_trace
from models.twin.experiment.setup import Setup
from models.twin.promise.steering import judge_steering, steps_after_history
from models.twin.sim.job import TwinError
from pipelines.backtest.load import list_map_loads, read_load
from pipelines.bench.twin import promise
from pipelines.bench.twin.drawn import believed_lead_s, half_of
from pipelines.figures.form import Figure, read_figure


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
    for one in defaults:  # as many late seconds as the other policy had, for less
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


CHANGED = {"load": "gone.csv"}


@pytest.fixture
def loads(tmp_path):
    """Three files of a day, by name."""
    values = {"b.csv": 1.0, "a.csv": 2.0, "c.csv": 3.0}
    for name, value in values.items():
        rows = [f"{3600 * hour},{value + hour % 5}" for hour in range(24)]
        (tmp_path / name).write_text("\n".join(["time,load", *rows]) + "\n")
    return {name: str(tmp_path / name) for name in values}


class Here:
    """A pool whose work is done at once, and noted."""

    asked: ClassVar[list[tuple[list[str], float]]] = []

    def __init__(self, *_, **__): ...
    def __enter__(self):
        return self

    def __exit__(self, *_): ...

    def submit(self, _judge, paths, lead_s, _days):
        names = [Path(path).name for path in paths]
        self.asked.append((names, lead_s))
        done = Future()
        done.set_result([part(name, lead_s, "too short" if name == "b.csv" else "") for name in names])
        return done


@pytest.fixture
def kept(tmp_path, loads, monkeypatch):
    """A figure of `tidecast bench promise` that was broken off."""
    digests = {name: read_load(path).series.digest for name, path in loads.items()}
    parts = [part("a.csv"), part("a.csv", 600.0), part("gone.csv")]
    data = {"days": 14.0, "digests": {**digests, "gone.csv": "f"}, "parts": parts, "change": {"parts": [CHANGED]}}
    monkeypatch.setattr(promise, "worker_pool", Here)
    monkeypatch.setattr(promise, "measure_change", lambda loads, known, _save: {"asked": loads, "known": known})
    monkeypatch.setattr(Here, "asked", [])
    return write(tmp_path / "promise.json", data)


def write(path, data):
    path.write_text(Figure("tidecast bench promise", None, "2026-11-21", "2 cores", 1.0, [], data).to_text())
    return path


def test_it_goes_on_from_the_cells_that_a_file_has(loads, kept):
    found = promise.measure_promise([*loads.values()], [60.0, 600.0], 14.0, kept)
    # The other half has all that it needs.
    assert Here.asked == [(["b.csv", "c.csv"], 60.0), (["b.csv", "c.csv"], 600.0)]
    assert [(one["load"], one["lead_s"]) for one in found["parts"]][:3] == [
        ("b.csv", 60.0), ("a.csv", 60.0), ("c.csv", 60.0),
    ]  # fmt: skip
    assert found["n"] == 4 and [row["cells judged"] for row in found["leads"]] == [2, 2]
    assert found["beside_defaults"] == pytest.approx(0.55) and found["n_defaults"] == 4
    assert sum(half["n"] for half in found["halves"].values()) == 4
    assert found["change"] == {"asked": [*loads.values()], "known": [CHANGED]}
    assert found["days"] == 14.0 and set(found["digests"]) == set(loads)


def refused(named, loads, kept, days=14.0):
    with pytest.raises(
        SettingsError, match=rf"promise\.json holds figures with {named} is asked for.*leave --resume out"
    ):
        promise.measure_promise([*loads.values()], [60.0], days, kept)
    assert Here.asked == []


def test_it_does_not_go_on_from_other_days(loads, kept):
    refused(r"days 14\.0, and 2\.0", loads, kept, days=2.0)


def test_it_does_not_go_on_where_a_load_that_was_judged_is_another_one_now(loads, kept):
    Path(loads["c.csv"]).write_text(Path(loads["b.csv"]).read_text())  # of which the file has nothing
    promise.measure_promise([*loads.values()], [60.0], 14.0, kept)
    Here.asked.clear()
    Path(loads["a.csv"]).write_text(Path(loads["b.csv"]).read_text())
    refused(r"digests\.a\.csv \w+, and \w+", loads, kept)


def test_it_does_not_go_on_where_it_is_not_said_which_loads_were_judged(loads, kept, tmp_path):
    data = read_figure(kept).data
    del data["digests"]  # as an earlier release left it
    refused(r"digests\.a\.csv unknown, and \w+", loads, write(tmp_path / "promise.json", data))
    refused(r"days unknown, and 14\.0", loads, write(tmp_path / "promise.json", []))


def test_what_is_drawn_for_a_load_in_a_file_does_not_depend_on_its_folder():
    for draw in (half_of, partial(believed_lead_s, lead_s=60.0)):
        assert draw("some/folder/orders_5min.csv") == draw("orders_5min.csv")
    assert believed_lead_s("orders_5min.csv", 60.0) != believed_lead_s("taxi_5min.csv", 60.0)
