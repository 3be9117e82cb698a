"""The lake on real Delta tables: one named partition at a time, its origin in the same commit."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pipelines.lake import tables as lake
from pipelines.lake.commit import commit_rows
from pipelines.lake.errors import LakeError, LakeOvertakenError
from pipelines.lake.tables import Lake, Origin
from tests.fakes.lake_rows import lake_rows

pytestmark = pytest.mark.spark
BEGUN = "2014-10-22T04"


def frame(spark, partition, rows):
    """(job, time, arrival_rps, offset) as the ingest would store them."""
    columns = "job string, time double, arrival_rps double, kafka_offset bigint"
    return spark.createDataFrame(rows, columns).selectExpr(
        "*", "'interval' AS kind", "1800D AS span_s", f"'{partition}' AS ingest_partition"
    )


def origin(partition, start, end, **more):
    return Origin("metrics", "a", partition, {0: start}, {0: end}, 5.0, end - start, 0, **more)


def contents(root):
    """By the files that the log names, of which `test_file_lake` says that Spark reads the same."""
    return sorted((r["job"], r["time"], r["arrival_rps"], r["ingest_partition"]) for r in lake_rows(root, "metrics"))


@pytest.fixture(scope="module")
def begun(spark, tmp_path_factory):
    """A lake with one ingest's partition, of one row."""
    root = tmp_path_factory.mktemp("begun")
    commit_rows(root, "metrics", frame(spark, BEGUN, [("a", 0.0, 4.0, 0)]), origin(BEGUN, 0, 1), behind=-1)
    return root


@pytest.fixture
def root(begun, tmp_path):
    return shutil.copytree(begun, tmp_path / "lake")


def test_partitions_are_replaced_one_by_one_and_read_as_loads(spark, tmp_path):
    store = Lake(spark, tmp_path)
    assert not lake.exists(tmp_path, "metrics")
    assert lake.newest_version(tmp_path, "metrics") is None
    with pytest.raises(LakeError, match="ingest_metrics"):
        store.read_table("metrics")

    first = frame(spark, "2014-10-22T04", [("a", 1800.0, 5.0, 1), ("a", 0.0, 4.0, 0), ("b", 0.0, 9.0, 2)])
    taken = origin("2014-10-22T04", 0, 3, spans={"a": 3600.0, "b": 1800.0})
    assert commit_rows(tmp_path, "metrics", first, taken, behind=-1) == 0
    late = frame(spark, "2014-10-22T05/2014-10-22T07", [("a", 900.0, 6.0, 3)])
    following = origin("2014-10-22T05/2014-10-22T07", 3, 4, spans={"a": 1800.0})
    assert commit_rows(tmp_path, "metrics", late, following, behind=0) == 1

    again = frame(spark, "2014-10-22T04", [("a", 1800.0, 5.0, 1), ("a", 0.0, 4.0, 0), ("c", 0.0, 1.0, 2)])
    assert commit_rows(tmp_path, "metrics", again, taken) == 2
    assert contents(tmp_path) == [
        ("a", 0.0, 4.0, taken.partition),
        ("a", 900.0, 6.0, following.partition),
        ("a", 1800.0, 5.0, taken.partition),
        ("c", 0.0, 1.0, taken.partition),
    ]
    loads, version = store.read_loads(["a", "nobody"], 1800.0)
    assert ({job: list(load.values) for job, load in loads.items()}, version) == ({"a": [14 / 3, 16 / 3]}, 2)

    assert [(o.partition, o.version, o.end) for o in lake.commit_origins(tmp_path, "metrics")] == [
        ("2014-10-22T04", 2, {0: 3}),
        ("2014-10-22T05/2014-10-22T07", 1, {0: 4}),
    ]
    assert (lake.job_spans_s(tmp_path), lake.job_span_s(tmp_path, "nobody")) == ({"a": 5400.0, "b": 1800.0}, 0.0)


def test_the_log_outlives_kafkas_records_and_partitions_may_have_no_row_or_a_new_column(spark, root):
    """Delta forgets metadata with its log after 30 days by default, and a later re-run would take other offsets."""
    commit = (root / "metrics/_delta_log/00000000000000000000.json").read_text().splitlines()
    properties = next(json.loads(line)["metaData"]["configuration"] for line in commit if '"metaData"' in line)
    assert properties == {"delta.logRetentionDuration": "interval 400 days"}
    strange = frame(spark, "2014-10-22T05", [("a", 0.0, 4.0, 0)])
    for behind, said in ((None, r"replaceWhere|REPLACE_WHERE"), (0, "not of .*2014-10-22T04.*=2014-10-22T05")):
        with pytest.raises(Exception, match=said):
            commit_rows(root, "metrics", strange, origin(BEGUN, 0, 1), behind)
    assert contents(root) == [("a", 0.0, 4.0, BEGUN)]
    assert lake.newest_version(root, "metrics") == 0

    # Of all records refused: Delta would leave out a commit that changes no file, and the same would be taken again.
    none = frame(spark, "2014-10-22T05", [("a", 0.0, 4.0, 0)]).localCheckpoint().where("time > 9")
    assert commit_rows(root, "metrics", none, origin("2014-10-22T05", 1, 9), behind=0) == 1
    assert [o.end for o in lake.commit_origins(root, "metrics")] == [{0: 9}, {0: 1}]

    wider = frame(spark, "2014-10-22T06", [("a", 1800.0, 4.0, 9)]).selectExpr("*", "7 AS cores")
    assert commit_rows(root, "metrics", wider, origin("2014-10-22T06", 9, 10), behind=1) == 2
    assert sorted((r["time"], r["cores"]) for r in lake_rows(root, "metrics")) == [(0.0, None), (1800.0, 7)]

    found = [o.partition for o in lake.commit_origins(root, "metrics")]
    assert found == ["2014-10-22T06", "2014-10-22T05", BEGUN]


def test_of_ingests_that_looked_up_the_same_offsets_the_first_one_counts_also_if_files_are_merged_meanwhile(
    spark, root
):
    """As a task that Airflow took for dead and the next try of it, or two deployments with one lake."""
    store, hours = Lake(spark, root), [f"2014-10-22T{hour:02}" for hour in range(4, 8)]
    rows = [frame(spark, hour, [("a", 3600.0 * at, 4.0, at)]) for at, hour in enumerate(hours)]
    spark.sql(f"ALTER TABLE delta.`{root}/metrics` SET TBLPROPERTIES ('user.note' = 'as a merge of files is')")
    assert commit_rows(root, "metrics", rows[1], origin(hours[1], 1, 2), behind=0) == 2
    before = contents(root)
    assert [one.version for one in lake.commit_origins(root, "metrics")] == [2, 0], "of somebody else's commit none"
    for late in (1, 2):  # of the same name, and of another
        with pytest.raises(LakeOvertakenError, match=rf"behind version 0, .*{hours[late]}.* Run it again"):
            commit_rows(root, "metrics", rows[late], origin(hours[late], 1, 3), behind=0)
    assert contents(root) == before and lake.newest_version(root, "metrics") == 2
    assert commit_rows(root, "metrics", rows[2], origin(hours[2], 2, 3), behind=2) == 3

    # Delta forgets the log, and not which turns there were.
    path = f"delta.`{root}/metrics`"
    spark.sql(f"ALTER TABLE {path} SET TBLPROPERTIES ('delta.checkpointInterval' = '4')")  # it is version 4 itself
    log = root / "metrics" / "_delta_log"
    for old in range(4):
        (log / f"{old:020}.json").unlink()
    assert lake.commit_origins(root, "metrics") == []
    assert commit_rows(root, "metrics", rows[3], origin(hours[3], 3, 4), behind=-1) == 5
    times = [row.time for row in store.read_table("metrics").orderBy("time").collect()]
    assert times == [0.0, 3600.0, 7200.0, 10_800.0]


def test_an_ingest_that_commits_while_another_one_writes_is_the_only_one(spark, root, tmp_path):
    elsewhere, taken = shutil.copytree(root, tmp_path / "first"), origin("2014-10-22T05", 1, 2)
    first = frame(spark, taken.partition, [("a", 3600.0, 5.0, 1)])
    commit_rows(elsewhere, "metrics", first, taken, behind=0)
    there, here = str(elsewhere / "metrics"), str(root / "metrics")

    def overtake(batches):
        """While the task of the second one runs, the first one's commit appears."""
        for file in sorted(Path(there).rglob("*")):  # the log, `_delta_log`, is the first; its commit the last to come
            to = Path(here) / file.relative_to(there)
            if file.is_file() and not to.exists() and "_delta_log" not in file.parts:
                shutil.copy(file, to)
        shutil.copy(f"{there}/_delta_log/{1:020}.json", f"{here}/_delta_log/{1:020}.json")
        yield from batches

    second = frame(spark, taken.partition, [("a", 3600.0, 5.0, 1), ("a", 5400.0, 6.0, 2)])
    slow = second.mapInArrow(overtake, second.schema)
    with pytest.raises(LakeOvertakenError, match="behind version 0"):
        commit_rows(root, "metrics", slow, origin(taken.partition, 1, 3), behind=0)
    assert contents(root) == contents(elsewhere)
    assert [one.end for one in lake.commit_origins(root, "metrics")] == [{0: 2}, {0: 1}]
