"""Networks that releases kept as archives which served them by torch: read as data, they are what they were."""

import json

import numpy as np
import pytest

from models.forecast.neural.cells import CELLS
from models.kinds import KindError, revive
from pipelines.registry.network_archive import load_network
from pipelines.serve.models.model_set import ModelSetError, load_members, pack_model
from tests.fakes.forecasters import network, older_network, series


@pytest.fixture(scope="module")
def older():
    return {cell: older_network(cell) for cell in CELLS}


@pytest.fixture(scope="module")
def module(older):
    return load_network(older["gru"][1])


def members(described, archive):
    """As a store holds them that an older release wrote."""
    return {"weights": archive, "scaler": b"{}", "hyper": json.dumps({**described, "carry": True}).encode()}


@pytest.mark.parametrize("cell", CELLS)
def test_the_model_of_an_older_store_is_the_network_it_was(older, cell):
    kept = members(*older[cell])
    found = load_members(kept)
    assert found.forecaster == network(cell) and found.members == kept
    made = pack_model(found.forecaster, kept["weights"])
    assert made.forecaster == found.forecaster and json.loads(made.members["hyper"])["carry"] is False
    np.testing.assert_array_equal(
        made.forecaster.begin(series(100)).quantiles, network(cell).begin(series(100)).quantiles
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"carried": 7}, "weights; "),
        ({"season": 168}, "weights; "),
        ({"season": 25}, "a season of 25"),
        ({"levels": [0.5]}, "weights; 3 finite"),
        ({"kind": "lstm", "carried": 8}, "weights; "),
        ({"season": []}, "not as this code has it"),
        ({"carried": None}, "not as this code has it"),
    ],
)
def test_a_description_that_does_not_fit_the_archive_is_refused(older, module, change, message):
    described, archive = older["gru"]
    with pytest.raises(ValueError, match=message):
        revive({**described, **change}, module)
    with pytest.raises(ModelSetError, match="makes no forecaster"):
        load_members(members({**described, **change}, archive))


def test_an_archive_of_something_else_is_refused(older):
    described, _ = older["gru"]
    with pytest.raises(KindError, match="lacks 'parameters'"):
        revive(described)
