"""The bench of the store: percentiles by hand, and that it measures what it says, in small."""

import pytest

from pipelines.bench.fastpath import store as bench_store
from pipelines.bench.fastpath.figures import percentiles_in_us


def test_percentiles_are_by_nearest_rank():
    found = percentiles_in_us(range(1000, 201_000, 1000))
    assert found == {"p50": 100, "p90": 180, "p99": 198, "p99_9": 200, "max": 200, "count": 200}


@pytest.mark.parametrize("measured", ["time_persistent_put", "time_trigger_put"])
def test_a_call_and_bare_lmdb_are_timed_in_turn(tmp_path, measured):
    found = getattr(bench_store, measured)(tmp_path, 50)
    assert found["store_us"]["count"] == found["lmdb_us"]["count"] == 50
    assert found["times"]["p50"] == pytest.approx(found["store_us"]["p50"] / found["lmdb_us"]["p50"])
    assert found.get("seen", 250) == 250


def test_memory_is_looked_at_at_equal_distances(tmp_path):
    found = bench_store.measure_memory(tmp_path, 48_000, points=4, jobs=2)
    assert [point["puts"] for point in found] == [12_000, 24_000, 36_000, 48_000]
    assert all(1000 <= point["versions"] < 1016 for point in found[1:])
    assert found[-1]["file"] < 48_000 * 600 / 2  # all that was put, were no page used again; a slow flush takes some
