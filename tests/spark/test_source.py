"""A job's load, from the real Delta table to the series that is trained on."""

from __future__ import annotations

import numpy as np
import pytest

from configs.settings import load
from pipelines.lake.folder import lake_folder
from pipelines.lake.load import read_lake
from pipelines.lake.tables import Lake, Origin

pytestmark = pytest.mark.spark


def test_the_lake_becomes_a_series_with_its_lineage(spark, tmp_path, monkeypatch):
    monkeypatch.delattr("pipelines.spark.session.local_session")  # of plain tables none is needed
    settings = load(var=tmp_path)
    rows = [("a", 3600.0, 6.0, 1), ("a", 0.0, 4.0, 0), ("a", 5400.0, 8.0, 2), ("b", 0.0, 99.0, 3)]
    frame = spark.createDataFrame(rows, "job string, time double, arrival_rps double, kafka_offset bigint").selectExpr(
        "*", "'interval' AS kind", "1800D AS span_s", "'p' AS ingest_partition"
    )
    Lake(spark, lake_folder(settings)).commit("metrics", frame, Origin("metrics", "a", "p", {0: 0}, {0: 4}, 5.0, 4, 0))

    source = read_lake(settings, "a", 1800.0)
    np.testing.assert_equal(source.series.values, [4.0, np.nan, 6.0, 8.0])
    assert (source.delta_version, source.known, source.lineage()["data.missing"]) == (0, 3, "1")
    assert source.lineage() == read_lake(settings, "a", 1800.0).lineage()
    assert len(read_lake(settings, "nobody", 1800.0).series) == 0


def test_the_newest_served_forecasts_come_with_it_as_lists(spark, tmp_path):
    columns = (
        "job string, version string, time double, wall_time double, levels array<double>, "
        "quantiles array<array<double>>"
    )
    rows = [
        ("a", "1", 0.0, 10.0, [0.5], [[1.0], [2.0]]),
        ("a", "2", 9000.0, 12.0, [0.5], [[3.0], [4.0]]),
        ("a", "1", 8000.0, 11.0, [0.5], [[5.0], [6.0]]),
        ("b", "7", 9000.0, 13.0, [0.5], [[7.0], [8.0]]),
    ]
    frame = spark.createDataFrame(rows, columns).selectExpr(
        "*", "'m' AS model", "'gru' AS kind", "1800D AS step_s", "'p' AS ingest_partition"
    )
    Lake(spark, tmp_path).commit("forecasts", frame, Origin("forecasts", "a", "p", {0: 0}, {0: 4}, 5.0, 4, 0))
    served = Lake(spark, tmp_path).read_served_forecasts("a", 3600.0)
    assert list(served["version"]) == ["1", "2"]  # that of time 0 is too old, and b is another job
    assert served["quantiles"].tolist() == [[[5.0], [6.0]], [[3.0], [4.0]]]
    assert served["levels"].tolist() == [[0.5], [0.5]]
    assert Lake(spark, tmp_path).read_served_forecasts("nobody", 3600.0).empty
