import gzip
import math

import numpy as np
import pandas as pd
import pytest

from models.forecast.core.series import SeriesError
from pipelines.traces.series_file import format_step, parse_step, read_series
from pipelines.traces.shipped import find_shipped, list_shipped
from pipelines.traces.trace_file import TraceError


def written(tmp_path, *rows, header="timestamp,value", name="mine.csv"):
    path = tmp_path / name
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def minutes(*values, step=5):
    """Rows from midnight; None leaves the row out."""
    return [
        f"2024-03-01 {i * step // 60:02d}:{i * step % 60:02d}:00,{v}" for i, v in enumerate(values) if v is not None
    ]


def test_a_parquet_file_is_refused_with_the_way_to_write_it_as_csv(tmp_path):
    file, new = tmp_path / "mine.parquet", tmp_path / "mine.csv"
    pd.DataFrame(
        {"time": pd.date_range("2024-03-01", periods=4, freq="5min"), "load": [1.0, 2.0, 3.0, 4.0]}
    ).to_parquet(file)
    with pytest.raises(TraceError, match=r"mine\.parquet: CSV is expected") as told:
        read_series(file)
    assert "`pandas.read_parquet(FILE).to_csv(NEW, index=False)`" in str(told.value)
    pd.read_parquet(file).to_csv(new, index=False)
    assert read_series(new).values.tolist() == [1, 2, 3, 4]


def test_a_file_is_read_at_its_own_step_with_its_gaps(tmp_path):
    series = read_series(written(tmp_path, *minutes(1, 2, None, "", 5, 6, 7, 8)))
    assert series.step_s == 300
    np.testing.assert_equal(series.values, [1, 2, math.nan, math.nan, 5, 6, 7, 8])


def test_longer_steps_are_means_on_the_clock_and_missing_where_less_than_half_is_known(tmp_path):
    # The first quarter of an hour begins with the file's third step in it; the second lacks two of three.
    rows = minutes(None, None, 3, 4, None, None, 7, 9, 11, 1, 2, None)
    series = read_series(written(tmp_path, *rows, "2024-03-01 01:00:00,5"), 900)
    assert series.start % 900 == 0
    np.testing.assert_equal(series.values, [9.0, 1.5])


def test_ends_of_longer_steps_need_half(tmp_path):
    series = read_series(written(tmp_path, *minutes(None, 2, 4, 7, 9, 11, 1, 2)), 900)
    np.testing.assert_equal(series.values, [3.0, 9.0, 1.5])


def test_a_grid_off_the_clock_keeps_its_phase(tmp_path):
    rows = [f"2024-03-01 00:{m:02d}:00,{m}" for m in range(4, 34, 5)]
    series = read_series(written(tmp_path, *rows), 900)
    assert series.start % 300 == 240
    assert np.isfinite(series.values).all()


def test_columns_are_found_by_name_or_named(tmp_path):
    rows = [f"{i},2024-03-01 00:{i:02d}:00,{i % 3},{i}" for i in range(10)]
    path = written(tmp_path, *rows, header="id,time,cpu,lag")
    with pytest.raises(SeriesError, match=r"'id', 'time', 'cpu', 'lag'.*--value-column"):
        read_series(path)
    assert read_series(path, value_column="lag").values[-1] == 9
    with pytest.raises(TraceError, match=r"no column 'load'.*--value-column"):
        read_series(path, value_column="load")


def test_gzipped_files_and_epoch_seconds_with_bars(tmp_path):
    path = tmp_path / "mine.csv.gz"
    path.write_bytes(gzip.compress(b"timestamp|value\n" + b"".join(b"%d|%d\n" % (i, i) for i in range(5))))
    assert read_series(path).step_s == 1


def test_clock_changes_in_local_time(tmp_path):
    # 2024-10-27 in Berlin: 02:00 comes twice. 2024-03-31: 02:00 does not exist.
    back = written(tmp_path, *(f"2024-10-27 {h:02d}:00,{v}" for v, h in enumerate([0, 1, 2, 2, 3, 4])))
    series = read_series(back, timezone="Europe/Berlin")
    assert (len(series), series.step_s) == (6, 3600)
    with pytest.raises(TraceError, match=r"twice.*--timezone"):
        read_series(back)
    forward = written(tmp_path, *(f"2024-03-31 {h:02d}:00,{v}" for v, h in enumerate([0, 1, 3, 4])))
    assert np.isfinite(read_series(forward, timezone="Europe/Berlin").values).all()
    assert np.isnan(read_series(forward).values).sum() == 1


@pytest.mark.parametrize(
    ("rows", "error", "words"),
    [
        pytest.param(minutes(1, 2, "inf", 3), TraceError, ["row 4", "value=inf", "finite"], id="infinite"),
        pytest.param(minutes(1, -2, 3), TraceError, ["row 3", "value=-2", "0 or more"], id="negative"),
        pytest.param(minutes(1, "many", 3), TraceError, ["row 3", "'many'", "not a number"], id="text"),
        pytest.param(minutes("", "", ""), SeriesError, ["every one of 3 values", "'value'"], id="all missing"),
        pytest.param(minutes(7, 7, 7), SeriesError, ["every value is 7", "nothing to forecast"], id="constant"),
        pytest.param(
            [*minutes(1, 2, 3, 4), "2024-03-01 00:16:00,5"], TraceError, ["row 6", "60 s", "Resample"], id="mixed steps"
        ),
        pytest.param([*minutes(1, 2), "2024-03-01 00:02:00,5"], TraceError, ["row 4", "Sort"], id="unordered"),
        pytest.param([*minutes(1, 2), "2024-03-01 00:05:00,5"], TraceError, ["rows 3 and 4", "twice"], id="doubled"),
        pytest.param([*minutes(1, 2, 3), "2124-03-01 00:05:00,5"], TraceError, ["row 5", "at most"], id="far away"),
    ],
)
def test_faults_name_the_file_the_row_and_the_remedy(tmp_path, rows, error, words):
    path = written(tmp_path, *rows)
    with pytest.raises(error) as caught:
        read_series(path)
    for word in ["mine.csv", *words]:
        assert word in str(caught.value)


@pytest.mark.parametrize("step_s", [60, 450])
def test_a_step_that_the_file_cannot_give(tmp_path, step_s):
    with pytest.raises(SeriesError, match=r"--step 5min or a multiple"):
        read_series(written(tmp_path, *minutes(1, 2, 3, 4)), step_s)


def test_too_long_a_step(tmp_path):
    with pytest.raises(SeriesError, match=r"at most 43200 s"):
        read_series(written(tmp_path, "2024-03-01,1", "2024-03-02,2"))


def test_steps_in_words():
    assert [parse_step(s) for s in ("300", "30s", "5min", "1h", "1.5 h")] == [300, 30, 300, 3600, 5400]
    assert [format_step(s) for s in (30, 300, 3600, 90, 86400)] == ["30s", "5min", "1h", "90s", "24h"]
    for wrong in ("", "0", "5 days", "-5min"):
        with pytest.raises(SeriesError, match="5min or 1h"):
            parse_step(wrong)


def test_shipped_cells():
    cells = {found.label: found for found in list_shipped()}
    assert len(cells) == 29
    sizes = {"iot 5min": 6048, "alibaba 1h": 168, "nyc_taxi 30min": 10320, "elb 15min": 1347, "green_taxi 1h": 744}
    for cell, size in sizes.items():
        assert abs(len(cells[cell].series()) - size) <= 1, cell
    assert all(found.path.is_file() for found in cells.values())
    green = cells["green_taxi 1h"].series()
    assert green.values.sum() * 60 == pytest.approx(56549)
    assert np.isnan(find_shipped("alibaba 5min").series().values).sum() == 6
    with pytest.raises(SeriesError, match="iot 5min"):
        find_shipped("moon 5min")
