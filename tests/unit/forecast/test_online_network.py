"""A network that is stepped says what torch says over the whole history at once, and where it comes from."""

import numpy as np
import pytest
import torch
from online_cases import NETWORKS, TASK, forecaster, load, series, spoilt

from models.forecast.neural.network import Network
from models.forecast.neural.recurrent import CELLS
from models.forecast.neural.training import TrainingPlan, fit_network
from models.forecast.online import Online
from models.kinds import shapes


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("seed", [1, 2])
def test_carried_from_step_to_step_it_is_the_batch_pass(name, seed):
    values = spoilt(load(700, seed), seed)
    made, online = forecaster(name), Online(forecaster(name))
    online.admit("a", series(values[:300]))
    said = [online.step("a", value) for value in values[300:]]
    for end in (301, 420, 700):
        whole = made.quantiles_of(made.state_after(series(values[:end])))
        np.testing.assert_allclose(said[end - 301], whole, rtol=1e-5, atol=1e-5 * np.nanmax(values))


@pytest.mark.parametrize("name", NETWORKS)
def test_the_hidden_state_is_that_of_the_batch_pass(name):
    values = spoilt(load(600, 4), 4)
    made, online = forecaster(name), Online(forecaster(name))
    online.admit("a", series(values[:250]))
    for value in values[250:]:
        online.step("a", value)
    hidden = online._jobs["a"].kept.carried.hidden
    np.testing.assert_allclose(hidden, made.state_after(series(values)).carried.hidden, atol=1e-5)
    assert np.abs(hidden).max() > 0.01


@pytest.mark.filterwarnings("ignore:The tensor attributes .*_flat_weights")  # they are parameters too
@pytest.mark.parametrize("cell", CELLS)
def test_an_exported_archive_of_a_trained_network_says_what_its_module_says(cell, tmp_path):
    network = fit_network(cell, TASK, series(load(24 * 16)), TrainingPlan(epochs=2), hidden=8)
    example = tuple(torch.zeros(2, *shape[1:]) for shape in shapes(network)[0].values())
    dynamic = tuple({0: torch.export.Dim.AUTO} for _ in example)
    torch.export.save(torch.export.export(network.module, example, dynamic_shapes=dynamic), tmp_path / "model.pt2")
    back = Network(network.view, torch.export.load(tmp_path / "model.pt2").module(), cell, network.carried)
    mine, theirs = Online(network), Online(back)
    for online in (mine, theirs):
        online.admit("a", series(load(300)))
    for value in load(20, 5):
        expected = mine.step("a", value)
        np.testing.assert_allclose(theirs.step("a", value), expected, rtol=1e-5, atol=1e-5 * expected.max())
