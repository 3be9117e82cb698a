import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from configs.errors import SettingsError
from pipelines.backtest.value_map import compute
from pipelines.cli.app import app

ASKED = ["--policies", "hpa,reactive,mpc", "--seeds", "1", "--knobs", "4", "--processes", "1"]


def load(path, phase):
    """A CSV of 80 minutes with a wave of half an hour."""
    path.parent.mkdir(exist_ok=True)
    values = 100 + 80 * np.sin(np.arange(480) / 28.6 + phase)
    rows = [f"{1_700_000_000 + 10 * i},{value:.1f}" for i, value in enumerate(values)]
    path.write_text("\n".join(["time,value", *rows]) + "\n")
    return str(path)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A small map of two loads through the front door."""
    folder = tmp_path_factory.mktemp("map")
    loads = [load(folder / "early.csv", 0.0), load(folder / "late.csv", 1.0)]
    written = ["--json", str(folder / "map.json"), "--page", str(folder / "map.html")]
    asked = ["backtest", "map", *loads, "--lead-s", "60", *ASKED, *written]
    done = CliRunner().invoke(app, asked, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output, json.loads((folder / "map.json").read_text())["data"], (folder / "map.html").read_text(), asked


def test_a_map_of_ones_own_loads_has_a_cell_per_load_lead_time_and_share(run):
    found = run[1]
    assert found["traces"] == ["early.csv", "late.csv"] and found["leads_s"] == [60.0]
    assert [(cell["trace"], cell["violation"]) for cell in found["cells"]] == [
        ("early.csv", 0.01), ("early.csv", 0.001), ("late.csv", 0.01), ("late.csv", 0.001),
    ]  # fmt: skip
    assert all(cell["best_reactive"] in (None, "hpa", "reactive") for cell in found["cells"])


def test_nobody_beats_the_optimum_and_ours_is_held_against_the_best_reactive_policy(run):
    for cell in (cell for cell in run[1]["cells"] if cell["violation"] == 0.01):
        hours = cell["hours"]
        assert hours["optimum"] <= 1.01 * min(cost for cost in hours.values() if cost is not None)
        assert hours[cell["best_reactive"]] == min(hours["hpa"], hours["reactive"])
        assert cell["gap"] == pytest.approx(1 - hours["true_future"] / hours[cell["best_reactive"]])
        assert cell["ratio"]["mpc"] == pytest.approx(hours["mpc"] / hours[cell["best_reactive"]])


def test_table_and_page_name_the_loads_and_sum_them_up(run):
    output, _, page, _ = run
    for text in (output, page):
        assert "early.csv" in text and "late.csv" in text and "captures" in text
    assert "Is forecasting worth it" in page


def test_two_loads_of_one_name_are_refused_before_anything_is_computed(tmp_path):
    loads = [load(tmp_path / side / "load.csv", 0.0) for side in ("a", "b")]
    with pytest.raises(SettingsError, match=r"two traces are called load\.csv"):
        CliRunner().invoke(app, ["backtest", "map", *loads, *ASKED], catch_exceptions=False)


def test_a_map_that_is_resumed_keeps_its_lead_times_and_refuses_another_map(run, monkeypatch):
    """Marked figures show that they were taken, not computed anew; `run` has had a process for what it computed."""
    monkeypatch.setattr(compute, "worker_pool", lambda processes, _: ThreadPoolExecutor(processes))
    _, data, _, asked = run
    file = Path(asked[asked.index("--json") + 1])
    written = json.loads(file.read_text())
    written["data"]["cells"][0]["hours"]["hpa"] = 77.0
    file.write_text(json.dumps(written))
    done = CliRunner().invoke(app, [*asked, "--resume"], catch_exceptions=False)
    again = json.loads(file.read_text())["data"]
    assert done.exit_code == 0 and again["cells"][0]["hours"]["hpa"] == 77.0
    assert {key: again[key] for key in data if key != "cells"} == {key: data[key] for key in data if key != "cells"}
    assert again["cells"][1:] == data["cells"][1:]
    other = [*asked[: asked.index("--lead-s") + 1], "90", *asked[asked.index("--lead-s") + 2 :], "--resume"]
    assert CliRunner().invoke(app, other, catch_exceptions=False).exit_code == 0
    both = json.loads(file.read_text())["data"]
    assert both["leads_s"] == [60.0, 90.0] and [one for one in both["cells"] if one["lead_s"] == 60] == again["cells"]
    asked[asked.index("--seeds") + 1] = "2"
    with pytest.raises(SettingsError, match=r"holds figures with seeds 1, and 2 is asked for"):
        CliRunner().invoke(app, [*asked, "--resume"], catch_exceptions=False)
