"""A blend that carries a network: silent on what it was trained on, then heard as far as it is good."""

import json

import msgspec
import numpy as np
import pytest
from online_cases import HOUR, TASK, drawn, load, networked, series, spoilt

from configs.sections import Training
from models.forecast.blend.blend import Blend
from models.forecast.blend.networked import NetworkedBlend
from models.forecast.core.series import Series
from models.forecast.core.state import OnlineError
from models.forecast.neural.training import TrainingPlan, fit_network
from models.forecast.selection.backtest import roll
from models.forecast.selection.catalogue import fit_networked
from models.kinds import KindError, describe, revive
from pipelines.train.forecaster.candidates import Candidates


def test_until_its_training_ends_it_is_the_blend_bit_by_bit():
    values = load(220)
    values[[40, 150, 151, 212]] = np.nan
    mine, plain = networked().begin(series(values[:100])), Blend(TASK).begin(series(values[:100]))
    for value in values[100:215]:
        mine.step(value)
        plain.step(value)
        np.testing.assert_array_equal(mine.quantiles, plain.quantiles)
        assert mine.basis() == plain.basis() != "networked_blend"
    mine.step(values[215])
    plain.step(values[215])
    assert mine.basis() == "networked_blend" and (mine.quantiles != plain.quantiles).any()


def test_its_first_mix_is_seven_parts_blend_and_three_parts_network():
    values = load(216)
    found = [one.begin(series(values)).quantiles for one in (networked(), Blend(TASK), drawn("gru", 24))]
    np.testing.assert_allclose(found[0], 0.7 * found[1] + 0.3 * found[2], rtol=1e-4)


def test_a_history_taken_at_once_is_the_history_stepped_through():
    values = spoilt(load(300), 4)
    at_once, one_by_one = networked().begin(series(values)), networked().begin(series([]))
    for value in values:
        one_by_one.step(value)
    np.testing.assert_allclose(one_by_one.quantiles, at_once.quantiles, rtol=1e-9)


def test_every_forecast_rises_and_is_not_negative():
    track = networked().begin(series(load(216)))
    for value in spoilt(load(120, 7), 6):
        track.step(value)
        assert (track.quantiles >= 0).all() and (np.diff(track.quantiles, axis=1) >= 0).all()


def restless(steps, seed=5):
    """A load that is loud for four hours and quiet for four: how wide its quantiles must be, a network can learn."""
    at = np.arange(steps)
    return 100 + np.where(at // 4 % 2, 1.0, 20.0) * np.random.default_rng(seed).normal(0, 1, steps)


def test_a_network_that_knows_nothing_is_not_heard():
    older, held = series(load(24 * 21)).split(24 * 5)
    blend = roll(Blend(TASK), older, held).scores()["pinball"]
    drawn_by_chance = networked(until=older.end)
    assert roll(drawn_by_chance, older, held).scores()["pinball"] < 1.05 * blend
    track = drawn_by_chance.begin(older)
    for value in held.values:
        track.step(value)
    assert track.kept.mix.shares.max() < 0.01


@pytest.mark.study
def test_a_trained_network_lowers_the_loss_where_the_blend_is_blind():
    older, held = series(np.maximum(restless(24 * 30), 1.0)).split(24 * 6)
    network = fit_network("gru", TASK, older, TrainingPlan(epochs=12, learning_rate=1e-2), hidden=8)
    mine = NetworkedBlend(TASK, network.frozen)
    ours, theirs = (roll(one, older, held).scores()["pinball"] for one in (mine, Blend(TASK)))
    assert ours < 0.97 * theirs


def test_it_is_kept_as_data_and_says_the_same():
    made, history = networked(), series(load(260))
    again = revive(json.loads(json.dumps(describe(made))))
    assert again == made
    np.testing.assert_array_equal(again.begin(history).quantiles, made.begin(history).quantiles)


def test_a_state_of_before_its_medians_were_weighed_by_squares_is_refused():
    made = networked()
    outer = msgspec.msgpack.decode(made.begin(series(load(230))).state())
    carried = msgspec.msgpack.decode(outer[4])
    del carried["mix"][1]
    outer[4] = msgspec.msgpack.encode(carried)
    with pytest.raises(OnlineError, match=r"no state: .*length 5.* Admit the job on its history"):
        made.resume(msgspec.msgpack.encode(outer))


@pytest.mark.parametrize("change", [{"hidden": "8"}, {"until": None}, {"season": 5}, {"weights": {}}, {"weights": 3}])
def test_a_description_that_does_not_fit_is_refused(change):
    described = describe(networked())
    described["parameters"] = {**described["parameters"], **change}
    with pytest.raises(ValueError):
        revive(described)
    del described["parameters"]["until"]
    with pytest.raises(KindError, match="lacks"):
        revive(described)


def test_on_a_history_too_short_for_a_network_it_is_the_plain_blend():
    def fit(task, history):
        return fit_network("gru", task, history, TrainingPlan(epochs=0), hidden=4)

    assert fit_networked(fit, TASK, series(load(999))) == Blend(TASK)
    apart = np.full(24 * 1200, np.nan)
    apart[::24] = 50.0
    assert fit_networked(fit, TASK, series(apart)) == Blend(TASK)
    made = fit_networked(fit, TASK, Series(5 * HOUR, HOUR, load(1000)))
    assert isinstance(made, NetworkedBlend) and made.network.until == 1005 * HOUR


def test_the_settings_of_the_training_hold_for_the_network_that_the_blend_carries():
    class Run:
        def metrics(self, figures):
            assert list(figures) == ["gru.train_s"]

        def tags(self, tags):
            assert tags["gru.epochs"] == "1"

    training = Training(step_s=HOUR, models=("blend", "networked_blend"), epochs=1, hidden=5)
    candidates = Candidates(Run(), training, {}, "")
    made = candidates.fit_functions(TASK, series([]))["networked_blend"](TASK, series(load(1000)))
    assert made.network.hidden == 5 and candidates.epochs
