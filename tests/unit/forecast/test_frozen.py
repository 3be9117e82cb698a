"""A network as data and compiled says what torch says."""

import base64
import json
from dataclasses import asdict, replace

import numpy as np
import pytest
from online_cases import TASK, drawn, load, series, spoilt

from models.forecast.core.forecaster import Task
from models.forecast.core.tracks import Ring
from models.forecast.neural.compiled import step_network
from models.forecast.neural.frozen import FrozenNetwork, freeze


def frozen(season=24):
    return freeze(drawn("gru", season), 0.0)


@pytest.mark.parametrize("season", [24, 168])
def test_its_compiled_step_says_what_torch_says(season):
    network, values = drawn("gru", season), spoilt(load(420), 3)
    track = network.begin(series([]))
    compiled, hidden, made = frozen(season).compiled(TASK), np.zeros(network.carried), np.empty((4, 3))
    ring = Ring(TASK, track.kept)
    for value in values:
        track.step(value)
        ring.push(value)
        if ring.seen >= network.view.needs:
            step_network(compiled, ring.buffer, ring.end, hidden, made)
            np.testing.assert_allclose(made, track.quantiles, rtol=1e-4, atol=1e-5 * np.nanmax(values))
    np.testing.assert_allclose(hidden, track.kept.carried.hidden, atol=1e-4)
    assert np.abs(hidden).max() > 0.01


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
        replace(frozen(), **change).compiled(TASK)


def test_weights_of_another_task_are_refused():
    with pytest.raises(ValueError, match="weights; "):
        frozen().compiled(Task(TASK.step_s, 5, TASK.levels))
    with pytest.raises(TypeError, match="lstm, Recurrent: a GRU"):
        freeze(drawn("lstm", 24), 0.0)
