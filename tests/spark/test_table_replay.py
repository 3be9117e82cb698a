"""A range of a table, read again as if the topic still held it: paced, in order, once, and into the live table."""

import shutil
import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
import pytest

from pipelines.backfill.asked import RangeError, TimeRange
from pipelines.backfill.tables import find_in_table, find_range
from tests.fakes import driver
from tests.fakes.held_topic import noted
from tests.fakes.result_tables import HOURLY, seen
from tests.fakes.waiting import wait_until
from tidecast.backfill import replay_into, replay_into_topic
from tidecast.backfill.kept import kept_folder
from tidecast.backfill.namespace import end_of
from tidecast.backfill.spec import BackfillError
from tidecast.backfill.topic.kept import kept_results
from tidecast.merge import MergeSink
from tidecast.orders import ReplayOrder, ReplayProgress
from tidecast.replay import staged
from tidecast.replay.driver import Replays
from tidecast.replay.table import RecordTableError, read_table

pytestmark = pytest.mark.spark

DAY, EACH, MINUTES, PARTITIONS = 1_700_000_040.0, 60, 10, 2
"""Ten minutes, from a full minute on, with a record a second; stamped when it happened."""
SCHEMA = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp"
MINUTE = 60_000


def records(topic="orders"):
    at = [(n, datetime.fromtimestamp(DAY + n, UTC)) for n in range(EACH * MINUTES)]
    rows = [(b"", f"{n % 3}".encode(), topic, n % PARTITIONS, n // PARTITIONS, wall) for n, wall in at]
    types = (pa.binary(), pa.binary(), pa.string(), pa.int32(), pa.int64(), pa.timestamp("us", "UTC"))
    names = (column.split()[0] for column in SCHEMA.split(", "))
    columns = (pa.array(values, its) for values, its in zip(zip(*rows, strict=True), types, strict=True))
    return pa.table(dict(zip(names, columns, strict=True)))


def stamped(found, offset, moment):
    """Records of which a clock that was set wrongly has stamped those at an offset."""
    there, at = pc.equal(found["offset"], offset), pa.scalar(moment, pa.timestamp("us", "UTC"))
    return found.set_column(5, "timestamp", pc.if_else(there, at, found["timestamp"]))


@pytest.fixture(scope="module")
def tables(spark, tmp_path_factory):
    """The same records as Delta and as Parquet: in the wrong order, some twice, beside those of another topic."""
    folder = tmp_path_factory.mktemp("lake")
    one = records()
    found = pa.concat_tables([one.take(list(range(len(one)))[::-1]), one.slice(0, 90), records(topic="others")])
    partition, offset = pc.field("partition"), pc.field("offset")
    unlike = found.select(["value", "topic", "partition"]).append_column("offset", found["offset"].cast(pa.int32()))
    later, short = found.filter(offset >= 100), found.filter((partition == 0) | (offset < 130))
    made = {
        "parquet": found,
        "later": later,
        "later_with_strays": stamped(later, 120, datetime(1970, 1, 1, tzinfo=UTC)),
        "short": short,
        "short_with_strays": stamped(short, 120, datetime(2099, 1, 1, tzinfo=UTC)),
        "other": unlike,
    }
    for name, its in made.items():
        (folder / name).mkdir()
        for number in range(3):
            some = its.take(list(range(number, len(its), 3)))
            pyarrow.parquet.write_table(some, folder / name / f"{number}.parquet")
    spark.createDataFrame(found).repartition(3).write.format("delta").save(str(folder / "delta"))
    (folder / "empty").mkdir()
    return folder


def plan(records):
    """Records per shop and minute; strictly in order, or some are late."""
    from pyspark.sql import functions as F

    timed = records.withWatermark("timestamp", "20 seconds")
    minute = F.window("timestamp", "1 minute")
    counted = timed.groupBy(F.col("value").cast("string").alias("shop"), minute).agg(F.count(F.lit(1)).alias("orders"))
    begin, end = (F.unix_millis(f"window.{name}") for name in ("start", "end"))
    return counted.select("shop", begin.alias("_window_start"), end.alias("_window_end"), "orders")


def live(spark, table, folder):
    """The live query, which has counted half of the records: its watermark is at 377 s of the day."""
    (folder / "arrived").mkdir()
    stream = spark.readStream.schema(SCHEMA).parquet(str(folder / "arrived"))
    sink = plan(stream).writeStream.foreachBatch(MergeSink(str(table), ["shop"])).outputMode("update")
    # It has little to do, and looks for files meanwhile.
    query = sink.option("checkpointLocation", str(folder / "live")).trigger(processingTime="500 milliseconds").start()
    for begin, end in ((0, 400), (400, 450)):
        some = records().slice(begin, end - begin)
        half = some.filter(pc.equal(pc.bit_wise_and(some["offset"], 1), 0))
        pyarrow.parquet.write_table(half, folder / f"{begin}.parquet")
        (folder / f"{begin}.parquet").rename(folder / "arrived" / f"{begin}.parquet")
        query.processAllAvailable()
    return query


def ordered(spark, table, begin, end):
    """The order of a range of seconds of the day, found in a table."""
    found = find_in_table(spark, table, noted(), TimeRange(DAY + begin, DAY + end, 0.0, DAY + 900))
    edges = {"begin_ms": int((DAY + begin) * 1000), "end_ms": int((DAY + end) * 1000), "table": str(table)}
    return ReplayOrder("lost", "orders", time.time(), "run", found.starts, found.ends, most_rps=60.0, **edges)


def test_a_range_of_a_table_is_found_paced_and_corrects_the_live_table_but_windows_that_its_query_may_still_change(
    one_partition, tables, tmp_path, monkeypatch
):
    """The driver is killed in the middle, and goes on; nobody who waits for live's queries is told of the replay's."""
    spark, table = one_partition, tmp_path / "of a shop" / "minutes"  # a space is %20 in Spark's log of files
    shops, seen_of_live = spark.createDataFrame([(f"{n}".encode(),) for n in range(3)], "value binary"), set()
    monkeypatch.setattr(staged, "LEAST_ROWS", 60)
    monkeypatch.setattr("tidecast.replay.pace.APART_S", 0.0)  # its rate alone holds it back
    open_ones, order = (ordered(spark, tables / "delta", 120, end) for end in (420, 360))
    begin, end = order.begin_ms, order.end_ms
    job, told, parts = driver.job(), [], (lambda one: one.done >= 60, lambda one: one.state in ("done", "failed"))
    job.mode, job.orders["lost"] = "act", order
    running = live(spark, table, tmp_path)
    try:
        before = seen(table)
        for over in parts:
            again = replay_into(
                spark, str(table), lambda records: plan(records.join(shops, "value")), {}, output_mode="update"
            )  # fmt: skip
            if not told:
                with pytest.raises(BackfillError, match=r"replay lost: live records may still change .*22:21:00"):
                    again.start(open_ones)
                assert not Path(f"{table}.backfills").exists()
            replays = Replays(job, again)
            job.outbox.clear()

            def reached(over=over):
                said = job.outbox.of(ReplayProgress)
                seen_of_live.update(query.id for query in spark.streams.active)
                return said and over(said[-1])

            try:
                wait_until(lambda replays=replays, reached=reached: replays.poll() or reached(), "its part", 300, 0.05)
            finally:
                replays.close()
            told.append(job.outbox.of(ReplayProgress))
        assert seen_of_live == {running.id}  # or who waits for any of its queries would be told of the replay's end
    finally:
        running.stop()
    first, last = told
    assert last[-1].state == "done", last[-1].reason
    assert end_of(table, "lost") == job.orders["lost"].wall_time > order.wall_time
    begun = next(one for one in last if one.reason != "its range is copied")
    assert begun.done >= first[-1].done  # it went on where it was
    assert {one.admitted_rps for one in first + last if one.state == "running"} == {60.0}
    assert len({one.done for one in first + last}) >= 4  # the rate holds, though a file is more than it allows a batch
    inside = {(f"{shop}", begin + n * MINUTE): 20 for shop in range(3) for n in range(4)}
    assert {n for (_, start), n in before.items() if start < end} == {10}
    assert seen(table) == {**before, **inside}
    left = Path(f"{table}.backfills").rglob("*")
    assert sorted(path.name for path in left if path.is_file()) == [".lock", "lease", "lost", "spec.json"]


def test_one_that_is_cancelled_while_its_range_is_copied_leaves_nothing(one_partition, tables, hourly, tmp_path):
    spark, table = one_partition, tmp_path / "minutes"
    job = driver.job()
    job.mode, order = "act", ordered(spark, tables / "delta", 120, 360)
    shutil.copytree(hourly, table)
    replays = Replays(job, replay_into(spark, str(table), plan, {}, output_mode="update"))
    try:
        job.orders["lost"] = order
        folder = Path(f"{table}.backfills") / "lost"
        wait_until(lambda: replays.poll() or folder.exists(), "its copy", 300, 0.05)
        job.orders["lost"] = replace(order, wanted="cancel", wall_time=order.wall_time + 1)
        wait_until(lambda: replays.poll() or replays.states().get("lost") == "cancelled", "its end", 300, 0.05)
        assert not folder.exists() and seen(table) == HOURLY
    finally:
        replays.close()
    assert "its range is copied" in {one.reason for one in job.outbox.of(ReplayProgress)}


def test_a_range_is_found_and_staged_from_parquet_as_from_delta(one_partition, tables, tmp_path, monkeypatch):
    """In order, each record once, in small files: what is staged is all that a replay reads."""
    monkeypatch.setattr(staged, "LEAST_ROWS", 40)
    for kind in ("delta", "parquet"):
        order = ordered(one_partition, tables / kind, 120, 360)
        assert order.starts == {"orders": {"0": 60, "1": 60}} and order.ends == {"orders": {"0": 180, "1": 180}}
        files = sorted(staged.stage(one_partition, order, tmp_path / kind).glob("*.parquet"))
        found = [pyarrow.parquet.read_table(file).to_pylist() for file in files]
        assert max(map(len, found)) <= 40
        times = [(row["timestamp"].replace(tzinfo=UTC).timestamp(), row) for rows in found for row in rows]
        assert [(at, row["partition"], row["offset"], row["topic"]) for at, row in times] == [
            (DAY + n, n % PARTITIONS, n // PARTITIONS, "orders") for n in range(120, 360)
        ]


def test_a_range_of_two_topics_is_staged_from_the_table_that_has_both(one_partition, tables, tmp_path):
    one = ordered(one_partition, tables / "parquet", 120, 360)
    starts, ends = ({**at, "others": at["orders"]} for at in (one.starts, one.ends))
    both = replace(one, starts=starts, ends=ends)
    files = staged.stage(one_partition, both, tmp_path / "both").glob("*.parquet")
    found = [pyarrow.parquet.read_table(file, columns=["topic"])["topic"].to_pylist() for file in files]
    assert Counter(chain.from_iterable(found)) == {"orders": 240, "others": 240}


def test_what_a_table_cannot_give_is_refused_by_name(spark, tables):
    def find(name, begin=DAY + 120, end=DAY + 360, topic="orders", slack=0.0):
        return find_in_table(spark, tables / name, noted(name=topic), TimeRange(begin, end, slack, DAY + 900))

    for given, words in (
        ({"begin": DAY + 360}, "is empty: --to has to be after --from"),
        ({"end": DAY + 5_000}, "is in the future"),
        ({"slack": 600.0}, "may come until"),
        ({"topic": "nobody's"}, 'delta holds no record of topic "nobody\'s"'),
        ({"begin": DAY - 500, "end": DAY - 100}, "delta holds no record of topic 'orders' produced from"),
        ({"end": DAY + 700}, "holds topic 'orders' until 2023-11-14T22:23:59Z, and the range ends at .*Give --to"),
    ):
        with pytest.raises(RangeError, match=words):
            find("delta", **given)
    with pytest.raises(
        RangeError,
        match=r"later does not hold all of topic .*begin at 2023-11-14T22:17:21Z\. Give --from 2023-11-14T22:17:22Z",
    ):
        find("later")
    for name, words in (
        ("nowhere", "nowhere is no folder: give the path of a Delta or Parquet table"),
        ("empty", "empty cannot be read as parquet"),
        ("other", r"other has not the columns .*key missing \(binary is expected\), offset int \(bigint is"),
    ):
        with pytest.raises(RangeError, match=words):
            find(name)
    with pytest.raises(RecordTableError, match="'lake/orders': give its absolute path"):
        read_table(spark, "lake/orders")
    with pytest.raises(RangeError, match="nowhere is no folder"):  # before Spark is started
        find_range(None, ["orders"], TimeRange(DAY, DAY + 60, 0.0, DAY + 900), tables / "nowhere")


def test_each_partition_of_the_topic_is_in_the_range_and_one_that_the_table_has_in_part_is_refused(spark, tables):
    asked = TimeRange(DAY + 120, DAY + 360, 0.0, DAY + 900)
    topic = noted((0, 60, 180), (0, 60, 180), (0, 4, 4), stamps={1: DAY + 261})
    found = find_in_table(spark, tables / "delta", topic, asked)
    assert found.starts == {"orders": {"0": 60, "1": 60, "2": 4}}  # what comes late on a quiet one is read again, too
    assert found.ends == {"orders": {"0": 180, "1": 180, "2": 4}}
    early = TimeRange(DAY - 500, DAY - 100, 0.0, DAY + 900)
    none = find_in_table(spark, tables / "delta", noted(), early, may_be_empty=True)  # as one among several
    assert none.starts == none.ends == {"orders": {"0": 300, "1": 300}}
    with pytest.raises(RangeError, match=r"short lacks records of partition 1 of topic 'orders' from \S+T22:18:21Z on"):
        find_in_table(spark, tables / "short", topic, asked)


def test_of_several_topics_the_table_may_lack_one_whose_topic_has_no_record_of_the_range_either(spark, tables):
    def find(*parts, **stamps):
        return find_in_table(spark, tables / "delta", noted(*parts, name="refunds", **stamps), asked, may_be_empty=True)

    asked = TimeRange(DAY + 120, DAY + 360, 0.0, DAY + 900)
    found = find((0, 0, 0), (0, 7, 7))  # one that never held a record, and one with seven from before the range
    assert found.starts == found.ends == {"refunds": {"0": 0, "1": 7}}
    for parts, stamps, words in (
        ([], {}, "delta holds no record of topic 'refunds': give another table, or --topic"),
        ([(0, 0, 3)], {"stamps": {0: DAY + 130}}, r"lacks records of partition 0 of topic 'refunds' .*T22:16:10Z"),
        ([(5, 5, 5)], {}, r"delta holds partition 0 of topic 'refunds' nowhere, .* begins later, at offset 5:"),
    ):
        with pytest.raises(RangeError, match=words):
            find(*parts, **stamps)
    with pytest.raises(RangeError, match="delta holds no record of topic 'refunds': give"):  # the only one that is read
        find_in_table(spark, tables / "delta", noted((0, 0, 0), name="refunds"), asked)


def test_a_table_that_lacks_a_part_is_refused_though_a_clock_that_was_set_wrongly_stamped_a_record(spark, tables):
    asked = TimeRange(DAY + 120, DAY + 360, 0.0, DAY + 900)
    with pytest.raises(RangeError, match=r"later_with_strays does not hold all of .*begin at 2023-11-14T22:17:21Z"):
        find_in_table(spark, tables / "later_with_strays", noted(), asked)
    topic = noted((0, 60, 180), (0, 60, 180), stamps={1: DAY + 261})
    with pytest.raises(RangeError, match=r"short_with_strays lacks records of partition 1 of .* from \S+T22:18:21Z on"):
        find_in_table(spark, tables / "short_with_strays", topic, asked)


def test_a_range_of_a_table_is_read_for_a_topic_too(one_partition, tables, tmp_path):
    from pyspark.sql import functions as F

    def records_of(records, begin_ms, end_ms):
        window = F.concat("shop", F.lit("@"), "_window_start", F.lit("-"), "_window_end")
        return plan(records).select(window.alias("key"), F.col("orders").cast("string").alias("value"))

    live = SimpleNamespace(recentProgress=[])  # it has just started
    again = replay_into_topic(one_partition, "results", records_of, {}, live, str(tmp_path / "job"))
    order = ordered(one_partition, tables / "delta", 120, 360)
    query = again.start(order)
    try:
        query.processAllAvailable()
    finally:
        query.stop()
        again.close()
    kept = kept_results(one_partition, kept_folder(tmp_path / "job", "lost")).collect()
    begins = range(order.begin_ms, order.end_ms, MINUTE)
    windows = {f"{shop}@{begin}-{begin + MINUTE}" for shop in range(3) for begin in begins}
    assert {row["key"]: bytes(row["value"]) for row in kept} == dict.fromkeys(windows, b"20")
