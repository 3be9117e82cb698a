"""A network as data: what it is kept as, and what is refused."""

import base64
import json
from dataclasses import asdict, replace

import numpy as np
import pytest
from online_cases import TASK, drawn

from models.forecast.core.forecaster import Task
from models.forecast.neural.frozen import FrozenNetwork


def frozen(season=24):
    return drawn("gru", season).frozen


def test_it_is_data_that_json_holds_and_that_compares():
    made = frozen()
    assert FrozenNetwork(**json.loads(json.dumps(asdict(made)))) == made != frozen(168)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden": 9}, "168 weights; 189 finite ones"),
        ({"season": 25}, "a season of 25 steps"),
        ({"until": float("nan")}, "trained until nan"),
        ({"hidden": 10**9}, "of 1000000000 units"),
        ({"weights": {**frozen().weights, "bias": base64.b64encode(np.full(4, np.nan, "<f4")).decode()}}, "bias has 4"),
        ({"weights": {**frozen().weights, "bias": "?"}}, "base64|padding"),
    ],
)
def test_what_is_no_such_network_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        replace(frozen(), **change).compiled(TASK, "gru")


def test_weights_of_another_task_or_cell_are_refused():
    with pytest.raises(ValueError, match="weights; "):
        frozen().compiled(Task(TASK.step_s, 5, TASK.levels), "gru")
    with pytest.raises(ValueError, match="weights; "):
        frozen().compiled(TASK, "lstm")
