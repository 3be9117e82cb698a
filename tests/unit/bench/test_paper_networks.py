"""The paper's networks: their size, their arithmetic, and that they learn and repeat themselves."""

import numpy as np
import pytest
import torch
from torch import nn

from models.forecast.core.scores import rmse
from pipelines.bench.table2.loads import Cell, count_training
from pipelines.bench.table2.networks import (
    CONTEXT,
    NETWORKS,
    SeededDropout,
    build_network,
    cut_windows,
    forecast_test,
    scale_loads,
    train_network,
)


def seeded(seed=1):
    return torch.Generator().manual_seed(seed)


def sine(points=400):
    rng = np.random.default_rng(5)
    return 100 + 40 * np.sin(2 * np.pi * np.arange(points) / 16) + rng.normal(0, 2, points)


def cell(loads, first):
    return Cell("IoT traffic", 300, 0.0, loads, first)


def learned(name, seed=1, epochs=3, points=200):
    generator, loads = seeded(seed), sine(points)
    model = build_network(name, generator)
    losses = list(train_network(model, scale_loads(cell(loads, points)), epochs, generator))
    return model, losses


@pytest.mark.parametrize(("name", "parameters"), [("gru", 37_889), ("cnn", 12_865), ("lstm", 50_497)])
def test_the_parameters_are_as_many_as_specified(name, parameters):
    assert sum(p.numel() for p in build_network(name, seeded()).parameters()) == parameters


def test_the_gru_has_as_many_per_layer_as_specified():
    cells = build_network("gru", seeded()).cells
    per_layer = [sum(p.numel() for n, p in cells.named_parameters() if n.endswith(f"l{k}")) for k in (0, 1)]
    assert per_layer == [12_864, 24_960]


def test_the_convolutions_shorten_as_specified():
    body, lengths = build_network("cnn", seeded()).eval().body, [CONTEXT]
    values = torch.zeros(1, 1, CONTEXT)
    for layer in body[:8]:
        values = layer(values)
        lengths.append(values.shape[-1])
    assert list(dict.fromkeys(lengths)) == [24, 22, 11, 9, 4]


def gru(inputs, hidden, layers=1):
    layer = nn.GRU(inputs, hidden, num_layers=layers)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.uniform_(-0.8, 0.8, generator=seeded())
    return layer


def test_the_reset_gate_acts_after_the_product():
    """W = [[0,1],[1,0]], h = (1,0), R = (1,0): torch's form says R·(W·h) = (0,0), the paper's W·(R·h) = (0,1)."""
    layer = gru(1, 2)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.zero_()
        layer.bias_ih_l0[:2] = torch.tensor([50.0, -50.0])  # r = (1, 0)
        layer.bias_ih_l0[2:4] = torch.tensor([-50.0, -50.0])  # z = 0: the state becomes the candidate
        layer.bias_ih_l0[4] = 50.0  # after one step from 0 the state is (1, 0)
        layer.weight_hh_l0[4:] = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
        first, second = layer(torch.zeros(2, 1, 1))[0][:, 0]
    assert first.tolist() == pytest.approx([1, 0])
    assert second[1].item() == pytest.approx(0.0)  # the paper's form: tanh(1)


def test_windows_and_the_split_are_as_specified():
    inputs, targets = cut_windows(torch.arange(100.0))
    assert inputs.shape == (100 - CONTEXT, CONTEXT) and targets[0] == CONTEXT
    assert (inputs[:, -1] + 1 == targets).all()
    assert [(count_training(n), n - count_training(n)) for n in (6048,)] == [(4838, 1210)]


def test_scaling_knows_the_training_part_only_and_comes_back():
    class Last(nn.Module):
        def forward(self, windows):
            return windows[:, -1]

    loads = np.array([*range(10, 50), 90.0, 95.0])
    found = scale_loads(cell(loads, 40))
    assert found[0] == 0 and found[39] == 1 and found[40] > 2
    np.testing.assert_allclose(forecast_test(Last(), cell(loads, 40)), loads[39:-1], rtol=1e-6)


@pytest.mark.study
@pytest.mark.parametrize("name", NETWORKS)
def test_each_network_learns_a_sine_and_beats_the_last_value(name):
    loads, generator = sine(400), seeded()
    at = count_training(len(loads))
    model = build_network(name, generator)
    losses = list(train_network(model, scale_loads(cell(loads, at))[:at], 6, generator))
    assert losses[-1] < 0.5 * losses[0]
    forecast = forecast_test(model, cell(loads, at))
    assert rmse(loads[at:], forecast) < 0.7 * rmse(loads[at:], loads[at - 1 : -1])


@pytest.mark.parametrize("name", NETWORKS)
def test_the_same_seed_gives_the_same_weights_and_another_does_not(name):
    (one, first), (two, second), (other, _) = (learned(name, seed, epochs=1, points=100) for seed in (1, 1, 2))
    assert first == second
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_nothing_global_decides_over_the_weights():
    runs = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        runs.append(learned("gru", epochs=1, points=80)[0].state_dict())
    assert all(torch.equal(runs[0][name], runs[1][name]) for name in runs[0])


def test_dropout_drops_its_share_and_keeps_the_mean():
    dropout, ones = SeededDropout(0.2, seeded()), torch.ones(20_000)
    dropped = dropout(ones)
    assert (dropped == 0).float().mean().item() == pytest.approx(0.2, abs=0.01)
    assert dropped.mean().item() == pytest.approx(1.0, abs=0.01)
    assert torch.equal(dropout.eval()(ones), ones)
