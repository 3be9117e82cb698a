"""Approximate results of Spark's own sketches and of samples against exact ones, in a stream that is restarted."""

from __future__ import annotations

import json
import math
import os
from collections import Counter, defaultdict

import numpy as np
import pytest
from pyspark.sql import functions as F

from configs.limits import ErrorLimit
from models.replication.approximation.ledger import LedgerEntry
from tidecast.signed import (
    SignedError,
    approx_count,
    approx_distinct,
    approx_quantile,
    count,
    frequency,
    ledger,
    sampled_count,
    sampled_mean,
    sampled_sum,
    signed,
    sum_of,
)

pytestmark = pytest.mark.spark
SCHEMA = "shop string, user bigint, page string, amount bigint, price double, id bigint, at bigint, sign int"
BEGIN, SIZE, WINDOWS, RECORDS = 1_000_000, 1000, 100, 250
NEVER = 10**9
"""A delay with which no record of these logs is late, ms."""


@pytest.fixture
def brief(one_partition):
    """Micro-batches without data close the last windows."""
    one_partition.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "true")
    return one_partition


def drawn(rng, retracted):
    """Records of so many windows and two shops, and the retractions of a share of them, in an order of their own."""
    many = WINDOWS * RECORDS
    users, rare = np.minimum(rng.zipf(1.3, many), 10**6).tolist(), (rng.random(many) < 0.1).tolist()
    amounts, prices = rng.integers(0, 500, many).tolist(), rng.lognormal(1, 1, many).tolist()
    times = (BEGIN + np.arange(many) // RECORDS * SIZE + rng.integers(SIZE, size=many)).tolist()
    rows = [
        {
            "shop": "ab"[rare[n]], "user": users[n] if n % 50 else None, "page": f"p{users[n] % 97}",
            "amount": amounts[n], "price": prices[n], "id": n, "at": times[n], "sign": 1,
        }
        for n in range(many)
    ]  # fmt: skip
    taken = [
        row | {"sign": -1} for row, goes in zip(rows, (rng.random(many) < retracted).tolist(), strict=True) if goes
    ]
    return [rows[i] for i in rng.permutation(many).tolist()], taken


def written(folder, n, rows):
    folder.mkdir(exist_ok=True)
    file = folder / f"{n}.json"
    file.write_text("\n".join(map(json.dumps, rows)))
    os.utime(file, (NEVER + n, NEVER + n))


def read(spark, folder, **options):
    df = spark.readStream.option("maxFilesPerTrigger", 1).schema(SCHEMA).json(str(folder))
    return signed(df, "at", ("shop",), **options).window(SIZE)


def run(df, mode, checkpoint, merge):
    query = (
        df.writeStream.foreachBatch(merge).option("checkpointLocation", str(checkpoint))
        .outputMode(mode).trigger(availableNow=True).start()
    )  # fmt: skip
    assert query.awaitTermination(300), "the query goes on"
    assert query.exception() is None


def group(row):
    return row["shop"], row["_window_start"]


def grouped(rows):
    """The records that are left, by shop and window."""
    left, by_id = Counter(), {}
    for row in rows:
        left[row["id"]] += row["sign"]
        by_id[row["id"]] = row
    groups = defaultdict(list)
    for number, net in left.items():
        if net:
            row = by_id[number]
            groups[row["shop"], row["at"] // SIZE * SIZE].append(row)
    return groups


def test_sketches_of_a_stream_keep_their_bounds_over_restarts(brief, tmp_path):
    """Append mode: each window once. Two files in two runs of the query from one checkpoint."""
    rows, _ = drawn(np.random.default_rng(1), 0.0)
    half = len(rows) // 2
    found, entries = {}, []

    def merge(batch, _):
        batch.persist()  # each of the two actions would make the micro-batch
        asked = [frequency("pages", F.lit(page)).alias(page) for page in ("p1", "p2", "p50", "nowhere")]
        for row in batch.select("*", *asked).collect():
            assert group(row) not in found, "a window came twice"
            found[group(row)] = row.asDict(recursive=True)
        entries.extend(row.asDict(recursive=True) for row in ledger(batch).collect())
        batch.unpersist()

    for run_of in ((0,), (1, 2)):
        for n in run_of:
            last = [{**rows[0], "at": BEGIN + NEVER * 3, "shop": "end"}]
            written(tmp_path / "in", n, rows[n * half : (n + 1) * half] if n < 2 else last)
        frame = read(brief, tmp_path / "in", delay_ms=NEVER)
        made = frame.estimates(
            users=approx_distinct("user", eps=0.15),
            middle=approx_quantile("amount", 0.5, eps=0.08),
            dear=approx_quantile("price", 0.95, eps=0.05),
            pages=approx_count("page", eps=0.1),
            ids=approx_distinct("id", eps=0.4, once=True),
        )
        run(made, "append", tmp_path / "checkpoint", merge)
    exact = grouped(rows)
    assert {*found} == {*exact} and len(found) > 195
    large = {its: one for its, one in found.items() if its[0] == "a"}

    def users(its):
        return len({row["user"] for row in exact[its] if row["user"] is not None})

    def ranked(its, result, column):
        """Whether the value of that rank lies between the bounds."""
        values, of = sorted(row[column] for row in exact[its]), found[its][result]
        true = values[math.ceil(of["parameters"]["q"] * len(values)) - 1]
        return of["low"] <= true <= of["high"]

    held = {
        "users": [found[g]["users"]["low"] <= users(g) <= found[g]["users"]["high"] for g in found],
        "middle": [ranked(g, "middle", "amount") for g in found],
        "dear": [ranked(g, "dear", "price") for g in found],
    }
    for page in ("p1", "p2", "p50", "nowhere"):
        answers = [(found[g][page], sum(row["page"] == page for row in exact[g])) for g in found]
        assert all(of["estimate"] >= true for of, true in answers), "a count-min sketch never counts too few"
        held[page] = [of["low"] <= true <= of["high"] for of, true in answers]
    assert {name: sum(one) / len(one) for name, one in held.items() if sum(one) < 0.99 * len(one)} == {}
    # They are approximations, not exact results in disguise.
    assert sum(found[g]["users"]["estimate"] != users(g) for g in large) > len(large) / 2
    assert all(found[g]["users"]["n"] == sum(row["user"] is not None for row in exact[g]) for g in found)
    assert all(found[g]["middle"]["low"] < found[g]["middle"]["high"] for g in large)
    too_high = sum(found[g]["p1"]["estimate"] > sum(r["page"] == "p1" for r in exact[g]) for g in large)
    assert 0 < too_high < len(large), "errors of one value differ from window to window"

    assert len(entries) == 5 * len(found)
    assert sum(found[g]["ids"]["eps"] > 0 for g in large) == len(large)
    limits = {"users": ErrorLimit(0.005, eps_rel=0.16), "middle": ErrorLimit(0.005, eps_rel=0.08)}
    limits |= {"dear": ErrorLimit(0.005, eps_rel=0.05), "pages": ErrorLimit(0.005, eps_rel=0.1)}
    limits["ids"] = ErrorLimit(0.005, eps_rel=0.4)
    for row in entries:
        entry = LedgerEntry.of_row(row)
        assert entry.keeps(limits[entry.operator]), entry
        assert entry.window[1] - entry.window[0] == SIZE and json.loads(row["key"])["shop"] in "ab"


def test_change_logs_with_retractions_in_update_mode_over_a_restart(brief, tmp_path):
    """Theta sketches of what is inserted once, count-min of both signs, samples: by what is left in the end."""
    rng = np.random.default_rng(2)
    rows, taken = drawn(rng, 0.3)
    half = len(rows) // 2
    found, sampled = {}, {}

    def merge_into(results):
        def merge(batch, _):
            asked = frequency("pages", F.lit("p1")).alias("p1") if "pages" in batch.columns else F.lit(0).alias("p1")
            for row in batch.select("*", asked).collect():
                if group(row) not in results or results[group(row)]["_version"] < row["_version"]:
                    results[group(row)] = row.asDict(recursive=True)

        return merge

    rate = 0.2
    for run_of in ((0, 1), (2,)):
        for n in run_of:
            written(tmp_path / "in", n, (rows[:half], rows[half:], taken)[n])
        frame = read(brief, tmp_path / "in", mult="sign", delay_ms=NEVER)
        made = frame.estimates(orders=approx_distinct("id", eps=0.4, once=True), pages=approx_count("page", eps=0.1))
        run(made, "update", tmp_path / "one", merge_into(found))
        of_sample = frame.sample(rate, "id", seed=5).estimates(
            orders=sampled_count(), revenue=sampled_sum("amount", 500), mean=sampled_mean("amount", 0, 500)
        )
        run(of_sample, "update", tmp_path / "two", merge_into(sampled))
    exact = grouped([*rows, *taken])
    assert {*found} >= {*exact} >= {*sampled} and len(exact) > 195

    def share(results, name, truth):
        bounds = [(one[name], truth(its)) for its, one in results.items() if one[name]["estimate"] is not None]
        return sum(of["low"] <= true + 1e-9 and true - 1e-9 <= of["high"] for of, true in bounds) / len(bounds)

    def amounts(its):
        return [row["amount"] for row in exact[its]]

    def first_page(its):
        return sum(row["page"] == "p1" for row in exact[its])

    shares = {
        "theta": share(found, "orders", lambda its: len(exact[its])),
        "count-min": share(found, "p1", first_page),
        "count": share(sampled, "orders", lambda its: len(exact[its])),
        "sum": share(sampled, "revenue", lambda its: sum(amounts(its))),
        "mean": share(sampled, "mean", lambda its: np.mean(amounts(its))),
    }
    assert {name: one for name, one in shares.items() if one < 0.99} == {}
    assert all(one["p1"]["estimate"] >= first_page(its) for its, one in found.items())
    assert all(one["pages"]["n"] == len(exact[its]) for its, one in found.items())
    large = [its for its in exact if its[0] == "a"]
    assert sum(found[its]["orders"]["eps"] > 0 for its in large) == len(large)
    counts = np.array([sampled[its]["orders"]["estimate"] for its in large])
    assert counts.mean() == pytest.approx(np.mean([len(exact[its]) for its in large]), rel=0.03)  # no bias


def test_a_table_gives_the_same_sketches_and_groups_of_nothing_say_so(brief):
    rows = [("a", 5, 10, 1), ("a", 6, 11, 1), ("a", 7, 12, 1), ("b", 8, 10, 1), ("b", 8, 10, -1), ("c", None, 10, 1)]
    table = brief.createDataFrame(rows, "shop string, user bigint, at bigint, sign int")
    frame = signed(table, "at", ("shop",), mult="sign")
    made = frame.estimates(n=approx_distinct("user", once=True), often=approx_count("user", "shop", eps=0.5))
    asked = made.select("*", frequency("often", F.lit(8).cast("bigint"), F.lit("b")).alias("eight"))
    results = {row.shop: row for row in asked.collect()}
    assert [results[shop].n.estimate for shop in "abc"] == [3.0, 0.0, 0.0]
    assert [results[shop]._net for shop in "abc"] == [3, 0, 1]
    assert results["b"].eight.estimate == 0 and results["b"].often.n == 0
    insertions = signed(table.where("sign > 0"), "at", ("shop",))
    row = {r.shop: r for r in insertions.estimates(q=approx_quantile("user", 0.5)).collect()}
    assert (row["a"].q.estimate, row["c"].q.estimate, row["c"].q.n) == (6, None, 0)


@pytest.mark.parametrize("its", ["double", "float"])
def test_a_quantile_leaves_nan_out_also_of_a_group_that_has_nothing_else(brief, its):
    rows = [("a", math.nan), ("a", 2.0), ("b", math.nan), ("b", None)]
    table = brief.createDataFrame(rows, f"shop string, price {its}").withColumn("at", F.lit(10))
    found = signed(table, "at", ("shop",)).estimates(q=approx_quantile("price", 0.5)).collect()
    assert {row.shop: (row.q.estimate, row.q.n) for row in found} == {"a": (2.0, 1), "b": (None, 0)}


def test_plans_without_a_meaning_are_refused_by_name(brief):
    table = brief.createDataFrame([("a", 5, 10, 1)], "shop string, user bigint, at bigint, sign int")
    plain, log = signed(table, "at", ("shop",)), signed(table, "at", ("shop",), mult="sign")
    hourly = plain.window(1000)
    corrected = hourly.aggregate(total=sum_of("user")).window(5000)
    final = hourly.aggregate("final", total=sum_of("user")).window(5000)
    for frame in (log, plain.minus(plain), plain.union(log), log.rekey("user"), log.distinct()):
        with pytest.raises(SignedError, match="users: a HyperLogLog sketch cannot take a value out"):
            frame.estimates(users=approx_distinct("at"))
    with pytest.raises(SignedError, match="q: a KLL sketch cannot take a value out"):
        corrected.estimates(q=approx_quantile("total", 0.5))
    assert final.estimates(q=approx_quantile("total", 0.5)).collect()[0].q.estimate == 5
    assert plain.distinct().estimates(users=approx_distinct("user")).collect()[0].users.estimate == 1
    few = log.sample(0.5, "user")
    for refused, words in (
        (lambda: few.estimates(n=approx_count("user")), "count of a sample; take the sketch of all"),
        (lambda: log.estimates(n=sampled_count()), "sampled count of all records; take sample"),
        (lambda: few.aggregate(n=count()), "aggregate of a sample says nothing"),
        (lambda: few.totals(n=count()), "aggregate of a sample says nothing"),
        (lambda: few.distinct(), "aggregate of a sample says nothing"),
        (lambda: few.union(log), "union or difference of a sample"),
        (
            lambda: plain.select("user").join(plain.select(F.col("user").alias("o")).sample(0.5, "o")),
            "join of a sample",
        ),
        (lambda: few.sample(0.5, "user"), "take one of rate 0.25 at once"),
        (lambda: log.sample(1.0, "user"), "above 0 and below 1"),
        (lambda: log.sample(0.5, "nobody"), "columns \\['nobody'\\] of a sample"),
        (lambda: log.sample(0.5), "name the columns"),
        (lambda: plain.estimates(q=approx_quantile("shop", 0.5)), "cast it"),
        (lambda: plain.estimates(q=approx_distinct("nobody")), "unknown"),
        (lambda: plain.estimates(shop=approx_count("user")), "named as columns of the key"),
        (lambda: plain.estimates(), "name a result"),
        (lambda: plain.rekey().estimates(n=approx_count("user")), "rekey or window"),
        (lambda: approx_quantile("user", 1.0), "take min_of and max_of"),
        (lambda: approx_distinct("user", eps=1e-5), "count exactly"),
        (lambda: approx_distinct("user", eps=1e-5, once=True), "count exactly"),
        (lambda: approx_count("user", eps=0.0), "eps=0.0"),
        (lambda: approx_count(), "name a column"),
        (lambda: sampled_sum("user", 0), "above 0"),
        (lambda: sampled_mean("user", 5, 5), "least and the greatest"),
        (lambda: ledger(table), "no approximate result"),
    ):
        with pytest.raises(SignedError, match=words):
            refused()


def test_a_sampled_value_beyond_its_bound_stops_the_query(brief):
    table = brief.createDataFrame([("a", n, 10) for n in range(100)], "shop string, user bigint, at bigint")
    few = signed(table, "at", ("shop",)).sample(0.5, "user")
    with pytest.raises(Exception, match="a value of user that is not from -50 to 50"):
        few.estimates(total=sampled_sum("user", 50)).collect()


def test_sketches_of_final_results_come_in_append_mode(brief, tmp_path):
    """Behind a stateful operator of Spark's and behind one of Python's, as on a table."""
    rows = [{"k": f"k{i % 3}", "x": i * i % 13, "at": BEGIN + i * 10} for i in range(900)]
    for n, part in enumerate((rows[:450], [*rows[450:], {"k": "end", "x": 0, "at": NEVER}], [])):
        written(tmp_path / "in", n, part)
    schema = "k string, x bigint, at bigint"

    def plans(df):
        windows = signed(df, "at", ("k",), delay_ms=1000).window(1000)
        yield windows.aggregate("final", x=sum_of("x"))
        yield windows.distinct("final")

    def asked(df):
        made = []
        for n, frame in enumerate(plans(df)):
            told = frame.window(3000).estimates(q=approx_quantile("x", 0.5), n=approx_distinct("x"))
            columns = F.col("q.estimate").alias("middle"), F.col("n.estimate").alias("many")
            made.append(told.select(F.lit(n).alias("plan"), "k", "_window_start", *columns))
        first, second = made
        return first.unionByName(second)

    found, reader = Counter(), brief.readStream.option("maxFilesPerTrigger", 1).schema(schema)
    stream = asked(reader.json(str(tmp_path / "in")))
    run(stream, "append", tmp_path / "checkpoint", lambda batch, _: found.update(result(batch)))
    table = asked(brief.read.schema(schema).json(str(tmp_path / "in")))
    wanted = Counter(result(table.where("k != 'end'")))
    assert found == wanted and len(found) == 2 * 3 * 4  # windows of 3 s that 9 s touch


def result(df):
    return [(row.plan, row.k, row._window_start, row.middle, round(row.many)) for row in df.collect()]
