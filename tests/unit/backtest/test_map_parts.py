"""Going on with a value map from the figure of an earlier run."""

import pytest

from configs.errors import SettingsError
from pipelines.backtest.value_map.parts import SAME, read_parts
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
