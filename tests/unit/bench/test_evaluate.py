import json
import math
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from configs.errors import SettingsError
from models.forecast.core.series import Series, SeriesError
from models.forecast.selection.catalogue import CATALOGUE, NAIVE
from pipelines.bench.forecast.evaluate import LEVELS, evaluate, resolve_models, score_evaluation, split_for_test
from pipelines.bench.forecast.evaluation_charts import choose_line_styles
from pipelines.bench.forecast.evaluation_page import write_page
from pipelines.bench.forecast.text import format_evaluation, sort_by_rmse
from pipelines.cli.app import app

HOUR = 3600.0


def series(steps=24 * 12, seed=4):
    rng = np.random.default_rng(seed)
    times = np.arange(steps)
    return Series(0.0, HOUR, 100 + 40 * np.sin(2 * np.pi * times / 24) + rng.normal(0, 2, steps))


def test_the_last_fifth_is_the_test():
    older, held = split_for_test("x", series(168), 12)
    assert (len(older), len(held)) == (134, 34)
    assert held.start == older.end


def test_the_naive_figures_by_hand():
    # A ramp of 1 per step: h steps ahead the last value is wrong by h, and its errors never vary.
    ramp = Series(0.0, HOUR, np.arange(1.0, 201.0))
    found = score_evaluation(evaluate("ramp", ramp, 3, ["last_value"]))
    assert list(found["models"]) == [*NAIVE, "champion"]
    assert found["champion"] == "last_value" and found["models"]["champion"]["kind"] == "last_value"
    for h in (1, 2, 3):
        scored = found["models"]["last_value"]["horizons"][str(h)]
        assert scored["rmse"] == pytest.approx(h) and scored["mae"] == pytest.approx(h)
        outcomes = np.arange(160.0 + h, 201.0)
        assert scored["wape"] == pytest.approx(h * len(outcomes) / outcomes.sum())
        # All quantiles are the value h below the outcome: pinball is level · h.
        assert scored["pinball"] == pytest.approx(h * np.mean(LEVELS))
        assert scored["coverage"] == {"0.5": 0.0, "0.8": 0.0, "0.9": 0.0, "0.95": 0.0}
        assert scored["skill"] == 0.0
    assert found["models"]["yesterday"]["horizons"]["1"]["rmse"] == pytest.approx(24)
    assert found["models"]["yesterday"]["horizons"]["1"]["skill"] == pytest.approx(1 - 24)
    assert found["best_naive"] == "last_value"
    assert (found["train_steps"], found["test_steps"]) == (160, 40)


def test_no_model_sees_the_test_rows():
    whole = series()
    older, held = split_for_test("x", whole, 4)
    other = Series(whole.start, HOUR, np.concatenate([older.values, held.values[::-1] + 50]))
    pair = [evaluate("x", one, 4, ["ets"]) for one in (whole, other)]
    first, second = (each.contenders["ets"].backtest for each in pair)
    np.testing.assert_array_equal(first.quantiles[0], second.quantiles[0])
    assert pair[0].champion == pair[1].champion


def test_missing_rows_do_not_count_and_what_has_no_figure_is_null():
    values = series().values
    values[-30:-27] = math.nan
    found = score_evaluation(evaluate("gaps", Series(0.0, HOUR, values), 2, ["last_value"]))
    assert math.isfinite(found["models"]["last_value"]["horizons"]["2"]["rmse"])
    zeros = values.copy()
    zeros[-60:] = 0.0
    found = score_evaluation(evaluate("zeros", Series(0.0, HOUR, zeros), 2, ["last_value"]))
    assert found["models"]["last_value"]["horizons"]["1"]["wape"] is None
    json.dumps(found, allow_nan=False)


def test_a_model_that_cannot_be_fitted_is_skipped_and_said_so(monkeypatch):
    def refuse(task, history):
        raise SeriesError("too short for it")

    monkeypatch.setitem(CATALOGUE, "theta", refuse)
    told = []
    evaluation = evaluate("x", series(), 4, ["theta", "last_value"], report_progress=told.append)
    found = score_evaluation(evaluation)
    assert found["skipped"] == {"theta": "too short for it"}
    assert "theta was skipped: too short for it" in format_evaluation(found)
    assert any("theta: skipped" in line for line in told)


def test_too_short_a_series_says_what_it_needs():
    with pytest.raises(SeriesError, match=r"x: 60 steps of 3600 s; a horizon of 12 needs at least 65"):
        split_for_test("x", series(60), 12)
    split_for_test("x", series(65), 12)


def test_the_page_holds_everything_and_every_model(tmp_path):
    from plotly.offline import get_plotlyjs  # it takes a while to load, and few workers need it

    evaluation = evaluate("<b>mine</b>.csv", series(), 4, ["theta"], unit="records/s")
    found = score_evaluation(evaluation)
    page = write_page(evaluation, found, tmp_path / "sub" / "page.html").read_text()
    assert "<b>mine</b>" not in page and "&lt;b&gt;mine&lt;/b&gt;" in page
    assert not re.search(r'(src|href)="(https?:)?//', page.replace(get_plotlyjs(), ""))
    figured = json.loads(re.search(r'id="charts">(.*?)</script>', page, re.S)[1])
    held = set(re.findall(r'data-(?:chart|show)="([^"]+)"', page))
    assert held == set(figured)
    drawn = {trace["name"] for trace in figured["horizon-rmse"]["data"]}
    assert drawn == {"last value", "yesterday", "seasonal naive", "theta", f"champion: {evaluation.champion}"}
    assert len(set(choose_line_styles(evaluation).values())) == len(evaluation.contenders)


def test_the_command(tmp_path):
    rows = [f"{int(i * HOUR)},{value:.3f}" for i, value in enumerate(series().values)]
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(["time,load", *rows]))
    out = tmp_path / "out.json"
    asked = ["forecast", "evaluate", str(path), "--step", "2h", "--horizon", "3", "--models", "yesterday"]
    said = CliRunner().invoke(app, [*asked, "--json", str(out)])
    assert said.exit_code == 0, said.output
    assert "best naive forecast (yesterday)" in said.output
    found = json.loads(out.read_text())["data"]
    assert found["step_s"] == 7200 and set(found["models"]["yesterday"]["horizons"]) == {"1", "2", "3"}
    with pytest.raises(SettingsError, match="moon"):
        CliRunner().invoke(app, [*asked[:-1], "moon"], catch_exceptions=False)


def test_the_champion_may_be_named_and_alone_stands_for_all():
    assert resolve_models(["champion", "theta"]) == ["theta"]
    assert resolve_models(["champion"]) == resolve_models([]) == list(CATALOGUE)


def test_a_model_that_makes_no_error_comes_first_and_one_without_an_outcome_last():
    models = {name: {"horizons": {"1": {"rmse": rmse}}} for name, rmse in (("none", None), ("some", 2.0), ("no", 0.0))}
    assert [name for name, _ in sort_by_rmse({"models": models})] == ["no", "some", "none"]


def test_all_models_are_not_taken_for_one():
    with pytest.raises(SettingsError, match="one model is expected"):
        CliRunner().invoke(app, ["forecast", "breaks", "--model", "all"], catch_exceptions=False)
