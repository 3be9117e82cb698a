"""A network that is stepped compiled says what torch says over the whole history at once, and where it comes from."""

import numpy as np
import pytest
import torch
from online_cases import NETWORKS, TASK, drawn, forecaster, load, series, spoilt

from models.forecast.core.forecaster import Task
from models.forecast.neural.flat_weights import extract
from models.forecast.neural.network import Network
from models.forecast.neural.recurrent import CELLS
from models.forecast.neural.training import Plan, fit_network
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
        whole = made.current(made.init(series(values[:end])))
        np.testing.assert_allclose(said[end - 301], whole, rtol=1e-5, atol=1e-5 * np.nanmax(values))


@pytest.mark.parametrize("name", NETWORKS)
def test_the_hidden_state_is_that_of_the_batch_pass(name):
    values = spoilt(load(600, 4), 4)
    made, online = forecaster(name), Online(forecaster(name))
    online.admit("a", series(values[:250]))
    for value in values[250:]:
        online.step("a", value)
    hidden = online._jobs["a"].tracks.hidden[0]
    np.testing.assert_allclose(hidden, made.init(series(values)).carried.hidden, atol=1e-5)
    assert np.abs(hidden).max() > 0.01


@pytest.mark.filterwarnings("ignore:The tensor attributes .*_flat_weights")  # they are parameters too
@pytest.mark.parametrize("cell", CELLS)
def test_an_exported_archive_of_a_trained_network_gives_the_same_bits_as_its_module(cell, tmp_path):
    network = fit_network(cell, TASK, series(load(24 * 16)), Plan(epochs=2), hidden=8)
    example = tuple(torch.zeros(2, *shape[1:]) for shape in shapes(network)[0].values())
    dynamic = tuple({0: torch.export.Dim.AUTO} for _ in example)
    torch.export.save(torch.export.export(network.module, example, dynamic_shapes=dynamic), tmp_path / "model.pt2")
    back = Network(network.view, torch.export.load(tmp_path / "model.pt2").module(), cell, network.carried)
    mine, theirs = Online(network), Online(back)
    for online in (mine, theirs):
        online.admit("a", series(load(300)))
    assert extract(back) is not None
    state = back.init(series(load(300)))
    for value in load(20, 5):
        state, plain = back.step(state, value)
        np.testing.assert_array_equal(mine.step("a", value), said := theirs.step("a", value))
        np.testing.assert_allclose(said, plain, rtol=1e-5, atol=1e-5 * plain.max())


class Foreign(torch.nn.Module):
    """The same parameters, another network."""

    def __init__(self, inner):
        super().__init__()
        for name, child in inner.named_children():
            setattr(self, name, child)
        for name, value in (*inner.named_parameters(recurse=False), *inner.named_buffers(recurse=False)):
            setattr(self, name, value) if isinstance(value, torch.nn.Parameter) else self.register_buffer(name, value)
        self.inner = [inner]

    def forward(self, row, hidden):
        moves, after = self.inner[0](row, hidden)
        return 2 * moves, after


@pytest.mark.parametrize("wrap", [Foreign, lambda module: lambda row, hidden: module(row, hidden)])
def test_a_module_of_another_make_is_stepped_as_it_is(wrap):
    network = drawn("gru", 24)
    strange = Network(network.view, wrap(network.module), "gru", network.carried)
    assert extract(network) is not None and extract(strange) is None
    online = Online(strange)
    online.admit("a", series(load(100)))
    state = strange.init(series(load(100)))
    for value in load(5, 2):
        state, said = strange.step(state, value)
        np.testing.assert_array_equal(online.step("a", value), said)


def test_a_long_horizon_and_many_levels():
    task = Task(1800.0, 12, (0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975))
    made = drawn("lstm", task.day, task)
    values = load(200, 1, task.day)
    online, state = Online(made), made.init(series(values, task))
    online.admit("a", series(values, task))
    for value in load(30, 2, task.day):
        state, plain = made.step(state, value)
        np.testing.assert_allclose(online.step("a", value), plain, rtol=1e-5, atol=1e-5 * plain.max())
    assert plain.shape == (12, 7) and TASK.horizon == 4
