import pytest

from pipelines.bench.forecast.online_speed import measure

pytestmark = pytest.mark.study


def test_it_measures_what_really_runs():
    made = measure(("seasonal_naive",), cell="nyc_taxi 30min", steps=50, jobs=3, batches=2, repeats=2)
    figures = made["kinds"]["seasonal_naive"]
    assert 0 < figures["step_us_p50"] <= figures["step_us_p99"] <= figures["step_us_max"]
    assert min(figures.values()) > 0 and 50 < figures["state_bytes"] < 10_000
