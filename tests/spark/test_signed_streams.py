"""Signed plans on the real engine: a table, a stream and the reference come to the same relations."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from pyspark.sql import functions as F

from models.relation.changelog import ChangeLog, LogShape, draw_changelog, reorder
from models.relation.plan import run_batch
from models.relation.stream import Arrival, MicroBatch, run_stream
from tests.fakes.signed import plus
from tests.fakes.signed_logs import (
    END,
    EPOCH,
    SENTINEL,
    collect_net,
    expected,
    parsed,
    read_log,
    together,
    told,
    write_log,
)
from tests.fakes.signed_plans import PLANS, reference, right_of, sums
from tidecast.signed import (
    SignedError,
    count,
    late_dropped,
    max_of,
    mean_of,
    min_of,
    negative_keys,
    signed,
    sum_of,
    top,
)  # fmt: skip

pytestmark = pytest.mark.spark
SMALL = LogShape(records=2, keys=1, values=3, batches=2, gap_ms=10.0, disorder_ms=30.0, orphaned=0.1)
LARGER = replace(SMALL, records=6, keys=3)
"""Of every twentieth log: more records meet in its windows, results of several keys in its second stage; no more
micro-batches are run."""
MANY = ("two_stages", "near", "window_pairs", "difference", "session_totals")
ONCE = ("all_time", "distinct", "wide", "near_counts", "joined_totals", "pairs", "sliding")
SESSIONS = ("distinct_sessions", "session_pairs", "near_sessions", "sessions_of_windows", "windows_of_sessions")
LATE = ("two_stages", "final_order", "session_totals", "final_sessions")
STORES_OF_LATE = ("totals", "final_order", "sessions", "left_sessions")
"""Nodes of the reference that take records from the source for the plans of `LATE`."""


def built(names, left, right):
    return {name: PLANS[name][0](left, right) for name in names}


def run_query(df, folder, collected=None):
    """All that a stream tells, as nets, and its progress."""
    nets, collect = Counter(), collected or collect_net
    query = (
        df.writeStream.foreachBatch(lambda batch, _: nets.update(collect(batch)))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .outputMode("append")
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(600), "the query goes on"
    return nets if collected else parsed(nets), query.recentProgress


def recut(log, rng):
    """The same arrivals, cut again into at most as many micro-batches as `SMALL` has."""
    cut = int(rng.integers(len(log.arrivals) + 1))
    parts = log.arrivals[:cut], log.arrivals[cut:]
    return ChangeLog(
        log.sources, tuple(MicroBatch(max((a.record.t_i for a in log.arrivals), default=0), part) for part in parts)
    )


def differences(found, wanted):
    """Per plan how many facts differ, and one of them."""
    apart = sorted(set(found.items()) ^ set(wanted.items()), key=str)
    return {
        plan: (sum(of == plan for (of, _), _ in apart), next(x for x in apart if x[0][0] == plan))
        for (plan, _), _ in apart
    }


def test_two_thousand_logs_end_in_the_reference_however_they_come(one_partition, tmp_path):
    """Half of the logs are the others once more in another order and other micro-batches, empty ones among them."""
    logs = {}
    for seed in range(1000):
        rng = np.random.default_rng(seed)
        logs[seed] = draw_changelog(SMALL if seed % 20 else LARGER, rng)
        logs[1000 + seed] = recut(reorder(logs[seed], rng), rng)
    log = together(logs)
    write_log(tmp_path, log)
    left, right = (read_log(one_partition, tmp_path, source, True, delay_ms=10**6) for source in log.sources)
    found, progress = run_query(told(built(MANY, left, right)), tmp_path)
    wanted = expected(run_batch(reference(MANY), log.relations), MANY)
    assert len({dict(fact)["log"] for _, fact in wanted}) > 1_900
    assert differences(found, wanted) == {}
    assert sum(map(late_dropped, progress)) == 0


@pytest.mark.parametrize("names", [ONCE, SESSIONS], ids=["windows", "sessions"])
def test_the_other_operators_end_in_the_reference(one_partition, tmp_path, names):
    shape = LogShape(records=8, batches=2, keys=3, orphaned=0.1)
    log = together({seed: draw_changelog(shape, np.random.default_rng(seed)) for seed in range(20)})
    write_log(tmp_path, log)
    left, right = (read_log(one_partition, tmp_path, source, True, delay_ms=10**6) for source in log.sources)
    found, _ = run_query(told(built(names, left, right)), tmp_path)
    assert differences(found, expected(run_batch(reference(names), log.relations), names)) == {}


def test_late_records_are_taken_corrected_dropped_and_counted_as_in_the_reference(one_partition, tmp_path):
    """Finality, corrections within the lateness, the end of state; two records come just as their window closes."""
    shape = LogShape(sources=("left",), records=100, keys=3, batches=4, disorder_ms=60.0, orphaned=0.2)
    log = together({0: draw_changelog(shape, np.random.default_rng(519))}, ("left",), sentinel=True)
    write_log(tmp_path, log)
    one_partition.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "true")
    left = read_log(one_partition, tmp_path, "left", True, delay_ms=20, lateness_ms=30)
    found, progress = run_query(told(built(LATE, left, right_of(left))), tmp_path)
    stream = run_stream(reference(LATE, 20, 30, one_source=True), log.batches)
    assert differences(found, expected(stream.relations, LATE)) == {}
    assert sum(map(late_dropped, progress)) == sum(stream.late_dropped[name] for name in STORES_OF_LATE) > 10
    stores = (*STORES_OF_LATE, "two_stages")
    assert sum(map(negative_keys, progress)) == sum(stream.negative_keys[name] for name in stores) > 0
    left_over = sorted(operator.numRowsTotal for operator in progress[-1].stateOperators)
    assert left_over == [0, 0, 0, 0, 1, 1, 1], "state of the sentinel alone, which the difference takes off again"


def test_a_result_is_told_in_the_micro_batch_whose_watermark_reaches_its_end(one_partition, tmp_path):
    """Windows that end at each ms, and a record that brings the watermark to 10; Spark's own aggregate is a ms late."""
    batches = (MicroBatch(0, (Arrival("left", plus(0, at, at)),)) for at in (5, 10))
    write_log(tmp_path, together({0: ChangeLog(("left",), tuple(batches))}, ("left",)))
    one_partition.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "true")
    windows = read_log(one_partition, tmp_path, "left", True, delay_ms=0).window(10, 1)
    plans = {"stateful": windows.aggregate("final", hi=max_of("v")), "sparks": windows.aggregate("final", n=count())}
    found, _ = run_query(told(plans), tmp_path)
    ends = {name: sorted(dict(fact)["_window_end"] - EPOCH for of, fact in found if of == name) for name in plans}
    assert ends == {"stateful": [6, 7, 8, 9, 10], "sparks": [6, 7, 8, 9]}


def test_signed_sums_by_sparks_own_operators_in_a_stream(one_partition, tmp_path):
    """Totals to be merged by key and version, and final sums, whose windows Spark closes itself."""
    log = together({seed: draw_changelog(SMALL, np.random.default_rng(seed)) for seed in range(50)}, sentinel=True)
    write_log(tmp_path, log)
    one_partition.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "true")
    left = read_log(one_partition, tmp_path, "left", True, delay_ms=10**6)
    relations, nets = run_batch(reference(["final_sums"]), log.relations), Counter()
    wanted = expected(relations, ["final_sums"])
    found, progress = run_query(told(built(["final_sums"], left, left)), tmp_path)
    assert differences(found, wanted) == {}
    for (k, _, _), mult in relations["sliding"].items():
        nets[k] += mult
    assert sum(map(negative_keys, progress)) == sum(of < 0 for of in nets.values()) > 0
    merged = {}

    def merge(batch, _):
        for row in batch.collect():
            key = row.log, row.k, row._window_start
            if key not in merged or merged[key]._version < row._version:
                merged[key] = row

    query = left.window(50, 20).totals(**sums()).writeStream.foreachBatch(merge).outputMode("update")
    query = query.option("checkpointLocation", str(tmp_path / "totals")).trigger(availableNow=True).start()
    assert query.awaitTermination(600)
    rows = [row for row in merged.values() if row._net > 0 and row.log != SENTINEL]
    facts = [dict(fact) for _, fact in wanted]
    assert sorted((row.log, row.k, row._window_start, row.n, row.s, row.m) for row in rows) == sorted(
        (fact["log"], fact["k"], fact["_window_start"], fact["n"], fact["s"], fact["m"]) for fact in facts
    )


def test_records_that_all_insert_are_told_apart_and_reduced_by_sparks_own_operators(one_partition, tmp_path):
    """As soon as they come, once their window is final, and for a second stage; the same as on a table."""
    one_partition.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "true")
    rng, rows = np.random.default_rng(7), []
    for at in np.cumsum(rng.integers(0, 12, 400)).tolist():
        rows.append({"k": int(rng.integers(3)), "v": int(rng.integers(4)), "at": EPOCH + at})
    late = {"k": 0, "v": 99, "at": EPOCH}
    batches = [rows[:150], rows[150:], [{"k": 9, "v": 0, "at": END}], [late]]
    for n, batch in enumerate(batches):
        write_rows(tmp_path / "in", n, batch)

    def plans(df, **options):
        frame = signed(df, "at", ["k"], **options)
        return told({
            "first": frame.window(40).distinct(),
            "final": frame.window(40).distinct("final"),
            "order": frame.window(50, 20).aggregate("final", lo=min_of("v"), hi=max_of("v"), n=count()),
            "stages": frame.window(40).distinct().rekey("v").window(120).aggregate(n=count()),
        })  # fmt: skip

    schema = "k bigint, v bigint, at bigint"
    wanted = known(collect_net(plans(one_partition.createDataFrame(rows, schema))))
    stream = one_partition.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(tmp_path / "in"))
    found, progress = run_query(plans(stream, delay_ms=100), tmp_path, collect_net)
    early = {(plan, fact): n for (plan, fact), n in known(found).items() if json.loads(fact)["_t_e"] < END}
    assert early == wanted and {plan for plan, _ in wanted} == {"first", "final", "order", "stages"}
    operators = Counter(operator.operatorName for operator in progress[-1].stateOperators)
    assert operators == {"dedupe": 2, "stateStoreSave": 2, "transformWithStateInPySparkExec": 1}
    late = [sum(all_of) for all_of in zip(*(
        [operator.numRowsDroppedByWatermark for operator in one.stateOperators] for one in progress
    ), strict=True)]  # fmt: skip
    assert sorted(late) == [0, 1, 1, 1, 3], "`order` has it in three windows; what reaches the second stage is not late"
    assert sum(map(late_dropped, progress)) == sum(late)


def test_a_sign_that_a_transform_makes_counts_in_a_table_and_in_a_stream(one_partition, tmp_path):
    rows = [{"k": 1, "v": v, "at": EPOCH + at} for at, v in enumerate((1, 1, 1, -1, 2, -1))]
    write_rows(tmp_path / "in", 0, rows)
    write_rows(tmp_path / "in", 1, [{"k": 9, "v": 0, "at": END}])
    schema = "k bigint, v bigint, at bigint"

    def plan(df):
        cancelled = F.when(F.col("v") < 0, -1).otherwise(1)
        kept = signed(df, "at", ["k"]).transform(lambda df: df.where("k < 9 or v = 0"))
        assert not kept.retracting, "the column is the same"
        made = kept.transform(lambda df: df.withColumn("_mult", cancelled))
        return made.window(10**6).aggregate("final", n=count(), s=sum_of("v"))

    table = plan(one_partition.createDataFrame(rows, schema)).changes.collect()
    assert [(row.n, row.s) for row in table] == [
        (2, 7)
    ]  # 1 + 1 + 1 + 2 of four, less what two cancellations add: -(-1)
    one_partition.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "true")
    reader = one_partition.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    nets, _ = run_query(plan(reader.json(str(tmp_path / "in"))).changes, tmp_path, net_of_rows)
    assert [(dict(fact)["n"], dict(fact)["s"]) for fact in nets if dict(fact)["k"] == 1] == [(2, 7)]


def test_a_final_result_has_its_keys_instant_wherever_the_workers_are(one_partition, tmp_path, monkeypatch):
    """In an hour that Berlin's clocks show twice, too."""
    monkeypatch.setitem(one_partition.sparkContext.environment, "TZ", "Europe/Berlin")
    one_partition.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "true")
    sold = [1_700_000_000, *(1_761_438_600 + 3600 * n for n in range(2))]  # 2025-10-26 00:30 and 01:30 UTC
    write_rows(tmp_path / "in", 0, [{"s": s, "v": 1, "at": EPOCH} for s in sold])
    write_rows(tmp_path / "in", 1, [{"s": 0, "v": 1, "at": END}])
    stream = one_partition.readStream.schema("s bigint, v bigint, at bigint").option("maxFilesPerTrigger", 1)
    stamped = stream.json(str(tmp_path / "in")).withColumn("sold", F.timestamp_seconds("s"))
    frame = signed(stamped, "at", ["sold"], lateness_ms=10).window(100).aggregate("final", n=count())
    result = frame.transform(lambda df: df.withColumn("instant", F.unix_seconds("sold")))
    found, _ = run_query(result.changes, tmp_path, net_of_rows)
    assert sorted(dict(fact)["instant"] for fact in found) == sold


def test_keys_of_an_hour_that_clocks_show_twice_are_two_in_a_micro_batch(one_partition, tmp_path, monkeypatch):
    """A change log, sessions, and what their timers leave; in the zone of the session and of the workers."""
    monkeypatch.setitem(one_partition.sparkContext.environment, "TZ", "Europe/Berlin")
    zone = one_partition.conf.get("spark.sql.session.timeZone")
    one_partition.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    one_partition.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "true")
    hours = [1_761_438_600 + 3600 * n for n in range(2)]  # 2025-10-26 02:30 twice in Berlin
    rows = [{"s": s, "v": v, "at": EPOCH} for v, s in enumerate([*hours, hours[0]])]
    for number, part in enumerate((rows, [{"s": 0, "v": 1, "at": END}])):
        write_rows(tmp_path / "in", number, part)
    schema = "s bigint, v bigint, at bigint"

    def plans(df):
        frame = signed(df.withColumn("sold", F.timestamp_seconds("s")), "at", ["sold"])
        return told({
            "all": frame.window(100).aggregate(n=count(), hi=max_of("v")),
            "sessions": frame.select("v").sessions(40).aggregate(n=count(), hi=max_of("v")),
        })  # fmt: skip

    try:
        table = known(collect_net(plans(one_partition.createDataFrame([*rows, {"s": 0, "v": 1, "at": END}], schema))))
        stream = one_partition.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(tmp_path / "in"))
        found, progress = run_query(plans(stream), tmp_path, collect_net)
    finally:
        one_partition.conf.set("spark.sql.session.timeZone", zone)
    assert known(found) == table and len(table) == 6
    left = [operator.numRowsTotal for operator in progress[-1].stateOperators]
    assert left == [1] * 3, "state of the last record alone"
    for column in (F.struct("t"), F.array("t"), F.array(F.struct("t"))):
        nested = stream.select("at", F.timestamp_seconds("s").alias("t")).withColumn("nested", column)
        with pytest.raises(SignedError, match=r"^column 'nested', .* has a timestamp in it, .*: take that out"):
            signed(nested, "at", ["nested"]).aggregate(n=count())
    with pytest.raises(SignedError, match=r"^column 'nested', .* and groups are told apart by it"):
        signed(nested, "at", ["t"]).distinct()


def test_a_stream_knows_keys_and_rounds_as_a_table_does(one_partition, tmp_path):
    """Zeros of both signs as keys and values, a group with nothing to rank, a sum that no double is, a Python name."""
    fields = ("cls", "v", "large", "w", "at", "sign", "x")
    values = [
        (0.0, 3, None, None, 0, 1, -0.0), (-0.0, 3, None, None, 0, -1, 0.0), (-0.0, 5, None, None, 1, 1, 0.0),
        (0.0, 5, None, None, 2, 1, 1.0),
        (2.0, 1, 2**53, 0.5, 0, 1, 1.0), (2.0, 1, 1, 0.7, 1, 1, 1.0), (2.0, 1, 0, None, 2, 1, 1.0),
    ]  # fmt: skip
    rows = [dict(zip(fields, (*row[:4], EPOCH + row[4], *row[5:]), strict=True)) for row in values]
    schema = "cls double, v int, large bigint, w double, at bigint, sign int, x float"
    for number, part in enumerate((rows[:1], rows[1:])):  # within a micro-batch Python has the zeros for one key
        write_rows(tmp_path / "in", number, part)

    def plans(df):
        frame = signed(df, "at", ["cls"], mult="sign", delay_ms=10**6)
        reduced = frame.aggregate(n=count(), m=mean_of("large"), best=top(1, "w"))
        inserted = signed(df.where("sign > 0"), "at", ["cls"], delay_ms=10**6).select("x")
        return told({
            "all": reduced,
            "sessions": frame.select("v").sessions(40).aggregate(n=count()),
            "told apart": inserted.window(40).distinct(),
        })  # fmt: skip

    table = collect_net(plans(one_partition.createDataFrame(rows, schema)))
    stream = one_partition.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(tmp_path / "in"))
    found, _ = run_query(plans(stream), tmp_path, collect_net)
    assert known(found) == known(table)
    assert Counter(plan for plan, _ in table) == {"all": 2, "sessions": 2, "told apart": 3}


def test_a_plan_that_keeps_other_columns_is_refused_on_the_checkpoint_of_the_one_before(one_partition, tmp_path):
    (tmp_path / "in").mkdir()
    stream = one_partition.readStream.schema("k bigint, v bigint, w bigint, at bigint").json(str(tmp_path / "in"))

    def run(number, **reductions):
        write_rows(tmp_path / "in", number, [{"k": 1, "v": 5, "w": 70, "at": EPOCH}])
        frame = signed(stream, "at", ["k"]).aggregate(n=count(), **reductions)
        return run_query(frame.changes, tmp_path, net_of_rows)[0]

    run(0, s=sum_of("v"), lo=min_of("v"))
    own, other = (rf"keeps sums of \['{s}'\], values of \[\['{lo}'\]\]" for s, lo in ("vv", "wv"))
    with pytest.raises(Exception, match=f"{own}, one of the plan {other}: start the changed plan on a new checkpoint"):
        run(1, s=sum_of("w"), lo=min_of("v"))
    told_last = [dict(fact) for fact, net in run(1, sums=sum_of("v"), least=min_of("v")).items() if net > 0]
    assert [(row["n"], row["sums"], row["least"]) for row in told_last] == [(2, 10, 5)]


def known(nets):
    """Facts that are there, whatever the order of their columns is."""
    return {(plan, json.dumps(json.loads(fact), sort_keys=True)): n for (plan, fact), n in nets.items() if n}


def write_rows(folder, number, rows):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{number}.json"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    os.utime(path, (10**6 + number, 10**6 + number))


def net_of_rows(df):
    """Facts by their nets, without when and how they came."""
    nets = Counter()
    for row in df.drop("_t_i", "_origin").collect():
        fact = row.asDict()
        mult = fact.pop("_mult")
        nets[tuple(sorted(fact.items()))] += mult
    return Counter({fact: n for fact, n in nets.items() if n})
