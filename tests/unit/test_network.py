"""The network must be seen to learn, to be reproducible, and to say the same stepwise as in a batch."""

import math

import numpy as np
import pytest
import torch

from models.forecast.backtest import roll
from models.forecast.forecaster import Task
from models.forecast.kinds import KindError, describe, revive
from models.forecast.naive import Naive
from models.forecast.series import Series, SeriesError
from models.forecast.training import Plan, build, fit, pinball, trained
from models.forecast.windows import View, season_of, windows

TASK = Task(3600.0, 4, (0.1, 0.5, 0.9))
PLAN = Plan(epochs=15, learning_rate=5e-3)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """So small a network is faster alone, and much faster beside other work."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def load(days, seed=1):
    """A daily cycle that drifts, so that yesterday is beatable, with calm and rough spells, so that widths matter."""
    rng, hours = np.random.default_rng(seed), np.arange(24 * days)
    drift, rough = np.zeros(len(hours)), False
    for i in range(1, len(hours)):
        rough = rough != (rng.random() < 1 / 30)
        drift[i] = 0.9 * drift[i - 1] + rng.normal(0, 14 if rough else 1)
    return np.maximum(150 + 60 * np.sin(2 * np.pi * hours / 24) + drift, 0)


def series(values):
    return Series(0.0, 3600.0, np.asarray(values, dtype=float))


def learn(history, seed=7, plan=PLAN):
    view = View(TASK, 12, season_of(TASK, len(history)))
    generator = torch.Generator().manual_seed(seed)
    network = build(view, history, 16, generator)
    epochs = list(fit(network, view, history, plan, generator))
    return trained(network, view), epochs


@pytest.fixture(scope="module")
def learned():
    older, held = series(load(60, seed=2)).split(240)
    return learn(older), older, held


def test_it_beats_the_naive_forecasts(learned):
    (network, _), older, held = learned
    loss = roll(network, older, held).figures()
    for rival in (Naive(TASK), Naive(TASK, seasonal=False)):
        naive = roll(rival, older, held).figures()
        assert loss["pinball"] < 0.8 * naive["pinball"]
        assert loss["rmse_h1"] < naive["rmse_h1"]


def test_the_search_learns_from_its_start(learned):
    (_, epochs), _, _ = learned
    search = [e for e in epochs if e.phase == "search"]
    assert search[0].index == 0 and min(e.validation_loss for e in search[1:]) < search[0].validation_loss
    assert search[-1].train_loss < search[1].train_loss
    best = min(search, key=lambda e: e.validation_loss).index
    assert [e.index for e in epochs if e.phase == "refit"] == list(range(1, best + 1))


def test_the_same_seed_gives_the_same_weights_and_another_does_not():
    history = series(load(8))
    runs = [learn(history, seed, Plan(epochs=2))[0].module.state_dict() for seed in (3, 3, 4)]
    assert all(torch.equal(runs[0][name], runs[1][name]) for name in runs[0])
    assert not all(torch.equal(runs[0][name], runs[2][name]) for name in runs[0])


def test_stepping_equals_the_batch(learned):
    (network, _), older, held = learned
    stepped = roll(network, older, held).quantiles
    whole = series(np.append(older.values, held.values))
    packed, _ = windows(network.view, whole)
    with torch.no_grad():
        batch = network.module(torch.from_numpy(packed)).numpy()
    count = len(held) - TASK.horizon + 1  # a batch row needs its outcomes
    np.testing.assert_allclose(stepped[:count], batch[-count:], rtol=2e-5, atol=1e-3)


def test_quantiles_rise_and_stay_above_zero_whatever_comes(learned):
    (network, _), older, _ = learned
    state = network.init(older)
    for value in (0.0, 1e6, math.nan, 0.0, 3.0, *np.zeros(30)):
        state, quantiles = network.step(state, value)
        assert np.isfinite(quantiles).all() and (quantiles >= 0).all()
        assert (np.diff(quantiles, axis=1) >= 0).all()


def test_its_upper_quantile_covers_about_as_much_as_it_says(learned):
    (network, _), older, held = learned
    assert 0.75 <= roll(network, older, held).figures()["coverage_0.9"] <= 1.0


@pytest.mark.parametrize(
    ("steps", "trust"), [(0, "none"), (5, "last value"), (24, "same time yesterday"), (168, "same time last week")]
)
def test_until_the_history_suffices_the_naive_forecast_stands_in(learned, steps, trust):
    (network, _), older, _ = learned
    assert network.view.needs == 168 + 24 + 12
    history = series(older.values[:steps])
    state = network.init(history)
    assert network.trust(state) == trust
    naive = Naive(TASK)
    np.testing.assert_array_equal(network.current(state), naive.current(naive.init(history)))


def test_it_takes_over_when_the_history_suffices(learned):
    (network, _), older, _ = learned
    state = network.init(series(older.values[:203]))
    assert network.trust(state) == "same time last week"
    state, _ = network.step(state, 50.0)
    assert network.trust(state) == "network"


def test_four_days_of_history_are_enough_to_train():
    network, _ = learn(series(load(4)), plan=Plan(epochs=1))
    assert network.view.season == 24
    state = network.init(series(load(4)))
    assert network.trust(state) == "network" and np.isfinite(network.current(state)).all()


@pytest.mark.parametrize("values", [np.zeros(120), np.full(120, 7.0)])
def test_a_constant_series_is_forecast_as_it_is(values):
    network, _ = learn(series(values), plan=Plan(epochs=1))
    quantiles = network.current(network.init(series(values)))
    assert np.isfinite(quantiles).all()
    np.testing.assert_allclose(quantiles[:, 1], values[0], atol=0.1)


def test_too_short_a_history_is_refused():
    with pytest.raises(SeriesError, match="need at least"):
        learn(series(load(2)))


def test_the_loss_is_the_score():
    quantiles, outcomes = torch.tensor([[[12.0, 8.0]]]), torch.tensor([[10.0]])
    assert pinball(quantiles, outcomes, (0.1, 0.9)).item() == pytest.approx(1.8)
    assert pinball(quantiles, torch.tensor([[math.nan]]), (0.1, 0.9)).item() == 0.0


def test_a_described_forecaster_comes_back(learned):
    (network, _), _, _ = learned
    for forecaster in (network, Naive(TASK), Naive(TASK, seasonal=False)):
        back = revive(describe(forecaster), network.module)
        assert describe(back) == describe(forecaster)


@pytest.mark.parametrize(("change", "word"), [({"kind": "prophet"}, "prophet"), ({"levels": None}, "lacks 'levels'")])
def test_a_description_of_something_else_is_refused(change, word):
    described = {**describe(Naive(TASK)), **change}
    with pytest.raises(KindError, match=word):
        revive({key: value for key, value in described.items() if value is not None})
