"""Loads that Spark summed by step are those that `resample` makes of the same records."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.forecast.core.series import MAX_STEPS, SeriesError, resample
from pipelines.lake.steps import mean_loads, newest_frames, newest_records

pytestmark = pytest.mark.spark
EIGHTHS = st.integers(-800, 8000).map(lambda n: n / 8)
RECORD = st.tuples(EIGHTHS, st.integers(0, 400).map(lambda n: n / 8), st.integers(1, 1600).map(lambda n: n / 8))


def framed(spark, records):
    rows = [(str(job), *record) for job, found in enumerate(records) for record in found]
    return spark.createDataFrame(pd.DataFrame(rows, columns=["job", "time", "arrival_rps", "span_s"]))


@settings(max_examples=5)
@given(st.lists(st.lists(RECORD, min_size=1, max_size=30), min_size=20, max_size=40), st.sampled_from([0.5, 1, 7, 60]))
def test_equal_to_the_last_bit_where_sums_are_exact(spark, records, step_s):
    """Straddling, overlapping, gaps, the first and last step cut, borders met exactly; each job is an example."""
    found = mean_loads(framed(spark, records), step_s)
    for job, mine in enumerate(records):
        times, rates, spans = map(np.array, zip(*mine, strict=True))
        wanted = resample(times, rates, spans, step_s)
        assert (found[str(job)].start, len(found[str(job)])) == (wanted.start, len(wanted))
        np.testing.assert_array_equal(found[str(job)].values, wanted.values)


def test_equal_but_for_the_order_of_sums_at_live_cadence(spark):
    """Spans of about a second, times of today with all their digits, some seconds missing."""
    draw = np.random.default_rng(3)
    spans = draw.uniform(0.9, 1.1, 20_000)
    times = 1.76e9 + np.cumsum(spans) - spans + np.where(np.arange(20_000) > 9_000, 4_000.0, 0.0)
    kept = draw.random(20_000) > 0.1
    columns = times[kept], draw.uniform(0, 400, kept.sum()), spans[kept]
    found = mean_loads(framed(spark, [list(zip(*map(np.ndarray.tolist, columns), strict=True))]), 300.0)["0"]
    wanted = resample(*columns, 300.0)
    assert (found.start, len(found)) == (wanted.start, len(wanted))
    np.testing.assert_allclose(found.values, wanted.values, rtol=1e-12)
    assert np.isnan(wanted.values).sum() > 10


def test_a_span_without_end_is_refused_as_it_is_there(spark):
    with pytest.raises(SeriesError, match="steps of 1 s"):
        mean_loads(framed(spark, [[(0.0, 1.0, MAX_STEPS + 2.0)]]), 1.0)


def newest_by_both(records, span_s):
    """What Spark keeps of the records; of frames of them the same is kept without it."""
    newest, whole = newest_records(records, span_s), records.toPandas()
    kept = pd.concat(
        newest_frames(lambda since: [part[part["time"] >= since] for part in (whole[::2], whole[1::2])], span_s)
    )
    by_spark = newest.select(*whole.columns).toPandas()
    order = dict(by=["job", "time"], ignore_index=True)
    pd.testing.assert_frame_equal(kept.sort_values(**order), by_spark.sort_values(**order))
    return newest


def test_of_the_newest_records_the_newest_steps_are_what_they_are_of_all(spark):
    """Of a job that goes on and of one that ended long ago, each before its own end; a wrong old time is left out."""
    hours = [(float(at), at / 100, 1800.0) for at in range(0, 90_000, 1800)]
    records = framed(spark, [[(-1e12, 1.0, 60.0), *hours], [(time - 1e6, *more) for time, *more in hours]])
    found = mean_loads(newest_by_both(records, 7 * 3600.0), 3600.0)
    for job, end in (("0", 90_000.0), ("1", 90_000.0 - 1e6)):
        kept = found[job].split(5)[1]
        assert end - 3600 < kept.end <= end and len(found[job]) <= 8
        times, rates, spans = map(np.array, zip(*[(t + end - 90_000.0, r, s) for t, r, s in hours], strict=True))
        np.testing.assert_array_equal(kept.values, resample(times, rates, spans, 3600.0).split(5)[1].values)


@pytest.mark.parametrize("wrong", [4e9, 1.4e9 + 16 * 86_400.0])
def test_a_wrong_time_in_years_or_weeks_to_come_is_no_jobs_newest(spark, wrong):
    hours = [(1.4e9 + 3600 * at, 5.0, 3600.0) for at in range(48)]
    records = framed(spark, [[*hours, (wrong, 1.0, 60.0)]])
    newest = newest_by_both(records, 6 * 3600.0)
    assert sorted(row.time for row in newest.collect()) == [time for time, *_ in hours[-6:]]
    whole = mean_loads(records, 3600.0)["0"]
    assert (len(whole), np.nanmax(whole.values)) == (48, 5.0)


def test_one_job_without_a_series_leaves_the_others_theirs(spark):
    records = framed(spark, [[(0.0, 1.0, MAX_STEPS + 2.0)], [(0.0, 3.0, 2.0)]])
    assert {job: load.values.tolist() for job, load in mean_loads(records, 1.0, leave_out=True).items()} == {
        "1": [3.0, 3.0]
    }
