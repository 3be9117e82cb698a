"""The lake's upkeep on real Delta tables: fewer files, the same rows, origins and re-runs."""

import json
from types import SimpleNamespace

import pytest

from configs.settings import load
from pipelines.lake import tables as lake
from pipelines.lake.commit import commit_rows
from pipelines.lake.folder import lake_folder
from pipelines.lake.table_files import table_files
from pipelines.lake.tables import Lake, Origin
from pipelines.lake.upkeep import maintain
from tests.fakes.lake_rows import lake_rows

pytestmark = pytest.mark.spark
HOURS = [f"2014-10-22T{hour:02}" for hour in range(2)]


@pytest.fixture
def settings(spark, tmp_path, monkeypatch):
    kept = SimpleNamespace(read=spark.read, conf=spark.conf, sql=spark.sql, stop=lambda: None)
    monkeypatch.setattr("pipelines.spark.session.local_session", lambda *_, **__: kept)
    return load(var=tmp_path)


def rows(spark, hour, rate=4.0):
    frame = spark.createDataFrame(
        [("a", 3600.0 * hour, rate, hour)], "job string, time double, arrival_rps double, kafka_offset bigint"
    )
    return frame.selectExpr("*", "'interval' AS kind", "1800D AS span_s", f"'{HOURS[hour]}' AS ingest_partition")


def origin(hour):
    return Origin("metrics", "a", HOURS[hour], {0: hour}, {0: hour + 1}, 5.0, 1, 0, {"a": 1800.0})


def contents(root):
    return sorted(map(str, lake_rows(root, "metrics")))


def of_somebody_else(root):
    """Tables of three names with other metadata than an ingest's, or none: logs alone, for nobody may look further."""
    said = {"noted": {"userMetadata": "by hand"}, "listed": {"userMetadata": "[1]"}, "sales": {}}
    for name, told in said.items():
        log = root / name / "_delta_log"
        log.mkdir(parents=True)
        lines = {"commitInfo": {"operation": "WRITE", **told}}, {"metaData": {"partitionColumns": ["kind"]}}
        (log / f"{0:020}.json").write_text("\n".join(map(json.dumps, lines)))


def test_files_become_one_and_all_else_stays_also_tables_of_somebody_else(spark, settings):
    store = Lake(spark, lake_folder(settings))
    for hour in range(len(HOURS)):
        commit_rows(store.root, "metrics", rows(spark, hour), origin(hour), behind=hour - 1)
    of_somebody_else(store.root)
    before, history = contents(store.root), lake.commit_origins(store.root, "metrics")
    span = lake.job_span_s(store.root, "a")
    assert maintain(settings) == {"metrics": 1}
    for name in ("sales", "noted", "listed"):
        assert lake.partition_columns(store.root, name) == ["kind"] and lake.newest_version(store.root, name) == 0
    assert (contents(store.root), lake.commit_origins(store.root, "metrics")) == (before, history)
    assert (lake.job_span_s(store.root, "a"), lake.job_span_s(store.root, "b")) == (span, 0.0)
    assert store.read_table("metrics", at=0).count() == 1  # who reads an older version goes on reading it


def test_a_lake_of_the_older_form_is_written_to_and_then_taken_over(spark, settings):
    root = lake_folder(settings)
    rows(spark, 0).write.format("delta").partitionBy("ingest_partition").save(str(root / "metrics"))
    commit_rows(root, "metrics", rows(spark, 1), origin(1), behind=-1)
    same = {"job": "a", "arrival_rps": 4.0, "kind": "interval", "span_s": 1800.0}
    written = [
        {**same, "time": 3600.0 * hour, "kafka_offset": hour, "ingest_partition": name}
        for hour, name in enumerate(HOURS)
    ]
    assert lake.partition_columns(root, "metrics") == ["ingest_partition"]
    assert table_files(root, "metrics") is None, "Spark alone reads it"
    assert maintain(settings) == {"metrics": 1}
    kept = sorted(lake_rows(root, "metrics"), key=lambda row: row["time"])
    assert (lake.partition_columns(root, "metrics"), kept) == ([], written)
    commit_rows(root, "metrics", rows(spark, 1, rate=9.0), origin(1))  # a re-run, of rows in a file with others
    assert sorted(row["arrival_rps"] for row in lake_rows(root, "metrics")) == [4.0, 9.0]


def test_an_empty_lake_starts_no_spark(tmp_path):
    assert maintain(load(var=tmp_path)) == {}
