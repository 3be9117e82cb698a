import json

import numpy as np
import pytest
from typer.testing import CliRunner

from pipelines.bench.forecast.cells import evaluate_shipped, read_published, summarise_model
from pipelines.bench.forecast.text import format_evaluations as table
from pipelines.cli.app import app
from pipelines.traces.shipped import list_shipped


def cell(name, ratio, large, between=(0.9, 1.1), covered=0.8, **more):
    share = {"0.8": covered, "0.9": 0.9, "0.95": 0.95}
    rows = {"kind": "theta", "rmse": 8 * ratio, "ratio": ratio, "between": list(between), "pinball": 1.0}
    rows |= {"pinball_ratio": 0.5, "coverage": {"1": share}, "train_s": 2.0, "predict_us": 10.0, **more}
    naive = {**rows, "kind": "last_value", "rmse": 8.0, "ratio": 1.0}
    said = {"method": "GRU", "rmse": 10} if "published_ratio" in more else None
    return {
        "cell": name,
        "test_steps": 500 if large else 50,
        "large": large,
        "best_naive": "last_value",
        "champion": "theta",
        "published": said,
        "models": {"last_value": naive, "theta": rows},
    }


def test_the_summary_by_hand():
    cells = [
        cell("a", 0.5, True, covered=0.83, published_ratio=0.4, as_published=4.0),
        cell("b", 2.0, False, between=(1.2, 2.5), covered=0.1),
        cell("c", 0.25, True, covered=0.75, published_ratio=1.6, as_published=16.0),
        cell("d", 4.0, False, between=(0.9, 7.0)),
    ]
    found = summarise_model(cells, "theta")
    assert found["ratio"] == pytest.approx(1.0)
    assert found["worst"] == {"cell": "a", "ratio": 0.5}  # of the large ones
    assert found["worse"] == ["b"]  # only its interval lies above 1
    assert found["published_ratio"] == pytest.approx(0.8)
    assert found["published_worst"] == {"cell": "c", "ratio": 1.6}
    assert found["coverage"]["0.8"] == pytest.approx({"median": 4.0, "worst": -5.0})
    assert found["pinball_ratio"] == 0.5
    said = table(cells, {"theta": found})
    assert "1.000 × best naive" in said and "worse at 95 %: b" in said and "0.800 × the best published" in said


def test_a_model_that_was_fitted_nowhere_is_said_to_be():
    found = summarise_model([cell("a", 0.5, True)], "ets")
    assert found["cells"] == 0 and found["ratio"] is None
    assert "ets: could be fitted to no cell" in table([cell("a", 0.5, True)], {"ets": found})


def test_every_published_figure_is_of_a_shipped_cell():
    cells = {found.label for found in list_shipped()}
    figures = read_published()
    assert set(figures) <= cells and len(figures) == 15
    assert (figures["google 5min"].rmse, figures["google 5min"].averaged) == (9460, 1)
    assert (figures["alibaba 1h"].method, figures["alibaba 1h"].averaged) == ("SARIMA", 12)


def test_a_measured_cell_has_the_figures_that_are_known_of_it():
    found = evaluate_shipped("taxi 1h", ["last_value"], 12)
    assert (found["test_steps"], found["large"], found["best_naive"]) == (101, False, "seasonal_naive")
    last = found["models"]["last_value"]
    assert last["rmse"] == pytest.approx(4979, abs=1)  # as the data's README has it
    assert found["models"]["seasonal_naive"]["rmse"] == pytest.approx(3142, abs=1)
    assert last["ratio"] == pytest.approx(4979 / 3142, rel=1e-3)
    assert last["between"][0] < last["ratio"] < last["between"][1]
    assert last["published_ratio"] == pytest.approx(last["as_published"] / 2397)
    assert np.isfinite(json.loads(json.dumps(found))["models"]["yesterday"]["pinball_ratio"])


def test_the_command_prints_the_table_and_writes_what_it_holds(monkeypatch, tmp_path):
    one = cell("a", 0.5, True, published_ratio=0.4, as_published=4.0)
    one["models"]["champion"] = one["models"]["theta"]
    asked = {}

    def measured(models, horizon, jobs, tell, file, resume):
        asked.update(models=models, horizon=horizon, jobs=jobs)
        tell("a (1 of 1)")
        return [one]

    monkeypatch.setattr("pipelines.bench.forecast.shipped_cells.evaluate_all_shipped", measured)
    out = tmp_path / "out.json"
    said = CliRunner().invoke(app, ["forecast", "table", "--models", "theta", "--jobs", "1", "--json", str(out)])
    assert said.exit_code == 0, said.output
    assert asked == {"models": ["theta"], "horizon": 12, "jobs": 1}
    found = json.loads(out.read_text())["data"]
    assert set(found["summary"]) == {"theta", "champion"} and found["cells"][0]["cell"] == "a"
    assert "champion, geometric means over 1 cells" in said.output


def written(path, values):
    path.write_text("\n".join(["time,load", *(f"{300 * i},{value:.3f}" for i, value in enumerate(values))]))
    return str(path)


def test_several_files_are_judged_by_their_means(tmp_path):
    rng = np.random.default_rng(0)
    files = [written(tmp_path / f"{name}.csv", rng.normal(50, 5, 400)) for name in ("a", "b")]
    files.append(written(tmp_path / "ramp.csv", np.arange(400.0)))
    files.append(written(tmp_path / "square.csv", np.tile(np.repeat([20.0, 100.0], 144), 2)))
    out = tmp_path / "out.json"
    asked = [
        "forecast",
        "evaluate",
        *files,
        "--horizon",
        "2",
        "--models",
        "yesterday",
        "--jobs",
        "1",
        "--json",
        str(out),
    ]
    said = CliRunner().invoke(app, asked)
    assert said.exit_code == 0, said.output
    found = json.loads(out.read_text())["data"]
    assert [cell["cell"] for cell in found["cells"]] == [f"{name}.csv 5min" for name in ("a", "b", "ramp", "square")]
    ratios = [cell["models"]["champion"]["ratio"] for cell in found["cells"]]
    assert ratios[-1] is None  # the best naive forecast makes no error: there is nothing to be a multiple of
    assert found["summary"]["champion"]["ratio"] == pytest.approx(np.exp(np.mean(np.log(ratios[:-1]))))
    assert "champion, geometric means over 3 cells" in said.output
    refused = CliRunner().invoke(app, [*asked, "--page", str(tmp_path / "page.html")])
    assert refused.exit_code == 2 and "Name one" in refused.output


def test_where_the_best_naive_forecast_is_perfect_there_is_no_ratio(tmp_path):
    square = written(tmp_path / "square.csv", np.tile(np.repeat([20.0, 100.0], 144), 2))
    said = CliRunner().invoke(app, ["forecast", "evaluate", square, "--models", "yesterday"])
    assert said.exit_code == 0, said.output
    assert "makes no error" in said.output
