import numpy as np
import pytest

from models.policy.nowcast import Curves, corrected, path
from models.policy.peaks import LEVELS, MEMORIES, fit

OFFSETS = np.array([30.0, 60.0, 90.0])


def curves(values, age_s=0.0, step_s=60.0, spread=10.0):
    """Forecasts whose median is (N, H) `values`, with 0.05 to 0.95 quantiles around it."""
    values = np.asarray(values, float)
    around = np.array([-2, -1.5, -0.7, 0, 0.7, 1.5, 2]) * spread
    return Curves(values[:, :, None] + around, values[:, 0], np.full(len(values), age_s), step_s)


def test_the_path_goes_on_lines_between_the_middles_of_steps():
    # Steps of 60 s: the last one measured was 100, then 200 and 400; half a minute after its end we are at 150 + 50.
    c = Curves(np.array([[[200.0], [400.0]]]), np.array([100.0]), np.array([30.0]), 60.0)
    line, wide = path(c, 0, np.array([0.0, 30.0, 60.0, 1e4]))
    assert line[0] == pytest.approx([200, 300, 400, 400])
    assert (wide == 0).all()


def test_what_the_forecast_is_off_by_now_fades():
    c = curves([[100.0] * 5])
    ahead = corrected(c, 3, np.array([0.0, 60.0, 6000.0]), np.array([150.0]), memory_s=60.0)
    assert ahead[0, :, 3] == pytest.approx([150, 100 + 50 / np.e, 100])
    assert ahead[0, 0, 6] == pytest.approx(150)  # what is now is sure
    assert ahead[0, 2, 6] == pytest.approx(120)  # far ahead the forecaster's own quantile


def history(listen, moments=4000, seed=3):
    """Peaks that the forecast knows (or that the present rate alone tells), with 1 % of noise."""
    chance = np.random.default_rng(seed)
    now = chance.uniform(500, 1500, moments)
    coming = now * chance.uniform(0.7, 1.6, moments)
    told = coming if listen else now * chance.uniform(0.3, 3.0, moments)
    c = curves(np.repeat(told[:, None], 4, axis=1), spread=0.01 * 1000)
    peaks = np.maximum((coming if listen else now * 1.05) * (1 + 0.01 * np.abs(chance.standard_normal(moments))), now)
    return c, now, peaks


def test_listens_to_a_forecast_that_knows():
    c, now, peaks = history(listen=True)
    found = fit(c, 3, OFFSETS, now, peaks)
    assert found.memory_steps in MEMORIES and found.gain < 0.8


def test_does_not_listen_to_one_that_does_not():
    c, now, peaks = history(listen=False)
    found = fit(c, 3, OFFSETS, now, peaks)
    assert found.memory_steps == 0 and found.gain == 1


@pytest.mark.parametrize("listen", [True, False])
def test_quantiles_keep_their_share_on_moments_not_seen(listen):
    c, now, peaks = history(listen)
    found = fit(c, 3, OFFSETS, now, peaks)
    fresh, rate, came = history(listen, seed=5)
    said = found.at(fresh, 3, OFFSETS, rate)
    assert (np.diff(said, axis=1) >= -1e-9).all()
    for level in (0.9, 0.99):
        assert np.mean(came <= said[:, LEVELS.index(level)]) == pytest.approx(level, abs=0.02)
