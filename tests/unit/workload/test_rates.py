import numpy as np
import pytest

from models.workload.rates import RateShape, Spike, autoregressive, decaying_spike, draw_counts, expected_rates
from models.workload.refusal import WorkloadError


def test_season_and_spikes_multiply():
    shape = RateShape(100.0, amplitude=0.5, period_s=40.0, phase_s=10.0, spikes=(Spike(20.0, 2.0, 5.0),))
    rates = expected_rates(shape, np.array([0.0, 10.0, 20.0, 25.0, 40.0]))
    season = np.array([0.5, 1.0, 1.5, 1 + 0.5 * np.sin(2 * np.pi * 15 / 40), 0.5])
    spikes = 1 + np.array([0.0, 0.0, 2.0, 2 * np.exp(-1), 2 * np.exp(-4)])
    assert rates == pytest.approx(100 * season * spikes)
    assert decaying_spike(np.array([-1.0, 0.0, 3.0]), 4.0, 3.0) == pytest.approx([0.0, 4.0, 4 * np.exp(-1)])


def test_counts_are_poisson_around_the_rate():
    times = np.arange(20_000) * 0.5
    counts = draw_counts(RateShape(40.0), times, 0.5, np.random.default_rng(0), np.random.default_rng(1))
    assert counts.mean() == pytest.approx(20.0, abs=4 * np.sqrt(20 / 20_000))
    assert counts.var() == pytest.approx(20.0, rel=0.05)
    assert np.corrcoef(counts[1:], counts[:-1])[0, 1] == pytest.approx(0.0, abs=0.03)


def test_noise_keeps_the_mean_and_forgets_itself_in_its_time():
    """Of 400 runs of 200 steps: mean 1, its spread also at the begin, and 1/e of its covariance after `noise_s`."""
    shape, times = RateShape(1e6, noise=0.4, noise_s=10.0), np.arange(200.0)
    runs = np.array(
        [draw_counts(shape, times, 1.0, np.random.default_rng(s), np.random.default_rng(s + 1)) for s in range(400)]
    )
    factor = runs / 1e6
    assert factor.mean() == pytest.approx(1.0, abs=0.02)
    logs = np.log(factor)
    assert logs[:, 0].std() == pytest.approx(0.4, rel=0.15) and logs.std() == pytest.approx(0.4, rel=0.05)
    kept = np.mean((logs[:, 10:] - logs.mean()) * (logs[:, :-10] - logs.mean())) / logs.var()
    assert kept == pytest.approx(np.exp(-1), abs=0.06)


def test_an_autoregressive_path_by_hand():
    path = autoregressive(np.array([1.0, 0.0, -1.0]), 0.6, 2.0)  # steps of 2 * 0.8
    assert path == pytest.approx([1.6, 0.96, 0.576 - 1.6])


@pytest.mark.parametrize(
    "wrong",
    [
        {"base_rps": 0},
        {"amplitude": 1.1},
        {"period_s": 0},
        {"noise_s": 0},
        {"noise": -1},
        {"spikes": (Spike(0, 1, 0),)},
    ],
)
def test_rates_that_are_none_are_refused(wrong):
    with pytest.raises(WorkloadError, match="expected"):
        RateShape(**wrong)
