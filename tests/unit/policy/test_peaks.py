import numpy as np
import pytest

from models.policy.received.nowcast import ForecastRows, correct_by_rate, interpolate_forecasts
from models.policy.received.peaks import LEVELS, TRENDS_S, Moments, fit_peaks

SEVEN = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
OFFSETS = np.array([30.0, 60.0, 90.0])


def curves(values, age_s=0.0, step_s=60.0, spread=10.0):
    """Forecasts whose median is (N, H) `values`, with 0.05 to 0.95 quantiles around it."""
    values = np.asarray(values, float)
    around = np.array([-2, -1.5, -0.7, 0, 0.7, 1.5, 2]) * spread
    return ForecastRows(values[:, :, None] + around, values[:, 0], np.full(len(values), age_s), step_s, SEVEN)


def test_the_path_goes_on_lines_between_the_middles_of_steps():
    # Steps of 60 s: the last one measured was 100, then 200 and 400; half a minute after its end we are at 150 + 50.
    c = ForecastRows(np.array([[[200.0], [400.0]]]), np.array([100.0]), np.array([30.0]), 60.0, (0.5,))
    line, wide = interpolate_forecasts(c, np.array([0.0, 30.0, 60.0, 1e4]))
    assert line[0] == pytest.approx([200, 300, 400, 400])
    assert (wide == 0).all()


def test_what_the_forecast_is_off_by_now_fades():
    c = curves([[100.0] * 5])
    ahead = correct_by_rate(c, np.array([0.0, 60.0, 6000.0]), np.array([150.0]), memory_s=60.0)
    assert ahead[0, :, 3] == pytest.approx([150, 100 + 50 / np.e, 100])
    assert ahead[0, 0, 6] == pytest.approx(150)  # what is now is sure
    assert ahead[0, 2, 6] == pytest.approx(120)  # far ahead the forecaster's own quantile


def test_now_is_looked_up_together_with_what_is_ahead_to_the_last_bit():
    chance = np.random.default_rng(4)
    c, rate = curves(chance.uniform(50, 200, (40, 5)), age_s=17.0), chance.uniform(50, 200, 40)
    (now, _), (line, wide) = (interpolate_forecasts(c, at) for at in (np.zeros(1), OFFSETS))
    fading = np.exp(-OFFSETS / 60.0)
    centre = line + (rate[:, None] - now) * fading
    wanted = np.maximum(centre[..., None] + wide * np.sqrt(1 - fading**2)[None, :, None], 0.0)
    assert np.array_equal(correct_by_rate(c, OFFSETS, rate, memory_s=60.0), wanted)


def history(listen, moments=4000, seed=3, unsure=None):
    """Moments and their peaks, which the forecast knows (or only the present rate tells), with 1 % of noise or more."""
    chance = np.random.default_rng(seed)
    now = chance.uniform(500, 1500, moments)
    coming = now * chance.uniform(0.7, 1.6, moments)
    told = coming if listen else now * chance.uniform(0.3, 3.0, moments)
    c = curves(np.repeat(told[:, None], 4, axis=1), spread=0.01 * 1000)
    noise = np.full(moments, 0.01) if unsure is None else unsure
    peaks = (coming if listen else now * 1.05) * (1 + noise * np.abs(chance.standard_normal(moments)))
    return Moments(c, now, np.zeros((moments, len(TRENDS_S)))), peaks


def test_listens_to_a_forecast_that_knows():
    assert fit_peaks(*with_offsets(history(listen=True))).gain < 0.3


def test_does_not_listen_to_one_that_does_not():
    found = fit_peaks(*with_offsets(history(listen=False)))
    assert found.centre is None or found.gain > 0.97


def test_a_load_that_rises_is_expected_to_rise_on():
    """The forecaster knows nothing; a minute ago the load was lower by what it will be higher by."""
    chance = np.random.default_rng(1)
    now, slope = chance.uniform(500, 1500, 4000), chance.uniform(-0.2, 0.2, 4000)
    trends = np.stack([now * slope * ago / 60 for ago in TRENDS_S], axis=1)
    moments = Moments(curves(np.repeat(now[:, None], 4, axis=1)), now, trends)
    found = fit_peaks(moments, OFFSETS, now * (1 + 1.5 * slope))
    assert found.gain < 0.3
    assert found.quantiles_rps(moments)[:, 0] == pytest.approx(now * (1 + 1.5 * slope), rel=0.03)


def test_quantiles_are_wide_where_the_past_was_unsure():
    """The noise is ten times larger where the load has moved; quantiles follow it and are kept on both sides."""
    chance = np.random.default_rng(2)
    moved = chance.random(8000) < 0.5
    moments, peaks = history(True, 8000, unsure=np.where(moved, 0.2, 0.02))
    trends = np.where(moved, 300.0, 0.0)[:, None] * np.ones(len(TRENDS_S))
    moments = Moments(moments.curves, moments.rate_now, trends)
    found = fit_peaks(moments, OFFSETS, peaks)
    said = found.quantiles_rps(moments)
    width = said[:, LEVELS.index(0.98)] - said[:, 0]
    assert np.median(width[moved]) > 4 * np.median(width[~moved])
    for where in (moved, ~moved):
        assert np.mean(peaks[where] <= said[where, LEVELS.index(0.98)]) == pytest.approx(0.98, abs=0.02)


@pytest.mark.parametrize("listen", [True, False])
def test_quantiles_keep_their_share_on_moments_not_seen(listen):
    found = fit_peaks(*with_offsets(history(listen)))
    moments, came = history(listen, seed=5)
    said = found.quantiles_rps(moments)
    assert (np.diff(said, axis=1) >= -1e-9).all()
    for level in (0.9, 0.99):
        assert np.mean(came <= said[:, LEVELS.index(level)]) == pytest.approx(level, abs=0.02)


def waking(moments=4000, seed=7):
    """A load that rests at next to nothing and then wakes up to 600 to 1400 within the horizon, as foretold."""
    chance = np.random.default_rng(seed)
    rests = chance.random(moments) < 0.3
    now = np.where(rests, chance.uniform(0, 2, moments), chance.uniform(800, 1200, moments))
    wakes = rests & (chance.random(moments) < 0.5)
    coming = np.where(wakes, chance.uniform(600, 1400, moments), now)
    c = curves(np.repeat(coming[:, None], 4, axis=1), spread=5.0)
    peaks = np.maximum(coming, now) * (1 + 0.02 * np.abs(chance.standard_normal(moments)))
    return Moments(c, now, np.zeros((moments, len(TRENDS_S)))), peaks, rests, wakes


def test_a_load_that_wakes_up_is_provided_for_when_it_is_foretold_to_and_not_all_night():
    moments, peaks, _, _ = waking()
    found = fit_peaks(moments, OFFSETS, peaks)
    assert found.foretold and found.gain < 0.5
    moments, peaks, rests, wakes = waking(seed=8)
    said = found.quantiles_rps(moments)[:, LEVELS.index(0.98)]
    assert np.mean(peaks[wakes] <= said[wakes]) > 0.9
    assert np.median(said[rests & ~wakes]) < 0.1 * np.median(said[wakes])


def test_where_rates_say_more_than_forecasts_they_are_the_unit():
    assert not fit_peaks(*with_offsets(history(listen=False))).foretold


def test_too_few_moments_teach_no_regression():
    found = fit_peaks(*with_offsets(history(listen=True, moments=150)))
    assert found.centre is None and found.gain == 1


def with_offsets(made):
    moments, peaks = made
    return moments, OFFSETS, peaks
