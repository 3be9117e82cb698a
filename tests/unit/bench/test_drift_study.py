import numpy as np
import pytest

from models.forecast.baselines.naive import Naive
from models.forecast.core.forecaster import Task
from models.forecast.core.series import Series
from pipelines.bench.drift.drift import (
    DriftCase,
    detect_daily,
    format_detection,
    measure_detection,
    pool_rows,
)
from pipelines.bench.forecast.breaks import WatchedSeries, change_mean, log_errors, log_errors_after, read_watched

pytestmark = pytest.mark.study

STEP_S, DAY = 1800.0, 48


def load(days=21, seed=0):
    steps = np.arange(days * DAY)
    noise = np.exp(0.03 * np.random.default_rng(seed).standard_normal(len(steps)))
    return Series(0.0, STEP_S, 100 * (1.5 + np.sin(2 * np.pi * steps / DAY)) * noise)


def test_changes_are_of_the_mean_and_end_with_the_search():
    series = Series(0.0, STEP_S, np.full(200, 10.0))
    up, down, ramp = (change_mean(series, 100, shape).values for shape in ("+30 %", "-30 %", "ramp to +30 %"))
    assert len(up) == len(down) == len(ramp) == 150
    assert set(up[100:]) == {13.0} and set(down[100:]) == {7.0} and set(up[:100]) == {10.0}
    assert ramp[100] == pytest.approx(10 + 3 / 24) and ramp[123] == pytest.approx(13) and ramp[149] == pytest.approx(13)


def test_labelled_anomalies_do_not_count():
    each = read_watched("nyc_taxi 30min")
    assert each.months == pytest.approx((215 - 3 - 21.46) / 30, abs=0.01)
    for at in each.draw_positions(40, 1):
        assert each.counts(each.series.start + at * each.series.step_s)
    assert not each.counts(1_414_893_600.0)  # 2014-11-02, the marathon


def test_errors_after_a_change_are_those_of_rolling_it_all():
    forecaster = Naive(Task(STEP_S, 12, (0.1, 0.5, 0.9)), seasonal=False)
    series = load(days=5)
    known = log_errors(forecaster, series)
    assert np.isnan(known.values[:12]).all() and np.isfinite(known.values[13:]).all()
    assert known.values[100] == pytest.approx(np.log(series.values[100] / series.values[88]), abs=0.4)
    after = change_mean(series, 150, "+30 %")
    pieced = log_errors_after(forecaster, after, known, 150)
    np.testing.assert_allclose(pieced.values, log_errors(forecaster, after).values)


def test_the_table_counts_what_is_found_and_what_is_not_there():
    series = load()
    each = WatchedSeries("iot 5min", series, ())
    nothing = Series(0.0, STEP_S, np.full(len(series), np.nan))
    cut = Series(0.0, STEP_S, nothing.values[: 16 * DAY + 50])
    changed = [
        (16 * DAY, shape, change_mean(series, 16 * DAY, shape), cut) for shape in ("+30 %", "-30 %", "ramp to +30 %")
    ]
    found = measure_detection([DriftCase(each, nothing, changed)])
    served = found["pooled"]["all"]
    assert served["false_alarms"] == 0 and served["share_found"] == 1 and served["changes"] == 2
    assert 0 < served["delay_median"] <= 50
    assert [point["pooled: found"] for point in found["curve"]][:4] == ["100%"] * 4
    assert "pooled" in format_detection(found) and "100%" in format_detection(found)
    assert detect_daily(series, nothing) == []


def test_pooling_weighs_by_months_and_by_changes():
    rows = [
        {"months": 1.0, "false_alarms": 2, "changes": 10, "found": 10, "delays": [10.0] * 10},
        {"months": 3.0, "false_alarms": 0, "changes": 30, "found": 10, "delays": [40.0] * 10},
    ]
    pooled = pool_rows(rows)
    assert pooled["false_alarms_per_month"] == 0.5 and pooled["share_found"] == 0.5 and pooled["delay_median"] == 25
