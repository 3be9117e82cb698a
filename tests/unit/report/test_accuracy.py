import numpy as np
import pandas as pd
import pytest

from models.forecast.core.series import Series
from pipelines.report import accuracy


def forecast(version, time, medians, upper=1.5, wall=0.0):
    rows = [[0.5 * m, m, upper * m] for m in medians]
    return {
        "version": version, "time": time, "wall_time": wall, "step_s": 10.0, "levels": [0.1, 0.5, 0.9],
        "quantiles": rows, "model": "m", "kind": "k",
    }  # fmt: skip


ACTUAL = Series(0.0, 10.0, np.array([100.0, 200.0, np.nan, 400.0]))


def test_every_step_meets_what_came():
    steps = accuracy.match_forecasts(pd.DataFrame([forecast("1", 10.0, [210.0, 300.0, 300.0, 500.0])]), ACTUAL)
    assert steps["ahead"].tolist() == [1, 2, 3, 4]
    assert steps["actual"].fillna(-1).tolist() == [200, -1, 400, -1]  # a hole, and a step that has not come
    assert steps["last"].tolist() == [100] * 4


def test_errors_by_hand():
    # Misses 10 and 100 of 600; the last value 100 misses by 100 and 300; 200 ≤ 315, 400 ≤ 450.
    e = accuracy.forecast_error(
        accuracy.match_forecasts(pd.DataFrame([forecast("1", 10.0, [210.0, 300.0, 300.0])]), ACTUAL)
    )
    assert e == {
        "n": 2, "wape": round(110 / 600, 4), "rmse": round(((100 + 10_000) / 2) ** 0.5, 3), "coverage_90": 1.0,
        "wape_last_value": round(400 / 600, 4),
    }  # fmt: skip


def test_an_upper_level_that_is_too_low_shows():
    e = accuracy.forecast_error(
        accuracy.match_forecasts(pd.DataFrame([forecast("1", 10.0, [210.0, 300.0, 300.0], upper=1.1)]), ACTUAL)
    )
    assert e["coverage_90"] == 0.5


def test_versions_are_told_apart_and_repeats_count_once():
    frame = pd.DataFrame([
        forecast("2", 0.0, [100.0]), forecast("2", 0.0, [999.0], wall=1.0), forecast("3", 10.0, [100.0])
    ])  # fmt: skip
    found = accuracy.error_by_version(accuracy.match_forecasts(frame, ACTUAL))
    assert [(v, e["n"], e["wape"]) for v, e in found.items()] == [("2", 1, 0.0), ("3", 1, 0.5)]
    assert accuracy.level_in_words(found["3"]) == "90 %"
    assert found["3"]["by_step"] == [{
        "ahead": 1, "n": 1, "wape": 0.5, "rmse": 100.0, "coverage_90": 0.0, "wape_last_value": 0.5
    }]  # fmt: skip


def test_nothing_came_nothing_is_said():
    e = accuracy.forecast_error(accuracy.match_forecasts(pd.DataFrame([forecast("1", 900.0, [1.0])]), ACTUAL))
    assert e == {"n": 0, "wape": None, "rmse": None, "coverage_90": None, "wape_last_value": None}


def test_the_actual_load_is_the_mean_of_its_seconds():
    arrivals = pd.DataFrame({
        "time": [0.0, 5.0, 10.0, 15.0], "arrival_rps": [100.0, 300.0, 10.0, 30.0], "span_s": [5.0] * 4
    })  # fmt: skip
    series = accuracy.actual_load(arrivals, 10.0)
    assert series.values.tolist() == pytest.approx([200.0, 20.0])


def test_a_forecast_without_a_median_is_judged_by_its_nearest_level():
    coarse = {**forecast("1", 10.0, [210.0]), "levels": [0.2, 0.6], "quantiles": [[105.0, 210.0]]}
    assert accuracy.match_forecasts(pd.DataFrame([coarse]), ACTUAL)["median"].tolist() == [210.0]
