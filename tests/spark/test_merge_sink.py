"""The sink of a live query on real Delta: idempotent, ordered by version, and equal to the pure rule."""

import json
import shutil

import numpy as np
import pytest

from models.relation import results as pure
from tests.fakes.result_tables import HOURLY, live, of_others, seen, told, version
from tidecast.merge import MergeError, MergeSink, read_results
from tidecast.merge.columns import COVERS
from tidecast.merge.table import read_form
from tidecast.signed import count, signed, sum_of, top

pytestmark = pytest.mark.spark
HOUR = 3_600_000


@pytest.fixture
def table(hourly, tmp_path):
    """One whose first micro-batch is written."""
    return shutil.copytree(hourly, tmp_path / "hourly")


def test_repeats_and_older_batches_change_nothing_and_what_cannot_be_merged_is_refused(one_partition, table, tmp_path):
    spark, sink = one_partition, live(one_partition, table)
    sink(told(spark, {("a", 0): None, ("b", 0): 5, ("c", 0): 7}), 1)
    stands = {("b", 0): 5, ("c", 0): 7, ("a", 10): 1, ("a", 20): 50}
    assert seen(table) == stands
    before = version(table)
    sink(told(spark, {("a", 0): None, ("b", 0): 5, ("c", 0): 7}), 1)
    MergeSink(str(table), ["shop"])(told(spark, {("a", 0): 1, ("b", 0): 2}), 0)  # a driver that should be dead
    sink(told(spark, {}), 2)
    assert version(table) == before and seen(table) == stands

    rows = told(spark, {("a", 0): 1})
    with pytest.raises(MergeError, match=r"columns \['_window_end'\] are missing.*put a window before the aggregate"):
        sink(rows.drop("_window_end"), 3)
    with pytest.raises(MergeError, match=r"values \{'many': 'bigint'\}.*has \{'orders': 'bigint'\}: select and cast"):
        sink(rows.withColumnRenamed("orders", "many"), 3)
    with pytest.raises(MergeError, match=r"keys \[\] of the sink, \['shop'\] of"):
        MergeSink(str(table))(rows.drop("shop"), 3)
    with pytest.raises(Exception, match="two results of one key in one window"):
        sink(rows.union(rows), 3)
    of_others(tmp_path)
    with pytest.raises(MergeError, match=r"plain is a sink that does not merge \(it lacks _covers bigint, _version"):
        MergeSink(str(tmp_path / "plain"), ["shop"])(rows, 0)
    with pytest.raises(MergeError, match="parquet is no Delta table, and none can be made there"):
        MergeSink(str(tmp_path / "parquet"), ["shop"])(rows, 0)
    with pytest.raises(MergeError, match="parquet is no Delta table"):
        read_results(spark, str(tmp_path / "parquet"))
    assert version(table) == before and seen(table) == stands


def test_any_tellings_end_as_the_pure_rule_says(one_partition, table):
    """Random micro-batches, also late and again, on rows that live or a backfill wrote."""
    spark = one_partition
    rng = np.random.default_rng(5)
    sink = live(spark, table)
    spark.sql(f"UPDATE delta.`{table}` SET orders = 100, {COVERS} = 0 WHERE shop = 'b'")
    rule = {key: pure.ResultRow(orders, 0) for key, orders in HOURLY.items()} | {("b", 0): pure.ResultRow(100, 0, 0)}
    keys = [("a", 0), ("b", 0), ("c", 0), ("d", 0), ("a", 10)]
    for batch in (2, 1, 2):
        rows = {keys[i]: [None, 7, 8, 9][rng.integers(4)] for i in rng.choice(5, 4, replace=False)}
        sink(told(spark, rows), batch)
        rule |= {key: pure.told(rule.get(key), value, batch) for key, value in rows.items()}
    found = spark.read.format("delta").load(str(table)).collect()
    made = {(row.shop, row._window_start): pure.ResultRow(row.orders, row._version, row[COVERS]) for row in found}
    assert made == rule and len(found) == len(made)
    assert {row.waits for row in made.values()} == {True, False}


def test_a_stream_of_signed_changes_is_written_as_a_batch_says_it(one_partition, tmp_path):
    spark, table = one_partition, tmp_path / "best"
    schema = "shop string, amount bigint, at bigint, sign int"
    files = [[("a", 10, 5, 1), ("a", 20, 6, 1), ("b", 25, 7, 1)], [("a", 20, 6, -1), ("b", 25, 7, -1)]]
    source = tmp_path / "orders"
    source.mkdir()
    for number, rows in enumerate(files):
        text = "\n".join(json.dumps(dict(zip(("shop", "amount", "at", "sign"), row, strict=True))) for row in rows)
        (source / f"{number}.json").write_text(text)

    def changes(df):
        frame = signed(df, "at", ["shop"], mult="sign", lateness_ms=HOUR)
        return frame.window(HOUR).aggregate(orders=count(), best=top(2, "amount")).changes

    def stateless(df):
        window = ("0L AS _window_start", f"{HOUR}L AS _window_end")
        best = "array(named_struct('amount', amount)) AS best"
        return df.where("amount = 10").selectExpr("shop", *window, "2L AS orders", best)

    def run(sink, checkpoint, plan, files=2):
        stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", files).json(str(source))
        writer = plan(stream).writeStream.foreachBatch(sink).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(tmp_path / checkpoint)).start()
        assert query.awaitTermination(300)

    def results():
        found = read_results(spark, str(table)).collect()
        return [(row.shop, row.orders, [tuple(one) for one in row.best]) for row in found]

    first = MergeSink(str(table), ["shop"])
    run(first, "first", changes, 1)
    assert results() == [("a", 1, [(10,)])]
    form = read_form(spark, str(table))
    assert form.query and form.epoch == 0
    with pytest.raises(Exception, match=r"give epoch=1 with a new one"):
        run(first, "second", stateless)  # as by a driver that starts another query with the sink that it has
    run(MergeSink(str(table), ["shop"], epoch=1, plan="2"), "third", stateless)
    again = read_form(spark, str(table))
    assert (again.epoch, again.plan) == (1, "2") and again.query != form.query
    older = r"in epoch 1, this is query .* in epoch 0, .*give epoch=2 with a new one"
    with pytest.raises(MergeError, match=older):
        MergeSink(str(table), ["shop"])(stateless(spark.createDataFrame([("a", 10)], "shop string, amount bigint")), 0)
    assert read_form(spark, str(table)) == again
    assert results() == [("a", 2, [(10,)])]


def test_a_checkpoint_that_is_older_than_its_table_is_refused_and_one_that_repeats_a_batch_is_not(
    one_partition, tmp_path
):
    """In one driver the query is started again with the sink that it had, in the next one with another."""
    spark, table, source, checkpoint = one_partition, tmp_path / "sums", tmp_path / "orders", tmp_path / "checkpoint"
    source.mkdir()
    made, kept = (MergeSink(str(table), ["shop"]) for _ in range(2))

    def run(count, sink=None):
        """Add a file, a micro-batch of its own, and read what was not read yet."""
        (source / f"{count}.json").write_text(json.dumps({"shop": f"s{count}"}))
        stream = spark.readStream.schema("shop string").option("maxFilesPerTrigger", 1).json(str(source))
        rows = stream.selectExpr("shop", "0L AS _window_start", f"{HOUR}L AS _window_end", "1L AS orders")
        writer = rows.writeStream.foreachBatch(sink or MergeSink(str(table), ["shop"]))
        query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        assert query.awaitTermination(300)

    def forget(batch):
        """Of a driver that was killed before it noted the micro-batch as done."""
        (checkpoint / "commits" / f"{batch}").unlink()
        (checkpoint / "commits" / f".{batch}.crc").unlink(missing_ok=True)

    run(0, made)
    shutil.copytree(checkpoint, tmp_path / "copy")
    forget(0)
    run(1, made)
    forget(1)
    run(2, kept)  # the first one that it writes is a repeat
    before = version(table)
    shutil.rmtree(checkpoint)
    shutil.move(tmp_path / "copy", checkpoint)
    for number, sink in ((3, kept), (4, None)):
        with pytest.raises(Exception, match=r"sums has results of later micro-batches than 1: .*older copy.*epoch=1"):
            run(number, sink)
        assert version(table) == before


def test_totals_relations_and_plain_results_are_taken(one_partition, tmp_path):
    spark, table = one_partition, str(tmp_path / "hourly")
    rows = spark.createDataFrame(
        [("a", 3, 5, 1), ("a", 4, 6, 1), ("b", 9, 5, 1), ("b", 9, 5, -1)], "shop string, x bigint, at bigint, sign int"
    )
    frame, sink = signed(rows, "at", ["shop"], mult="sign").window(10), MergeSink(table, ["shop"])
    less = frame.filter("x < 4").aggregate(x=sum_of("x")).relation()
    for batch, (df, total) in enumerate(((frame.totals(x=sum_of("x")), 7), (less, 3))):
        sink(df, batch)
        assert [tuple(row) for row in read_results(spark, table).collect()] == [("a", 0, 10, total)]
