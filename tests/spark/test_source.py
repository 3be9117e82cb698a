"""A job's load, from the real Delta table to the series that is trained on."""

from __future__ import annotations

import numpy as np
import pytest

from configs.settings import load
from pipelines.lake.commit import commit_rows
from pipelines.lake.folder import lake_folder
from pipelines.lake.load import read_lake
from pipelines.lake.tables import Origin

pytestmark = pytest.mark.spark


def test_the_lake_becomes_a_series_with_its_lineage(spark, tmp_path, monkeypatch):
    monkeypatch.delattr("pipelines.spark.session.local_session")  # of plain tables none is needed
    settings = load(var=tmp_path)
    rows = [("a", 3600.0, 6.0, 1), ("a", 0.0, 4.0, 0), ("a", 5400.0, 8.0, 2), ("b", 0.0, 99.0, 3)]
    frame = spark.createDataFrame(rows, "job string, time double, arrival_rps double, kafka_offset bigint").selectExpr(
        "*", "'interval' AS kind", "1800D AS span_s", "'p' AS ingest_partition"
    )
    commit_rows(lake_folder(settings), "metrics", frame, Origin("metrics", "a", "p", {0: 0}, {0: 4}, 5.0, 4, 0))

    source = read_lake(settings, "a", 1800.0)
    np.testing.assert_equal(source.series.values, [4.0, np.nan, 6.0, 8.0])
    assert (source.delta_version, source.known, source.lineage()["data.missing"]) == (0, 3, "1")
    assert source.lineage() == read_lake(settings, "a", 1800.0).lineage()
    assert len(read_lake(settings, "nobody", 1800.0).series) == 0
