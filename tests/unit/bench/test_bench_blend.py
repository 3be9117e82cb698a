import pytest

from models.forecast.core.series import SeriesError
from pipelines.bench.forecast.speed import time_blend as measure

pytestmark = pytest.mark.study


def test_a_small_batch_is_timed_for_as_long_as_asked():
    found = measure(history=40, horizon=2, series_count=3, batches=5)
    assert (found["series"], found["different"], found["batches"], found["history"]) == (3, 3, 5, 40)
    assert 0 < found["batch_p50_s"] <= found["batch_worst_s"]
    assert 0 < found["batch_cpu_p50_s"] <= found["batch_cpu_worst_s"] and found["step_p50_ms"] > 0


def test_a_history_longer_than_any_shipped_series_is_refused():
    with pytest.raises(SeriesError, match="history=99999: no shipped series"):
        measure(history=99_999, horizon=2)
