"""What is read from the lake's files is what Spark reads of the same tables; tables that are not plain are Spark's."""

from __future__ import annotations

import json
import shutil
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from pipelines.lake.commit import commit_rows
from pipelines.lake.file_lake import FileLake, SparkLake, opened_lake
from pipelines.lake.load import BATCH, read_batches, read_outcomes
from pipelines.lake.table_files import table_files
from pipelines.lake.tables import Origin

pytestmark = pytest.mark.spark
METRIC = (
    "job string, kind string, time double, wall_time double, span_s double, arrival_rps double, batch_s double, "
    "batch_rows bigint, executors bigint, batch_id bigint, task_ceiling bigint"
)
FORECAST = (
    "job string, version string, model string, kind string, time double, wall_time double, step_s double, "
    "levels array<double>, quantiles array<array<double>>"
)


def commit(spark, root, table, rows, columns, partition, behind):
    frame = spark.createDataFrame(rows, columns).selectExpr("*", f"'{partition}' AS ingest_partition")
    origin = Origin(table, "a", partition, {0: 0}, {0: 1}, 5.0, len(rows), 0)
    return commit_rows(root, table, frame, origin, behind)


def metrics(draw, begin, seconds=300):
    """Intervals of about a second of two jobs, of which some have no load, one lasts for hours; and batches."""
    rows = []
    for at in range(begin, begin + seconds):
        load = None if draw.random() < 0.1 else float(draw.uniform(0, 400))
        span = 9000.0 if at == begin + 7 else float(draw.uniform(0.9, 1.1))
        rows.append(("ab"[at % 2], "interval", at + 0.25, at + 1.0, span, load, None, None, 2, None, None))
        waits = None if at % 3 else 8
        rows.append(("ab"[at % 2], "batch", at + 0.25, at + 1.5, 0.5, None, 0.5, int(at % 4), 2, at, waits))
    return rows


@pytest.fixture(scope="module")
def made(spark, tmp_path_factory):
    """Files merged, so that those of before lie beside; a column added later; forecasts issued twice; outcomes."""
    root = tmp_path_factory.mktemp("lake")
    draw = np.random.default_rng(1)
    for hour, begin, behind in (("1", 0, -1), ("2", 20_000, 0)):
        commit(spark, root, "metrics", metrics(draw, begin), METRIC, hour, behind)
    spark.sql(f"OPTIMIZE delta.`{root}/metrics`")
    wider = [(*row, 0.5) for row in metrics(draw, 40_000, 60)]
    assert commit(spark, root, "metrics", wider, f"{METRIC}, gc_s double", "3", 1) == 3
    odd = "m\u2028n"  # Delta writes it as it is into its log, as the least and the greatest name
    served = [
        ("a", version, odd, "gru", at * 60.0, at * 60.0 + 1 - again, 60.0, [0.5, 0.9], [[at + 1.0, again], [2.0, 3.0]])
        for at in range(30)
        for version in "12"
        for again in (0.0, 0.5)
    ]
    commit(spark, root, "forecasts", [*served, ("b", *served[-1][1:])], FORECAST, "1", -1)
    told = [("ab"[at % 2], float(at), json.dumps({"busy": at / 10}), "{}", ["up"]) for at in range(20)]
    columns = "job string, wall_time double, expected string, observed string, codes array<string>"
    commit(spark, root, "outcomes", told, columns, "1", -1)
    return root


@pytest.fixture
def root(made, tmp_path):
    return shutil.copytree(made, tmp_path / "lake")


def test_files_say_what_spark_says(spark, root, monkeypatch):
    monkeypatch.delattr("pipelines.spark.session.local_session")
    by_spark = SparkLake(spark, root)
    with opened_lake(root, "none") as files:
        assert isinstance(files, FileLake)
        for newest_s in (25_000.0, None):  # without the first hour, and with it
            loads, version = files.read_loads(["a", "b", "nobody"], 60.0, newest_s)
            wanted, at = by_spark.read_loads(["a", "b", "nobody"], 60.0, newest_s)
            assert (version, [*loads]) == (at, ["a", "b"]) and [*wanted] == ["a", "b"]
            for job, series in loads.items():
                assert (series.start, series.step_s, len(series)) == (wanted[job].start, 60.0, len(wanted[job]))
                np.testing.assert_allclose(series.values, wanted[job].values, rtol=1e-12)
            assert np.isnan(loads["a"].values).any() and (loads["a"].start < 10_000) == (newest_s is None)
        served, wanted = (lake.read_served_forecasts("a", 1140.0) for lake in (files, by_spark))
        assert len(served) == 20 and len(files.read_served_forecasts("a", -1.0)) == 60
        pd.testing.assert_frame_equal(by_served(wanted), by_served(served))
        newest = wanted.iloc[-1]  # of what was issued twice it is the first
        assert (newest["levels"], newest["quantiles"]) == ([0.5, 0.9], [[30.0, 0.5], [2.0, 3.0]])
        batches = read_batches(by_spark, "a", 1000)
        assert len(batches) == 165 and tuple(batches) == BATCH
        for newest in (3, 1000):
            pd.testing.assert_frame_equal(read_batches(files, "a", newest), batches[:newest])
        told = read_outcomes(by_spark, "a", 2)
        assert [(row["wall_time"], row["expected"], row["observed"]) for row in told] == [
            (16.0, {"busy": 1.6}, {}),
            (18.0, {"busy": 1.8}, {}),
        ]
        every = read_outcomes(files, "a", 1000)
        assert (len(every), every[-2:], read_outcomes(files, "a", 2)) == (10, told, told)
        assert files.read_served_forecasts("nobody", 1.0).empty and read_batches(files, "nobody", 9).empty
        assert by_spark.read_served_forecasts("nobody", 1.0).empty


def by_served(frame):
    return frame.sort_values(["wall_time", "version"], ignore_index=True)


def test_what_is_not_plain_is_read_by_spark(spark, root, monkeypatch):
    stopped = []
    kept = SimpleNamespace(read=spark.read, stop=lambda: stopped.append(True))
    monkeypatch.setattr("pipelines.spark.session.local_session", lambda *_, **__: kept)
    assert table_files(root, "nothing") is None
    (root / "outcomes" / "_delta_log" / f"{0:020}.json").rename(root / "away")  # as Delta itself removes what is old
    assert table_files(root, "outcomes") is None and table_files(root, "metrics") is not None
    (root / "away").rename(root / "outcomes" / "_delta_log" / f"{0:020}.json")
    spark.sql(f"ALTER TABLE delta.`{root}/outcomes` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    assert table_files(root, "outcomes") is None
    with opened_lake(root, "some") as lake:
        assert isinstance(lake, SparkLake)
        assert read_outcomes(lake, "a", 1)[0]["wall_time"] == 18.0
    assert stopped == [True]
