import numpy as np
import pytest

from models.forecast.core.conformal import KEPT, Conformal

LEVELS = (0.05, 0.1, 0.5, 0.9, 0.95)


def follow(outcomes, centre=100.0, horizon=1):
    conformal = Conformal(horizon, LEVELS, 24)
    spread, made = conformal.start(), []
    for i, value in enumerate(outcomes):
        spread = conformal.score(spread, value)
        spread, quantiles = conformal.quantiles(spread, np.full(horizon, centre), 100.0, i + 1)
        made.append(quantiles)
    return np.stack(made)


def covered(outcomes, made, h, low, high):
    ends = made[: len(outcomes) - h, h - 1]
    return np.mean((outcomes[h:] >= ends[:, low]) & (outcomes[h:] <= ends[:, high]))


@pytest.mark.parametrize("h", [1, 3])
def test_intervals_hold_what_they_should(h):
    outcomes = 100 + np.random.default_rng(0).normal(0, 10, 3000)
    made = follow(outcomes, horizon=3)
    assert covered(outcomes[1000:], made[1000:], h, 1, 3) == pytest.approx(0.8, abs=0.03)
    assert covered(outcomes[1000:], made[1000:], h, 0, 4) == pytest.approx(0.9, abs=0.03)


def test_they_hold_it_again_after_the_noise_has_trebled():
    rng = np.random.default_rng(1)
    outcomes = 100 + np.concatenate([rng.normal(0, 5, 1500), rng.normal(0, 15, 800)])
    made = follow(outcomes)
    assert covered(outcomes[1600:], made[1600:], 1, 1, 3) == pytest.approx(0.8, abs=0.05)


def test_skewed_errors_have_skewed_intervals():
    outcomes = 90 + np.random.default_rng(2).exponential(10, 1500)
    low, _, centre, _, high = follow(outcomes)[-1, 0]
    assert high - centre > 1.5 * (centre - low)


def test_they_rise_stay_above_zero_and_keep_the_centre():
    outcomes = np.abs(np.random.default_rng(3).normal(0, 40, 400))
    made = follow(outcomes, centre=20.0, horizon=2)
    assert (np.diff(made, axis=-1) >= 0).all() and (made >= 0).all()
    assert (made[..., 2] == 20.0).all()


@pytest.mark.parametrize("silent", [1, 40])
def test_a_load_that_was_zero_is_forecast_again_once_it_is_back(silent):
    conformal, load = Conformal(3, LEVELS, 24), 100 + np.random.default_rng(5).normal(0, 10, 400)
    values, spread, made = np.concatenate([np.zeros(silent), load]), None, []
    for i, value in enumerate(values):
        spread = conformal.start() if spread is None else conformal.score(spread, value)
        newest = values[max(i - 23, 0) : i + 1]
        spread, quantiles = conformal.quantiles(spread, np.full(3, value), float(newest.mean()), i + 1)
        made.append(quantiles)
    assert np.isfinite(made).all() and (made[0] == 0).all()
    assert (np.ptp(made[-1], axis=1) > 20).all()


def test_a_higher_forecast_is_wider_by_the_root():
    conformal = Conformal(1, LEVELS, 24)
    spread = conformal.start()
    for i, value in enumerate(100 + np.random.default_rng(4).normal(0, 10, 320)):
        spread = conformal.score(spread, value)
        spread, _ = conformal.quantiles(spread, np.array([100.0]), 100.0, i + 1)
    widths = [np.ptp(conformal.quantiles(spread, np.array([c]), 100.0, 321)[1]) for c in (100.0, 400.0)]
    assert widths[1] / widths[0] == pytest.approx(np.sqrt(4.05 / 1.05))


def test_without_errors_there_is_no_width_and_what_never_errs_stays_exact():
    conformal = Conformal(2, LEVELS, 24)
    _, first = conformal.quantiles(conformal.start(), np.array([7.0, 8.0]), 7.0, 1)
    np.testing.assert_equal(first, np.repeat([[7.0], [8.0]], len(LEVELS), axis=1))
    np.testing.assert_equal(follow(np.full(50, 100.0))[-1], np.full((1, len(LEVELS)), 100.0))


def test_only_the_newest_errors_are_kept():
    conformal = Conformal(1, LEVELS, 24)
    spread = conformal.start()
    for i in range(KEPT + 50):
        spread, _ = conformal.quantiles(conformal.score(spread, 100.0 + i % 3), np.array([100.0]), 100.0, i + 1)
    assert spread.errors.shape == (KEPT, 1) and spread.count[0] == KEPT + 49


def test_what_has_no_size_leaves_no_room_for_what_has():
    conformal = Conformal(2, LEVELS, 24)
    spread = conformal.start()
    for i in range(KEPT):
        spread, _ = conformal.quantiles(conformal.score(spread, 100.0 + i % 3), np.full(2, 100.0), 100.0, i + 1)
    for i in range(KEPT, 2 * KEPT + 50):
        spread, quantiles = conformal.quantiles(conformal.score(spread, 0.0), np.zeros(2), 0.0, i + 1)
        assert (quantiles == 0.0).all()
    assert np.isfinite(spread.errors).sum(axis=0).min() > KEPT - 10
    _, back = conformal.quantiles(spread, np.full(2, 100.0), 100.0, 2 * KEPT + 51)
    assert (np.ptp(back, axis=1) > 0.5).all()
