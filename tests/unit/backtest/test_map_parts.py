"""Going on with a value map from the figure of an earlier run."""

from functools import partial

import numpy as np
import pytest

from configs.errors import SettingsError
from models.forecast.core.series import Series
from models.twin.experiment.results import to_json_values
from models.twin.experiment.setup import Setup
from models.twin.sim.job import TwinJob
from pipelines.backtest.load import NamedLoad
from pipelines.backtest.value_map.parts import SAME, describe_inputs, read_parts
from pipelines.figures.form import Figure

WANTED = {name: [name] for name in SAME}


def write(path, data):
    path.write_text(Figure("tidecast backtest map", None, "2026-11-21", "2 cores", 1.0, [], data).to_text())
    return path


def test_lead_times_that_were_finished_are_taken(tmp_path):
    assert read_parts(tmp_path / "none.json", WANTED) == {}
    cell = {"lead_s": 60.0, "gap": 1.5, "hours": {}, "ratio": {"plan": 1.1}, "captured": {"plan": 0.5}}
    data = {**WANTED, "leads_s": [60.0, 180.0], "cells": [cell], "as_shipped": []}
    found = read_parts(write(tmp_path / "map.json", data), WANTED)
    assert found == {60.0: {"cells": [cell], "as_shipped": []}, 180.0: {"cells": [], "as_shipped": []}}


@pytest.mark.parametrize("data", [{**WANTED, "seeds": 7}, {"speed": 3.0}])
def test_a_figure_of_anything_else_is_not_gone_on_with(tmp_path, data):
    with pytest.raises(SettingsError, match=r"other\.json .*leave --resume out"):
        read_parts(write(tmp_path / "other.json", data), WANTED)


JOB = TwinJob(1.0, 0.005)


def inputs(load=5.0, agent=1, **setup):
    """What a map of one file was computed of."""
    trace = NamedLoad("web.csv", "", Series(0.0, 300.0, np.array([load, np.nan, 7.0])))
    learned = {"dqn": partial(int, agent)}
    return {**WANTED, **to_json_values(describe_inputs([trace], Setup(job=JOB, **setup), learned))}


def test_a_map_of_the_same_is_gone_on_with_at_other_lead_times(tmp_path):
    file = write(tmp_path / "map.json", {**inputs(lead_s=5.0), "leads_s": [5.0], "cells": [], "as_shipped": []})
    assert list(read_parts(file, inputs(lead_s=60.0))) == [5.0]


@pytest.mark.parametrize(
    ("named", "other"),
    [
        (r"setup\.latency_target_s 10\.0, and 30\.0", {"latency_target_s": 30.0}),
        (r"setup\.restarts False, and True", {"restarts": True}),
        (r"setup\.as_is False, and True", {"as_is": True}),
        (r"setup\.executors None, and 7", {"executors": 7}),
        (r"setup\.tune_days 4\.0, and 0\.5", {"tune_days": 0.5}),
        (r"digests\.traces\.web\.csv \w{16}, and \w{16}", {"load": 6.0}),
        (r"digests\.learned\.dqn \w{16}, and \w{16}", {"agent": 2}),
    ],
)
def test_a_map_under_another_setting_is_named_and_not_gone_on_with(tmp_path, named, other):
    file = write(tmp_path / "map.json", {**inputs(), "leads_s": [], "cells": [], "as_shipped": []})
    with pytest.raises(SettingsError, match=named):
        read_parts(file, inputs(**other))


def test_a_map_under_another_job_is_not_gone_on_with(tmp_path, monkeypatch):
    file = write(tmp_path / "map.json", {**inputs(), "leads_s": [], "cells": [], "as_shipped": []})
    monkeypatch.setattr(f"{__name__}.JOB", TwinJob(1.5, 0.005))
    with pytest.raises(SettingsError, match=r"setup\.job\.overhead_s 1\.0, and 1\.5"):
        read_parts(file, inputs())


def test_a_map_of_a_release_that_noted_less_is_not_gone_on_with(tmp_path):
    file = write(tmp_path / "map.json", {**WANTED, "setup": None, "leads_s": [], "cells": [], "as_shipped": []})
    with pytest.raises(SettingsError, match="unknown, and"):
        read_parts(file, inputs())


def test_another_commands_figure_is_not_gone_on_with(tmp_path):
    with pytest.raises(SettingsError, match="unknown, and"):
        read_parts(write(tmp_path / "list.json", []), WANTED)
