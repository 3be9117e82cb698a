"""The networks must be seen to learn, to be reproducible, and to say the same stepwise as in a batch."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from online_cases import drawn_module, forecaster, spoilt

from models.forecast.baselines.naive import Naive
from models.forecast.core.forecaster import Task, fill_gaps
from models.forecast.core.series import Series, SeriesError
from models.forecast.neural.cells import CELLS
from models.forecast.neural.network import as_forecaster
from models.forecast.neural.recurrent import Recurrent
from models.forecast.neural.training import TrainingPlan, fit_network, pinball_loss, train_network
from models.forecast.neural.windows import PastWindow, input_rows, season_of
from models.forecast.selection.backtest import roll
from models.kinds import KindError, describe, revive

TASK = Task(3600.0, 4, (0.1, 0.5, 0.9))
SHORT = TrainingPlan(epochs=2)


def load(days, seed=1):
    """A daily cycle and what looks like noise to a line, and is none: the logistic map, spoilt a little."""
    rng, hours = np.random.default_rng(seed), np.arange(24 * days)
    chaos = [rng.uniform(0.2, 0.8)]
    for _ in hours[1:]:
        chaos.append(3.8 * chaos[-1] * (1 - chaos[-1]))
    return 150 + 60 * np.sin(2 * np.pi * hours / 24) + 60 * np.array(chaos) + rng.normal(0, 1, len(hours))


def series(values):
    return Series(0.0, 3600.0, np.asarray(values, dtype=float))


def drawn(cell, season=24, hidden=8):
    """A network that was drawn by chance, its head and widths too; untrained, and far from its linear start."""
    generator = torch.Generator().manual_seed(4)
    view = PastWindow(TASK, season)
    module = Recurrent(view, cell, hidden, generator)
    with torch.no_grad():
        for weight in (module.linear, module.head.weight, module.width, module.steep):
            weight.normal_(0.0, 0.1, generator=generator)
    return as_forecaster(module, view, 0.0)


@pytest.fixture(scope="module")
def learned():
    older, held = series(load(40, seed=2)).split(168)
    generator, view = torch.Generator().manual_seed(7), PastWindow(TASK, season_of(TASK, len(older)))
    module = Recurrent(view, "gru", 16, generator)
    epochs = list(train_network(module, view, older, TrainingPlan(epochs=10, learning_rate=3e-2), generator))
    return as_forecaster(module, view, older.end), epochs, older, held


@pytest.mark.study
def test_it_beats_the_naive_forecasts_and_its_own_linear_start(learned):
    network, _, older, held = learned
    figures = roll(network, older, held).scores()
    for rival in (Naive(TASK), Naive(TASK, seasonal=False)):
        naive = roll(rival, older, held).scores()
        assert figures["pinball"] < 0.8 * naive["pinball"]
        assert figures["rmse_h1"] < naive["rmse_h1"]
    linear = roll(fit_network("gru", TASK, older, TrainingPlan(epochs=0)), older, held).scores()
    assert figures["pinball"] < 0.7 * linear["pinball"] and figures["rmse_h1"] < 0.5 * linear["rmse_h1"]


@pytest.mark.parametrize("cell", CELLS)
def test_it_learns_a_sine(cell):
    hours = np.arange(24 * 12)
    older, held = series(100 + 50 * np.sin(2 * np.pi * hours / 24.7)).split(48)
    learned = roll(fit_network(cell, TASK, older, SHORT, hidden=8), older, held).scores()
    assert learned["rmse"] < 0.1 * roll(Naive(TASK, seasonal=False), older, held).scores()["rmse"]


def test_the_search_learns_from_its_start(learned):
    _, epochs, _, _ = learned
    search = [e for e in epochs if e.phase == "search"]
    assert search[0].index == 0 and min(e.validation_loss for e in search[1:]) < search[0].validation_loss
    assert search[-1].train_loss < search[1].train_loss
    best = min(search, key=lambda e: e.validation_loss).index
    assert [e.index for e in epochs if e.phase == "refit"] == list(range(1, best + 1))


def test_a_history_that_ends_in_a_long_gap_is_judged_by_what_came_before_it():
    generator, view = torch.Generator().manual_seed(3), PastWindow(TASK, 24)
    module = Recurrent(view, "gru", 8, generator)
    history = series(np.append(load(12), np.full(72, math.nan)))
    epochs = list(train_network(module, view, history, TrainingPlan(epochs=3, learning_rate=3e-2), generator))
    search = [e.validation_loss for e in epochs if e.phase == "search"]
    assert len(search) == 4 and min(search) > 0
    assert sum(e.phase == "refit" for e in epochs) == np.argmin(search) > 0


def test_the_same_seed_gives_the_same_weights_and_another_does_not():
    def weights(seed):
        generator, view = torch.Generator().manual_seed(seed), PastWindow(TASK, 24)
        module = Recurrent(view, "gru", 8, generator)
        list(train_network(module, view, series(load(8)), SHORT, generator))
        return module.state_dict()

    first, second, other = weights(3), weights(3), weights(4)
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not all(torch.equal(first[name], other[name]) for name in first)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("season", [24, 168])
@pytest.mark.parametrize("cell", CELLS)
def test_it_says_what_torch_says_step_by_step_and_at_once(cell, season, dtype):
    module, view = drawn_module(cell, season)
    network, values = as_forecaster(module, view, 0.0), spoilt(load(18), 3)
    values[0] = 100.0  # known, so that torch's pass begins there, too
    reading = input_rows(view, fill_gaps(values, TASK)[None])
    rows, nothing = torch.from_numpy(reading.rows).to(dtype), torch.zeros(1, module.carried, dtype=dtype)
    with torch.no_grad():
        moves, hidden = module.to(dtype).run_rows(rows, nothing)
    roots = reading.anchor[..., None, None] + reading.unit[..., None, None] * moves.numpy().astype(float)
    expected = np.maximum(roots, 0.0)[0] ** 2
    state, stepped = network.state_after(series([])), []
    for value in values:
        state, quantiles = network.step(state, value)
        stepped.append(quantiles)
    near = {"rtol": 1e-5, "atol": 1e-5 * np.nanmax(values)}
    np.testing.assert_allclose(stepped[view.needs - 1 :], expected, **near)
    at_once = network.state_after(series(values))
    np.testing.assert_allclose(network.quantiles_of(at_once), expected[-1], **near)
    for mine in (state, at_once):
        np.testing.assert_allclose(mine.carried.hidden, hidden[0], atol=1e-5)
    assert np.abs(state.carried.hidden).max() > 0.01


@pytest.mark.parametrize(
    ("update", "states"),  # by hand, (1 − z)·tanh(1) + z·h: of z = 1/2, then of 3/4, which tells z from 1 − z
    [(0.0, [0.380797, 0.571196, 0.666395, 0.713995]), (math.log(3), [0.190399, 0.333197, 0.440296, 0.520621])],
)
def test_the_states_of_a_gru_by_hand(update, states):
    view = PastWindow(TASK, 24)
    module = Recurrent(view, "gru", 2, torch.Generator())
    with torch.no_grad():
        for weight in module.rnn.parameters():
            weight.zero_()
        module.rnn.bias_ih_l0[2:4], module.rnn.bias_ih_l0[4:] = update, 1.0  # reset, update, candidate
    network, values = as_forecaster(module, view, 0.0), load(9)
    state, found = network.state_after(series(values[: view.needs - 1])), []
    for value in values[view.needs - 1 :][:4]:
        state, _ = network.step(state, float(value))
        found.append(state.carried.hidden)
    np.testing.assert_allclose(found, np.transpose([states, states]), atol=1e-6)


@pytest.mark.parametrize("cell", CELLS)
def test_quantiles_rise_and_stay_above_zero_whatever_comes(cell):
    network = drawn(cell)
    state = network.state_after(series(load(4)))
    for value in (0.0, 1e6, math.nan, 0.0, 3.0, *np.zeros(30), 1e-3):
        state, quantiles = network.step(state, value)
        assert np.isfinite(quantiles).all() and (quantiles >= 0).all()
        assert (np.diff(quantiles, axis=1) >= 0).all()


def test_a_load_ten_times_as_high_gets_forecasts_ten_times_as_high(learned):
    network, _, older, _ = learned
    plain, higher = network.state_after(older), network.state_after(replace(older, values=10 * older.values))
    np.testing.assert_allclose(network.quantiles_of(higher), 10 * network.quantiles_of(plain), rtol=1e-4)


def test_its_upper_quantile_covers_about_as_much_as_it_says(learned):
    network, _, older, held = learned
    assert 0.75 <= roll(network, older, held).scores()["coverage_0.9"] <= 1.0


@pytest.mark.parametrize(
    ("steps", "trust"),
    [
        (0, "none"),
        (5, "last value"),
        (24, "same time yesterday"),
        (168, "same time last week"),
        (191, "same time last week"),
        (192, "network"),
    ],
)
def test_until_the_history_suffices_the_naive_forecast_stands_in(steps, trust):
    network = drawn("gru", season=168)
    assert network.view.needs == 168 + 24
    state = network.state_after(series(load(10)[:steps]))
    assert network.basis(state) == trust
    if trust != "network":
        naive = Naive(TASK)
        np.testing.assert_array_equal(
            network.quantiles_of(state), naive.quantiles_of(naive.state_after(series(load(10)[:steps])))
        )
        return
    assert network.basis(network.step(network.state_after(series(load(10)[: steps - 1])), 50.0)[0]) == "network"


def test_two_days_of_history_are_enough_to_train():
    network = fit_network("lstm", TASK, series(load(2)), TrainingPlan(epochs=1), hidden=4)
    assert network.view.season == 24
    state = network.state_after(series(load(2)))
    assert network.basis(state) == "network" and np.isfinite(network.quantiles_of(state)).all()


@pytest.mark.parametrize("values", [np.full(120, 0.01), np.full(120, 7.0)])
def test_a_constant_series_is_forecast_as_it_is(values):
    network = fit_network("gru", TASK, series(values), TrainingPlan(epochs=1), hidden=4)
    quantiles = network.quantiles_of(network.state_after(series(values)))
    assert np.isfinite(quantiles).all()
    np.testing.assert_allclose(quantiles[:, 1], values[0], atol=0.1)


def test_days_without_records_do_not_spoil_it():
    """In units of such a day the first load after it is a move of thousands."""
    hours = np.arange(24 * 35)
    work = (hours // 24 % 7 < 5) & (hours % 24 >= 8) & (hours % 24 < 18)
    older, held = series(np.where(work, load(35), 0.0)).split(7 * 24)
    network = fit_network("gru", TASK, older, TrainingPlan(epochs=1), hidden=4)
    figures, naive = (roll(one, older, held).scores()["pinball"] for one in (network, Naive(TASK)))
    assert figures < 2 * naive


@pytest.mark.parametrize(("values", "why"), [(load(1), "needs at least"), (np.zeros(120), "120 are without records")])
def test_a_history_that_teaches_nothing_is_refused(values, why):
    with pytest.raises(SeriesError, match=why):
        fit_network("gru", TASK, series(values), SHORT)


def test_the_loss_is_the_score():
    quantiles, outcomes = torch.tensor([[[12.0, 8.0]]]), torch.tensor([[10.0]])
    assert pinball_loss(quantiles, outcomes, (0.1, 0.9)).item() == pytest.approx(1.8)
    assert pinball_loss(quantiles, torch.tensor([[math.nan]]), (0.1, 0.9)).item() == 0.0


def test_a_described_naive_forecaster_comes_back():
    for naive in (Naive(TASK), Naive(TASK, seasonal=False)):
        assert describe(revive(describe(naive))) == describe(naive)


@pytest.mark.parametrize("cell", CELLS)
def test_a_network_is_kept_as_data_and_comes_back(cell):
    network = drawn(cell)
    assert revive(json.loads(json.dumps(describe(network)))) == network


def test_an_adapted_network_without_its_module_is_refused():
    with pytest.raises(KindError, match="needs its module"):
        revive(describe(forecaster("adapted")))


@pytest.mark.parametrize(("change", "word"), [({"hidden": 7}, "weights; "), ({"season": []}, r"season of \[\] steps")])
def test_a_network_whose_description_does_not_fit_is_refused(change, word):
    described = describe(drawn("gru"))
    with pytest.raises(ValueError, match=word):
        revive({**described, "parameters": {**described["parameters"], **change}})
    with pytest.raises(ValueError, match="weights; "):
        revive({**described, "kind": "lstm"})
    del described["parameters"]["until"]
    with pytest.raises(KindError, match="lacks 'until'"):
        revive(described)


def test_a_state_of_another_cell_is_refused():
    history = series(load(4))
    wide, narrow = drawn("gru", hidden=8), drawn("gru", hidden=4)
    with pytest.raises(ValueError, match="shape"):
        narrow.step(wide.state_after(history), 50.0)


@pytest.mark.parametrize(("change", "word"), [({"kind": "prophet"}, "prophet"), ({"levels": None}, "lacks 'levels'")])
def test_a_description_of_something_else_is_refused(change, word):
    described = {**describe(Naive(TASK)), **change}
    with pytest.raises(KindError, match=word):
        revive({key: value for key, value in described.items() if value is not None})
