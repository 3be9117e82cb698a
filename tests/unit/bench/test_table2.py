"""The table's cells, rows and words, on models that need no training."""

import json
import math
import sys

import numpy as np
import pytest

from models.forecast.core import scores
from models.forecast.core.series import SeriesError
from pipelines.bench.table2 import table as table2
from pipelines.bench.table2.loads import NOISE_FLOOR, Cell, simulate_cells
from pipelines.bench.table2.models import list_models
from pipelines.bench.table2.table import FLOOR, compute_table, normalise_rmse, score_models
from pipelines.bench.table2.text import PUBLISHED, format_table2, sort_by_error
from pipelines.figures.written import write_figure

NAIVE = ("last value", "same time yesterday", "same time last week", "mean of last 6")


def cell(loads, first, step_s=3600):
    return Cell("IoT traffic", step_s, 0.0, np.asarray(loads, dtype=float), first, np.asarray(loads, dtype=float))


def naive():
    return {name: fit for name, fit in list_models().items() if name in NAIVE}


def forecasts(loads, first):
    return {name: fit(cell(loads, first), 1)()[0] for name, fit in naive().items()}


def test_the_naive_forecasts_by_hand():
    loads = np.arange(400.0)  # hourly
    said = forecasts(loads, 300)
    test = np.arange(300.0, 400.0)
    lags = {"last value": 1, "same time yesterday": 24, "same time last week": 168, "mean of last 6": 3.5}
    for name, lag in lags.items():
        np.testing.assert_allclose(said[name], test - lag)


def test_every_model_of_the_paper_and_every_naive_one_is_there():
    assert list(list_models()) == ["gru", "lstm", "cnn", "arima", "prophet", *NAIVE]


@pytest.fixture(scope="module")
def made():
    return list(simulate_cells((300, 120, 60), seed=1))


def test_the_six_series_are_as_long_as_specified(made):
    lengths = {(c.source, c.step_s): (len(c.loads), len(c.test)) for c in made}
    assert lengths["IoT traffic", 300] == (6048, 1210)
    assert [lengths["IoT traffic", step][0] for step in (120, 60)] == [15_118, 30_236]
    assert [lengths["green taxi", step][0] for step in (300, 120, 60)] == [8928, 22_320, 44_640]
    assert set(lengths) == set(PUBLISHED)


def test_the_second_source_is_matched_to_the_first(made):
    for iot, taxi in zip(made[::2], made[1::2], strict=True):
        assert taxi.clipped == 0
        assert taxi.loads.mean() == pytest.approx(iot.loads.mean())
        assert taxi.loads.std() == pytest.approx(iot.loads.std())


def test_the_noise_free_signal_scores_the_floor(made):
    iot = made[4]
    found = scores.smape_sum(iot.test, iot.clean[iot.first :])
    assert found == pytest.approx(NOISE_FLOOR, abs=0.06)
    assert found < scores.smape_sum(iot.test, iot.loads[iot.first - 1 : -1])


def test_a_row_holds_its_scores_and_the_floor_comes_last():
    rng = np.random.default_rng(1)
    loads = 100 + rng.normal(0, 5, 400)
    found = list(score_models(cell(loads, 300), naive(), 1))
    assert [row["model"] for row in found] == [*NAIVE, FLOOR]
    last = found[0]
    assert last["skill"] == 0 and last["rmse"] == pytest.approx(scores.rmse(loads[300:], loads[299:-1]))
    assert last["smape_half"] == 2 * last["smape_sum"]
    assert found[3]["skill"] > 0.1 and found[-1]["rmse"] == 0


def test_prophet_where_it_is_not_installed_is_a_row_that_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "prophet", None)
    (row, _) = score_models(cell(np.arange(400), 300), {"prophet": list_models()["prophet"]}, 1)
    assert row["rmse"] is None and "pip install -r requirements-prophet.txt" in row["remark"]


def test_errors_are_normalised_per_step_by_the_papers_models():
    def row(model, step_s, rmse, mae):
        return {"model": model, "step_s": step_s, "rmse": rmse, "mae": mae}

    found = [row("gru", 300, 2, 1), row("gru", 300, 4, 3), row("arima", 300, 5, 5), row("last value", 300, 9, 90)]
    found += [row("gru", 60, 8, 4), row("prophet", 60, None, None)]
    assert normalise_rmse(found) == {
        "gru": {"300": 1.0, "60": 2.0},
        "arima": {"300": pytest.approx(5 / 3)},
        "last value": {"300": 3.0},
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A table of the naive models, the file that it was written to, and what was told meanwhile."""
    file, told = tmp_path_factory.mktemp("table") / "found.json", []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table2, "list_models", naive)
        return compute_table((300,), 1, file, report_progress=told.append), file, told


def test_the_run_writes_every_row_and_the_table_shows_it(whole):
    found, file, told = whole
    assert json.loads(file.read_text())["data"] == found
    assert len(told) == len(found["rows"]) == 2 * len(NAIVE) + 1
    text = format_table2(found)
    assert "IoT traffic, 5 min: 4838 rows for training, 1210 for the test" in text
    assert "green taxis only" in text and "2.503 (sum), 5.006 (half)" in text
    for row in found["rows"]:
        assert f"{row['smape_half']:.2f}" in text


def test_a_run_that_was_broken_off_is_resumed(monkeypatch, tmp_path, whole):
    monkeypatch.setattr(table2, "list_models", naive)
    (table, _, _), file, told = whole, tmp_path / "found.json", []
    kept = [dict(row) for row in table["rows"] if row["model"] != "last value"]
    kept[0]["rmse"], kept[1]["rmse"] = 1.25, None  # one that is kept as it is, one that could not run
    write_figure(file, {**table, "rows": kept})
    again = compute_table((300,), 1, file, resume=True, report_progress=told.append)
    assert [row["model"] for row in again["rows"]] == [row["model"] for row in table["rows"]]
    assert again["rows"][1]["rmse"] == 1.25 and again["rows"][2]["rmse"] > 1000
    assert len(told) == 4  # last value twice, the one that could not run, and the floor
    with pytest.raises(SeriesError, match="holds a run with seed 1, not 2"):
        compute_table((300,), 2, file, resume=True)


def test_the_published_values_stand_beside_ours():
    row = {name: 1.0 for name in ("smape_half", "smape_sum", "rmse", "mae", "skill", "train_s", "infer_s", "cpu_s")}
    gru = {"source": "green taxi", "step_s": 120, "model": "gru", "remark": "", **row}
    about = {"source": "green taxi", "step_s": 120, "training_rows": 8, "test_rows": 2, "clipped": 0}
    found = {
        "noise_floor": {"smape_sum": 2.5, "smape_half": 5.0},
        "cells": [{**about, "independent_rmse": 5.0}],
        "rows": [gru, {**gru, "model": "prophet", **dict.fromkeys(row), "remark": "not installed"}],
        "normalised_rmse": {"gru": {"120": 1.0}},
    }
    lines = format_table2(found).splitlines()
    assert [line for line in lines if line.startswith("gru") and "1.82" in line]
    assert [line for line in lines if line.startswith("prophet") and "5.39" in line and "not installed" in line]
    assert [line for line in lines if "paper: cnn gru arima prophet" in line and line.endswith("ours: gru")]


def test_models_are_ordered_best_first():
    assert sort_by_error({"gru": 2.0, "cnn": 1.0, "arima": None, "lstm": 0.5}) == ["cnn", "gru"]
    assert sort_by_error({"gru": math.nan, "cnn": 1.0, "arima": 3.0}) == ["cnn", "arima", "gru"]
