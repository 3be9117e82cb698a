import math
from types import SimpleNamespace

import numpy as np
import pytest

from models.twin.experiment.contenders import select_contenders
from models.twin.experiment.evaluation import SweepResults
from models.twin.experiment.results import TraceResult, to_json_values
from models.twin.experiment.setup import Setup
from models.twin.experiment.value import (
    compare_at_usual_settings,
    compare_policies,
    compare_without_forecaster,
    summarise,
)


def swept(violation, hours, knobs=None):
    """Of one seed."""
    share, paid = np.array(violation)[:, None], np.array(hours, float)[:, None]
    zero = np.zeros(share.shape)
    knobs = np.arange(len(share), dtype=float) if knobs is None else np.array(knobs)
    return SweepResults(knobs, paid, share, zero, zero, zero, zero.astype(int), zero.astype(int))


def case(name, **hours):
    """Policies that cost so much at 0.1 % and at 1 %."""
    scenario = SimpleNamespace(name=name, setup=SimpleNamespace(lead_s=60.0))
    return TraceResult(scenario, {policy: swept([0.001, 0.01], paid) for policy, paid in hours.items()})


STEEP = case("steep", hpa=(120, 110), reactive=(110, 100), true_future=(90, 80), forecast=(100, 85), mpc=(95, 82))
FLAT = case("flat", hpa=(101, 100), reactive=(100, 100), true_future=(100, 99), forecast=(104, 101), mpc=(107, 100))


def test_a_cell_compares_with_the_best_reactive_policy():
    loose, tight = compare_policies(STEEP)
    assert (loose["violation"], loose["best_reactive"]) == (0.01, "reactive")
    assert loose["gap"] == pytest.approx(0.2)
    assert loose["captured"] == pytest.approx({"forecast": 0.75, "mpc": 0.9})
    assert tight["captured"] == pytest.approx({"forecast": 0.5, "mpc": 0.75})


def test_where_there_is_nothing_to_gain_nothing_is_captured():
    assert all(math.isnan(captured) for cell in compare_policies(FLAT) for captured in cell["captured"].values())


def test_the_sums_over_cells():
    found = summarise([*compare_policies(STEEP), *compare_policies(FLAT)], [])
    assert found["forecast"]["gap_cells"] == 2 and found["forecast"]["captured"] == pytest.approx(0.625)
    assert found["mpc"]["captured_at_least_half"] == 1
    flat = found["forecast"]["nothing_to_gain"]
    assert (flat["cells"], flat["like_reactive"], flat["too_dear"]) == (2, 0.5, 0)
    assert flat["worst"] == {"trace": "flat", "lead_s": 60.0, "violation": 0.001, "ratio": 1.04}
    assert found["mpc"]["nothing_to_gain"]["too_dear"] == 1
    assert math.isnan(found["mpc"]["against_defaults"])


def test_a_broken_promise_counts_against_ours():
    never = case("never", reactive=(110, 100), true_future=(90, 80))
    never.results["forecast"] = swept([0.02, 0.05], [50, 40])
    found = summarise(compare_policies(never), [])["forecast"]
    assert found["broken"] == 2 and found["captured"] == -math.inf and found["all"]["too_dear"] == 2


def test_what_the_forecast_adds_is_told_beside_the_same_planner_without_it():
    none, last = "mpc:none", "mpc:last_value"
    one = case("steep", reactive=(110, 100), true_future=(90, 80), mpc=(99, 81), **{none: (110, 90), last: (99, 90)})
    other = case("steeper", reactive=(110, 100), true_future=(80, 70), mpc=(88, 81), **{last: (100, 90)})
    other.results[none] = swept([0.02, 0.05], [50, 40])  # breaks both promises
    found = compare_without_forecaster([*compare_policies(one), *compare_policies(other), *compare_policies(FLAT)])
    assert found[none] == {
        "cells": 4, "hours": pytest.approx(0.9), "cheaper": 2, "compared": 2, "kept_by_forecast_alone": 2
    }  # fmt: skip
    assert found[last] == {
        "cells": 4, "hours": pytest.approx(0.9), "cheaper": 3, "compared": 4, "kept_by_forecast_alone": 0
    }  # fmt: skip
    assert summarise(compare_policies(one), [])[last]["captured"] == pytest.approx((0.5 + 11 / 20) / 2)


def test_the_planner_without_a_forecast_takes_part_wherever_the_planner_does():
    contract = Setup().contract
    names = [one.name for one in select_contenders(["mpc"], contract)[0]]
    assert names == ["mpc", "mpc:none", "mpc:last_value", "true_future"]
    without = {one.name: one for one in select_contenders(["all"], contract)[0]}
    assert not without["mpc:none"].uses_forecast and without["mpc:last_value"].forecaster == "last_value"
    none = without["mpc:none"]  # swept by what it keeps spare: without a forecast its price tells it nothing
    assert none.swept[0] == "utilisation" and min(none.knob_values(contract)) < 0.5 < 1 < max(
        none.knob_values(contract)
    )
    assert not any("utilisation" in axis for axis in none.axes) and without["mpc"].swept is None
    assert "mpc:none" not in {one.name for one in select_contenders(["hpa"], contract)[0]}


def test_what_is_shipped_is_compared_at_its_own_violation():
    one = case("steep", reactive=(110, 100), true_future=(90, 80), forecast=(100, 90))
    one.results["hpa"] = swept([0.0, 0.01, 0.1], [200, 120, 50], [0.5, 0.7, 0.9])
    hpa = compare_at_usual_settings(one)[0]
    assert (hpa["policy"], hpa["knob"], hpa["violation"], hpa["executor_hours"]) == ("hpa", 0.7, 0.01, 120)
    assert hpa["ratio"] == {"forecast": 0.75}


def test_what_is_no_number_becomes_null():
    assert to_json_values({"a": [math.nan, np.float64(1.5), math.inf], 0.01: (np.int64(2),)}) == {
        "a": [None, 1.5, None],
        "0.01": [2],
    }
