"""Which served forecasts of a job are read from the lake's files."""

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.lake.file_lake import FileLake
from pipelines.lake.table_files import TableFiles

STEP = 1800.0
BEGAN = 1_413_936_000.0  # 2014-10-22
COLUMNS = pa.schema([
    ("job", pa.string()), ("version", pa.string()), ("model", pa.string()), ("kind", pa.string()),
    ("time", pa.float64()), ("wall_time", pa.float64()), ("step_s", pa.float64()), ("levels", pa.list_(pa.float64())),
    ("quantiles", pa.list_(pa.list_(pa.float64()))),
])  # fmt: skip


def forecast(time, wall_time):
    return ("orders", "2", "blend", "forecast", time, wall_time, STEP, [0.5], [[100.0]])


def test_forecasts_of_a_wrong_clock_hide_no_others(tmp_path):
    """Records that were dated years ahead for an hour were forecast, too; the load leaves them out."""
    times = [BEGAN + at * STEP for at in range(10)]
    rows = [forecast(time, at) for at, time in enumerate([*times, times[0] + 6e8, times[1] + 6e8])]
    columns = [pa.array(column, kind.type) for column, kind in zip(zip(*rows, strict=True), COLUMNS, strict=True)]
    pq.write_table(pa.table(columns, schema=COLUMNS), tmp_path / "part.parquet")
    lake = FileLake(tmp_path, {"forecasts": TableFiles((tmp_path / "part.parquet",), COLUMNS, 0)})
    read = lake.read_served_forecasts("orders", times[5])
    assert read["time"].tolist()[:4] == times[6:] and read["wall_time"].tolist()[:4] == [6, 7, 8, 9]
