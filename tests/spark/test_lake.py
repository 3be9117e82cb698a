"""The lake on real Delta tables: one named partition at a time, its origin in the same commit."""

from __future__ import annotations

import json

import pytest

from pipelines.lake import tables as lake
from pipelines.lake.errors import LakeError
from pipelines.lake.tables import Lake, Origin

pytestmark = pytest.mark.spark


def frame(spark, partition, rows):
    """(job, time, arrival_rps, offset) as the ingest would store them."""
    columns = "job string, time double, arrival_rps double, kafka_offset bigint"
    return spark.createDataFrame(rows, columns).selectExpr(
        "*", "'interval' AS kind", "1800D AS span_s", f"'{partition}' AS ingest_partition"
    )


def origin(partition, start, end, **more):
    return Origin("metrics", "a", partition, {0: start}, {0: end}, 5.0, end - start, 0, **more)


def contents(store, table="metrics"):
    return sorted((r.job, r.time, r.arrival_rps, r.ingest_partition) for r in store.read_table(table).collect())


def test_partitions_are_replaced_one_by_one_and_history_is_read_by_time(spark, tmp_path):
    store = Lake(spark, tmp_path)
    assert not lake.exists(tmp_path, "metrics")
    assert lake.newest_version(tmp_path, "metrics") is None
    with pytest.raises(LakeError, match="ingest_metrics"):
        store.read_table("metrics")

    first = frame(spark, "2014-10-22T04", [("a", 1800.0, 5.0, 1), ("a", 0.0, 4.0, 0), ("b", 0.0, 9.0, 2)])
    assert store.commit("metrics", first, origin("2014-10-22T04", 0, 3, spans={"a": 3600.0, "b": 1800.0})) == 0
    late = frame(spark, "2014-10-22T05/2014-10-22T07", [("a", 900.0, 6.0, 3)])
    assert store.commit("metrics", late, origin("2014-10-22T05/2014-10-22T07", 3, 4, spans={"a": 1800.0})) == 1
    before = contents(store)

    assert store.commit("metrics", first, origin("2014-10-22T04", 0, 3, spans={"a": 3600.0, "b": 1800.0})) == 2
    assert contents(store) == before
    loads, version = store.read_loads(["a", "nobody"], 1800.0)
    assert ({job: list(load.values) for job, load in loads.items()}, version) == ({"a": [14 / 3, 16 / 3]}, 2)
    assert store.read_table("metrics", at=0).count() == 3

    assert [(o.partition, o.version, o.end) for o in lake.commit_origins(tmp_path, "metrics")] == [
        ("2014-10-22T04", 2, {0: 3}),
        ("2014-10-22T05/2014-10-22T07", 1, {0: 4}),
    ]
    assert (lake.job_spans_s(tmp_path), lake.job_span_s(tmp_path, "nobody")) == ({"a": 5400.0, "b": 1800.0}, 0.0)


def test_the_log_outlives_kafkas_records_and_partitions_may_have_no_row_or_a_new_column(spark, tmp_path):
    """Delta forgets metadata with its log after 30 days by default, and a later re-run would take other offsets."""
    store = Lake(spark, tmp_path)
    store.commit("metrics", frame(spark, "2014-10-22T04", [("a", 0.0, 4.0, 0)]), origin("2014-10-22T04", 0, 1))
    commit = (tmp_path / "metrics/_delta_log/00000000000000000000.json").read_text().splitlines()
    properties = next(json.loads(line)["metaData"]["configuration"] for line in commit if '"metaData"' in line)
    assert properties == {"delta.logRetentionDuration": "interval 400 days"}
    with pytest.raises(Exception, match=r"replaceWhere|REPLACE_WHERE"):
        store.commit("metrics", frame(spark, "2014-10-22T05", [("a", 0.0, 4.0, 0)]), origin("2014-10-22T04", 0, 1))
    assert contents(store) == [("a", 0.0, 4.0, "2014-10-22T04")]
    assert lake.newest_version(tmp_path, "metrics") == 0

    # Of all records refused: Delta would leave out a commit that changes no file, and the same would be taken again.
    none = frame(spark, "2014-10-22T05", [("a", 0.0, 4.0, 0)]).localCheckpoint().where("time > 9")
    assert store.commit("metrics", none, origin("2014-10-22T05", 1, 9)) == 1
    assert [o.end for o in lake.commit_origins(tmp_path, "metrics")] == [{0: 9}, {0: 1}]

    wider = frame(spark, "2014-10-22T06", [("a", 1800.0, 4.0, 9)]).selectExpr("*", "7 AS cores")
    assert store.commit("metrics", wider, origin("2014-10-22T06", 9, 10)) == 2
    assert [r.cores for r in store.read_table("metrics").orderBy("time").collect()] == [None, 7]

    spark.sql(f"ALTER TABLE delta.`{tmp_path}/metrics` SET TBLPROPERTIES ('user.note' = 'by hand')")
    assert lake.newest_version(tmp_path, "metrics") == 3, "a commit of somebody else, without an origin"
    found = [o.partition for o in lake.commit_origins(tmp_path, "metrics")]
    assert found == ["2014-10-22T06", "2014-10-22T05", "2014-10-22T04"]
