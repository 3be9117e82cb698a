"""The copula of forecast errors: scores, their inverse, and what is fitted."""

import numpy as np
import pytest
from scipy.special import ndtri

from models.backfill.joint import FURTHEST, fit_errors, normal_scores, rates_of, unknown_errors

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
AT = ndtri(LEVELS)


def test_quantiles_have_their_own_scores_and_come_back():
    quantiles = 100 + 10 * AT
    assert normal_scores(quantiles, np.tile(quantiles, (5, 1)), LEVELS) == pytest.approx(AT, abs=1e-4)
    scores = np.array([[-2.5], [-0.3], [0.0], [1.1], [3.0]])
    assert rates_of(scores, quantiles[None], LEVELS) == pytest.approx(100 + 10 * scores)
    assert normal_scores(np.array(1e6), quantiles, LEVELS) == FURTHEST


def test_a_rate_is_never_negative_and_equal_quantiles_break_nothing():
    assert rates_of(np.full((1, 1), -9.0), (5 + 3 * AT)[None], LEVELS)[0, 0] == 0
    assert np.isfinite(normal_scores(np.array([0.0, 1.0]), np.zeros((2, 5)), LEVELS)).all()


def test_correlation_width_and_bias_of_the_past_are_found():
    random = np.random.default_rng(0)
    truth = np.exp(-np.abs(np.subtract.outer(np.arange(6), np.arange(6))) / 4.0)
    scores = 0.5 + 1.4 * random.standard_normal((20_000, 6)) @ np.linalg.cholesky(truth).T
    found = fit_errors(scores, 20_000)
    assert found.mean == pytest.approx(np.full(6, 0.5), abs=0.05)
    assert found.root @ found.root.T == pytest.approx(1.96 * truth, abs=0.1)


def test_few_forecasts_change_little_and_none_nothing():
    random = np.random.default_rng(0)
    lonely = fit_errors(random.standard_normal((400, 4)), 0.5)
    assert (lonely.root @ lonely.root.T)[0, 1] > 0.8, (
        "uncorrelated scores of half a forecast's span say next to nothing"
    )
    none = fit_errors(np.full((5, 4), np.nan), 100)
    assert np.array_equal(none.root, unknown_errors(4).root)


def test_draws_have_the_fitted_covariance():
    joint = unknown_errors(3, 0.8)
    drawn = joint.draw(np.random.default_rng(1).standard_normal((50_000, 3)))
    assert np.cov(drawn.T) == pytest.approx(np.array([[1, 0.8, 0.64], [0.8, 1, 0.8], [0.64, 0.8, 1]]), abs=0.03)
    assert joint.head(2).root.shape == (2, 2)


def test_correlated_errors_widen_the_sum():
    random = np.random.default_rng(2).standard_normal((20_000, 12))
    quantiles = np.tile(100 + 10 * AT, (12, 1))
    loose, tight = (rates_of(unknown_errors(12, hold).draw(random), quantiles, LEVELS) for hold in (1e-6, 0.95))
    assert loose.sum(axis=1).std() == pytest.approx(10 * np.sqrt(12), rel=0.05)
    assert tight.sum(axis=1).std() > 2.5 * loose.sum(axis=1).std()
