import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.contract.slow.linear_model import LinearModel, gain, learn


def test_one_interval_by_hand():
    model, inputs = LinearModel.begin(1, 1), np.array([2.0])
    assert gain(model, inputs) == pytest.approx([0.401606], abs=5e-7)
    after = learn(model, inputs, np.array([3.0]))
    assert after.weights[0, 0] == pytest.approx(1.204819, abs=5e-7)
    assert after.spread[0, 0] == pytest.approx(0.200803, abs=5e-7)


def responses(chance, count, weights, noise=0.05):
    for _ in range(count):
        inputs = chance.normal(size=len(weights))
        yield inputs, inputs @ weights + noise * chance.normal(size=weights.shape[1])


def test_it_finds_the_sensitivities_and_is_quiet():
    chance, model = np.random.default_rng(1), LinearModel.begin(3, 2, spread=100.0)
    weights = np.array([[1.0, -2.0], [0.5, 0.0], [0.0, 3.0]])
    alarms = 0
    for inputs, outputs in responses(chance, 600, weights):
        model = learn(model, inputs, outputs)
        alarms += model.alarm
    assert model.weights == pytest.approx(weights, abs=0.05) and alarms == 0
    assert model.predict(np.array([1.0, 1.0, 1.0])) == pytest.approx([1.5, 1.0], abs=0.1)


def test_a_job_that_becomes_another_one_is_noticed_once_and_learned():
    chance, model = np.random.default_rng(2), LinearModel.begin(2, 1, spread=100.0)
    before, after = np.array([[1.0], [2.0]]), np.array([[1.0], [3.0]])
    for inputs, outputs in responses(chance, 200, before):
        model = learn(model, inputs, outputs)
        assert not model.alarm
    alarms = []
    for at, (inputs, outputs) in enumerate(responses(chance, 200, after)):
        model = learn(model, inputs, outputs)
        alarms += [at] if model.alarm else []
    assert len(alarms) == 1 and alarms[0] < 10
    assert model.weights == pytest.approx(after, abs=0.05)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_a_number_teaches_nothing(bad):
    model = learn(LinearModel.begin(2, 1), np.array([1.0, 2.0]), np.array([3.0]))
    for inputs, outputs in ((np.array([1.0, bad]), np.array([1.0])), (np.array([1.0, 1.0]), np.array([bad]))):
        same = learn(model, inputs, outputs)
        assert (same.weights == model.weights).all() and same.count == model.count and not same.alarm


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_what_is_never_excited_does_not_grow_without_end(seed, still):
    chance, model = np.random.default_rng(seed), LinearModel.begin(2, 1)
    for _ in range(300):
        inputs = np.array([1.0, 0.0 if still else chance.normal()])
        model = learn(model, inputs, inputs[:1] * 5)
    assert (
        np.isfinite(model.spread).all()
        and np.trace(model.spread) <= 1e8 / 0.98
        and (model.spread == model.spread.T).all()
    )
