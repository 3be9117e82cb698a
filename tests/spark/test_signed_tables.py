"""Signed plans on tables: every operator against the reference, types, sinks, and what is refused."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from pyspark.sql.types import DecimalType

from models.relation.changelog import LogShape, draw_changelog
from models.relation.plan import run_batch
from tests.fakes.signed_logs import collect_net, expected, parsed, read_log, together, told, write_log
from tests.fakes.signed_plans import PLANS, reference
from tidecast.signed import (
    SignedError,
    count,
    max_of,
    mean_of,
    min_of,
    net,
    quantile_of,
    signed,
    sum_of,
    top,
    upserts,
)  # fmt: skip
from tidecast.signed.groups import as_type

pytestmark = pytest.mark.spark
HOUR = 3_600_000


@pytest.fixture(scope="module")
def sales(spark):
    """A user's table: names, decimals, dates, nulls, and one record that was taken back."""
    rows = [
        ("a", "tea", Decimal("1.10"), date(2026, 3, 1), 1, 1),
        ("a", "tea", Decimal("2.20"), date(2026, 3, 2), 2, 1),
        ("a", "rum", None, None, HOUR, 1),
        ("a", "tea", Decimal("1.10"), date(2026, 3, 1), 1, -1),
        (None, "tea", Decimal("5.00"), date(2026, 3, 3), 3, 1),
    ]
    return spark.createDataFrame(rows, "shop string, item string, price decimal(6,2), day date, at bigint, sign int")


def test_every_operator_is_the_references(one_partition, tmp_path):
    shape = LogShape(records=6, keys=2, values=3, batches=1, orphaned=0.1)
    log = together({seed: draw_changelog(shape, np.random.default_rng(seed)) for seed in range(40)})
    write_log(tmp_path, log)
    left, right = (read_log(one_partition, tmp_path, source, False, 0) for source in log.sources)
    frames = {name: plan(left, right) for name, (plan, *_) in PLANS.items()}
    wanted = expected(run_batch(reference(PLANS), log.relations), PLANS)
    assert {plan for plan, _ in wanted} == {*PLANS}
    assert parsed(collect_net(told(frames))) == wanted


@pytest.mark.parametrize(("digits", "large"), [(34, "1234567890123456"), (27, "123456789")])
def test_sums_of_long_decimals_are_exact(spark, digits, large):
    most = Decimal(f"{large}.{7:018d}")
    rows = [
        ("a", Decimal("1E-18"), 1, 1), ("a", most, 2, 1), ("a", Decimal(f"{large}.{3:018d}"), 3, -1),
    ]  # fmt: skip
    df = spark.createDataFrame(rows, f"shop string, x decimal({digits},18), at bigint, sign int")
    (row,) = signed(df, "at", ["shop"], mult="sign").aggregate(s=sum_of("x")).changes.select("s").collect()
    assert row.s == Decimal("5E-18")
    assert as_type(DecimalType(38, 18), Fraction(most)) == most


def test_the_least_int_can_be_taken_back(spark):
    rows = [("a", -(2**31), 1, 1), ("a", -(2**31), 1, -1), ("a", 5, 2, 1)]
    frame = signed(spark.createDataFrame(rows, "shop string, x int, at bigint, sign int"), "at", ["shop"], mult="sign")
    (row,) = frame.aggregate(s=sum_of("x"), m=mean_of("x")).changes.collect()
    assert (row.s, row.m) == (5, 5.0)


def test_a_mean_is_right_where_the_sum_is_beyond_64_bits(spark):
    from pyspark.sql import functions as F

    rows = [("a", 2**62, 1)] * 3 + [("b", -(2**63), 1)] * 3 + [("b", -(2**63), -1), ("b", None, 1)]
    df = spark.createDataFrame(rows, "shop string, x bigint, sign int").withColumn("at", F.lit(1))
    for mult in (None, "sign"):
        frame = signed(df if mult else df.where("sign = 1"), "at", ["shop"], mult=mult).window(HOUR)
        for found in (frame.aggregate(m=mean_of("x")).changes, frame.totals(m=mean_of("x"))):
            assert {(row.shop, row.m) for row in found.collect()} == {("a", 2.0**62), ("b", -(2.0**63))}


def test_a_users_columns_and_types_survive(spark, sales):
    stamped = sales.selectExpr("*", "timestamp_millis(at) AS stamp")
    frame = signed(stamped, "stamp", ["shop"], mult="sign")
    assert frame.changes.columns == [*stamped.columns, "_t_e", "_t_i", "_mult", "_origin"]
    assert frame.values == ("item", "price", "day", "at", "sign", "stamp")
    got = frame.aggregate(
        n=count(), s=sum_of("price"), m=mean_of("price"), first=min_of("day"), last=max_of("item"),
        best=top(1, "price", "item"), low=quantile_of("item", 0.5),
    ).changes.orderBy("shop").collect()  # fmt: skip
    assert [tuple(row)[1:8] for row in got] == [
        (1, Decimal("5.00"), 5.0, date(2026, 3, 3), "tea", [(Decimal("5.00"), "tea")], "tea"),
        (2, Decimal("2.20"), 2.2, date(2026, 3, 2), "tea", [(Decimal("2.20"), "tea")], "rum"),
    ]
    assert got[0].shop is None
    relation = frame.select("item").relation().collect()
    assert sorted((row.item, row._t_e, row._net) for row in relation) == [
        ("rum", HOUR, 1),
        ("tea", 2, 1),
        ("tea", 3, 1),
    ]
    assert stamped.first().stamp.replace(tzinfo=UTC) < datetime(1970, 1, 2, tzinfo=UTC)


def test_totals_merge_by_key_and_version(sales):
    frame = signed(sales, "at", ["shop"], mult="sign").window(HOUR)
    rows = frame.totals(n=count(), s=sum_of("price")).collect()
    assert sorted((row.shop or "", row._window_start, row.n, row.s, row._net, row._version) for row in rows) == [
        ("", 0, 1, Decimal("5.00"), 1, 1),
        ("a", 0, 1, Decimal("2.20"), 1, 3),
        ("a", HOUR, 1, None, 1, 1),
    ]


def test_insertions_alone_come_to_what_they_do_with_their_signs_and_groups_are_hashed(spark, sales):
    """Where nothing is taken back plain sums do: beside nulls, a group of nulls alone, decimals and doubles."""
    from pyspark.sql import functions as F

    inserted = sales.where("sign = 1").selectExpr("*", "cast(price AS double) * 0.1 AS part", "at % 2 AS odd")
    reductions = {
        "n": count(), "s": sum_of("price"), "m": mean_of("price"), "d": sum_of("part"), "o": sum_of("odd"),
        "of": mean_of("at"),
    }  # fmt: skip
    plain = signed(inserted, "at", ["shop", "item"]).window(HOUR)
    with_signs = signed(inserted, "at", ["shop", "item"], mult=F.lit(1)).window(HOUR)
    assert not plain.retracting and with_signs.retracting
    made = [
        (frame.aggregate(**reductions).changes, frame.totals(**reductions)) for frame in (plain, with_signs)
    ]  # fmt: skip
    for one, other in zip(*made, strict=True):
        assert one.dtypes == other.dtypes
        assert sorted(map(repr, one.collect())) == sorted(map(repr, other.collect()))
        assert all("SortAggregate" not in df._jdf.queryExecution().toString() for df in (one, other))
    (rum,) = plain.totals(**reductions).where("item = 'rum'").collect()
    assert (rum.n, rum.s, rum.m, rum._net, rum._version) == (1, None, None, 1, 1)


def test_records_move_from_session_to_session_in_a_stream_and_not_in_a_table(spark, sales, tmp_path):
    stream = spark.readStream.schema(sales.schema).json(str(tmp_path))
    moved = [signed(df, "at", ["shop"]).select("item").sessions(1_000) for df in (sales, stream)]
    assert [frame.retracting for frame in moved] == [False, True]


def test_a_transform_that_unites_records_with_others_may_take_some_back(sales):
    from pyspark.sql import functions as F

    shops = signed(sales.where("sign = 1"), "at", ["shop"])
    moved = shops.transform(lambda df: df.unionByName(df.where("item = 'tea'").withColumn("_mult", F.lit(-1))))
    rows = moved.aggregate(n=count(), last=max_of("item")).changes.collect()
    assert moved.retracting and [(row.shop, row.n, row.last) for row in rows] == [("a", 1, "rum")]
    twice = shops.union(shops, shops)
    alone = twice.transform(lambda df: df.where("item = 'tea'").selectExpr("*", "explode(array(1, 2)) AS i"))
    assert not alone.retracting and twice.transform(lambda df: df.union(df)).retracting


def test_a_transform_that_moves_event_times_is_refused_in_a_table_and_in_a_stream(spark, sales, tmp_path):
    from pyspark.sql import functions as F

    stream = spark.readStream.schema(sales.schema).json(str(tmp_path))
    an_hour = {"_t_e": F.lit(HOUR), "_clock": F.expr("INTERVAL 1 HOUR")}
    for df, name in ((sales, "_t_e"), (stream, "_t_e"), (stream, "_clock")):
        frame = signed(df, "at", ["shop"])
        with pytest.raises(SignedError, match=rf"made \['{name}'\] anew: event times come from signed\(time=\.\.\.\)"):
            frame.transform(lambda of, name=name: of.withColumn(name, F.col(name) + an_hour[name]))
        kept = frame.transform(lambda of: of.selectExpr("*", "at + 1 AS later").where("later > 2"))
        assert not kept.retracting and "later" in kept.values
        with pytest.raises(SignedError, match="as they are: give fillna and replace a subset=, put toDF, mapInPan"):
            frame.transform(lambda of: of.fillna(0))
        others = signed(df, "at", ["shop"]).df
        for unite in (lambda of, others=others: others.union(of), lambda of: of.toDF(*of.columns)):
            with pytest.raises(SignedError, match="and begin a union with the records that the function is given"):
                frame.transform(unite)
        assert not frame.transform(lambda of: of.fillna(0, subset=["sign"])).retracting
        assert frame.transform(lambda of, others=others: of.union(others)).retracting


def test_changes_of_an_aggregate_are_rows_to_replace_and_rows_that_go(spark):
    changes = spark.createDataFrame(
        [("a", 1, -1), ("a", 2, 1), ("b", 5, -1), ("c", 7, 1), ("d", 3, 1), ("d", 3, -1)], "k string, n int, _mult int"
    )
    rows = upserts(changes, ["k"]).collect()
    assert sorted(map(tuple, rows)) == [("a", 2, False), ("b", None, True), ("c", 7, False)]
    with pytest.raises(SignedError, match=r"key columns \['x'\]: the changes have"):
        upserts(changes, ["x"])
    with pytest.raises(Exception, match="two results of one key in one window: name all columns of the key"):
        upserts(changes.replace("c", "a"), ["k"]).collect()
    assert sorted(map(tuple, net(changes).collect())) == [("a", 1, -1), ("a", 2, 1), ("b", 5, -1), ("c", 7, 1)]


REFUSED = {
    "columns ['_mult'] are reserved": lambda df: signed(df.withColumnRenamed("sign", "_mult"), "at"),
    "columns ['a shop.id', 'a`b'] have a dot or a backtick": lambda df: signed(
        df.selectExpr("*", "1 AS `a shop.id`", "2 AS `a``b`"), "at"
    ),
    "columns ['item.name'] have": lambda df: signed(df, "at").transform(
        lambda of: of.selectExpr("*", "1 AS `item.name`")
    ),
    "columns ['(sign * 0.1)'] have": lambda df: signed(df, "at").select(df.sign * 0.1),
    "time column 'when' is unknown": lambda df: signed(df, "when"),
    "time column 'item' is string: cast it to timestamp_ltz, or": lambda df: signed(df, "item"),
    "origin 'past'": lambda df: signed(df, "at", origin="past"),
    "delay_ms -1": lambda df: signed(df, "at", delay_ms=-1),
    "delay, 500.0 ms: give a whole number": lambda df: signed(df, "at", delay_ms=1000 / 2),
    "columns ['_mult', '_origin', '_t_e', '_t_i'] stay by themselves: name your own": lambda df: signed(
        df, "at"
    ).select("*"),
    "key columns ['x']: the records have": lambda df: signed(df, "at", ["x"]),
    "name each once": lambda df: signed(df, "at", ["shop", "shop"]),
    "under no key and in no window": lambda df: signed(df, "at").aggregate(n=count()),
    "columns ['y'] of sum are unknown": lambda df: by_shop(df).aggregate(s=sum_of("y")),
    "sum of 'item', string: cast it": lambda df: by_shop(df).aggregate(s=sum_of("item")),
    "results ['shop'] are named as": lambda df: by_shop(df).aggregate(shop=count()),
    "emission 'all'": lambda df: by_shop(df).aggregate("all", n=count()),
    "totals ['lo']: signed sums make": lambda df: by_shop(df).totals(lo=min_of("price")),
    "slide of a window of 10 ms, 20 ms": lambda df: signed(df, "at").window(10, 20),
    "size of a window, 0 ms": lambda df: signed(df, "at").window(0),
    "size of a window, 1800000.0 ms: give a whole number": lambda df: signed(df, "at").window(HOUR / 2),
    "slide of a window, 5.0 ms: give a whole number": lambda df: signed(df, "at").window(10, 5.0),
    "gap of a session, 5.0 ms: give a whole number": lambda df: by_shop(df).sessions(5.0),
    "bound of a join, 5.0 ms: give a whole number": lambda df: joined(df, 5.0),
    "results over all time": lambda df: by_shop(df).distinct().window(10),
    "cannot leave their window before": lambda df: signed(df, "at").window(10).window(20),
    "pairs of a join without bound": lambda df: joined(df, None).window(10),
    "a join by time behind a join": lambda df: joined(df, 1).join(by_shop(df).select(), bound_ms=1),
    "bound of a join, -1 ms": lambda df: joined(df, -1),
    "are on both sides of a join": lambda df: by_shop(df).join(by_shop(df)),
    "rekey and window both alike": lambda df: by_shop(df).union(signed(df, "at", ["item"])),
    "differ: select the same": lambda df: by_shop(df).union(by_shop(df).select("item")),
    "columns ['_mult'] are gone": lambda df: signed(df, "at").transform(lambda of: of.drop("_mult")),
    "top(0, 'price')": lambda df: top(0, "price"),
    "quantile_of('price', 0)": lambda df: quantile_of("price", 0),
    "with nine decimals or less": lambda df: quantile_of("price", 0.1234567891),
    "gap of a session, 0 ms": lambda df: by_shop(df).sessions(0),
    "sessions of records under no key": lambda df: signed(df, "at").sessions(10),
    "sessions of results over all time": lambda df: by_shop(df).distinct().sessions(10),
    "sessions of pairs of a join without": lambda df: joined(df, None).sessions(10),
    "their window before": lambda df: by_shop(df).sessions(10).window(10),
    "'stamp' of a session, timestamp": lambda df: signed(
        df.selectExpr("*", "timestamp_millis(at) AS stamp"), "at", ["shop"]
    ).sessions(10),
}


@cache
def by_shop(df):
    return signed(df, "at", ["shop"])


def joined(df, bound_ms):
    return by_shop(df).join(by_shop(df).select(), bound_ms)


@pytest.mark.parametrize("words", REFUSED)
def test_what_has_no_meaning_is_refused_with_a_remedy(sales, words):
    with pytest.raises(SignedError) as refused:
        REFUSED[words](sales)
    assert words in str(refused.value)


def test_a_time_without_zone_is_taken_once_it_is_cast_as_the_refusal_says(spark, sales):
    spark.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    try:
        stamped = sales.selectExpr("*", "cast(timestamp_millis(at) AS timestamp) AS stamp")
        with pytest.raises(SignedError, match="'stamp' is timestamp_ntz: cast it to timestamp_ltz, or to bigint as ms"):
            signed(stamped, "stamp")
        cast = stamped.withColumn("stamp", stamped.stamp.cast("timestamp_ltz"))
        assert [row._t_e == row["at"] for row in signed(cast, "stamp").changes.collect()] == [True] * sales.count()
    finally:
        spark.conf.unset("spark.sql.timestampType")


@pytest.mark.parametrize(("column", "words"), [("at", "a record without broken"), ("sign", "a sign other than")])
def test_a_record_without_time_or_sign_stops_the_query(sales, column, words):
    broken = sales.selectExpr("*", f"nullif({column}, 1) AS broken")
    given = {"time": "broken"} if column == "at" else {"time": "at", "mult": "broken"}
    with pytest.raises(Exception, match=words):
        signed(broken, **given).changes.collect()
