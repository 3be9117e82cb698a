"""Plans written twice, for Spark and for the reference, and random change logs as files that Spark reads."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

from pyspark.sql import functions as F

from models.relation.aggregates import Aggregate, Distinct
from models.relation.changelog import ChangeLog
from models.relation.join import Join
from models.relation.linear import Difference, FlatMap, Map, Rekey, Select, SlidingWindow, Union, tumbling
from models.relation.ordered import Max, Min, TopN
from models.relation.plan import LogicalPlan, Node
from models.relation.records import SignedRecord
from models.relation.reducers import Count, Mean, Reducer, RowOf, Sum
from models.relation.stream import Arrival, MicroBatch
from models.relation.watermark import Source
from models.relation.windows import WindowedKey
from tidecast.signed import count, max_of, mean_of, min_of, net, signed, sum_of, top


@dataclass(frozen=True)
class Of(Reducer):
    """A reducer of one column of the values, or of several as a row."""

    place: int | tuple[int, ...]
    reducer: Reducer

    @property
    def zero(self):
        return self.reducer.zero

    def add(self, partial, v, mult):
        taken = v[self.place] if isinstance(self.place, int) else tuple(v[i] for i in self.place)
        return self.reducer.add(partial, taken, mult)

    def result(self, partial, count):
        return self.reducer.result(partial, count)


EPOCH = 1_000_000
"""Event times of the logs count from here on, ms: Spark takes none before 1970, and theirs begin at 0."""
END = 10**10
"""Event time of the sentinel, ms, and from which on the micro-batches are taken."""
SENTINEL = -1
"""Log of the record that brings the watermark past all others."""
SCHEMA = "log bigint, k bigint, v bigint, at bigint, came bigint, sign int, way string"
FULL = RowOf((Count(), Sum(), Mean(), Min(), Max(), TopN(2)))
SUMS = RowOf((Count(), Sum(), Mean()))
SECOND = RowOf((Count(), Of(0, Sum()), Of(1, Sum()), Of(2, Sum()), Of(3, Min()), Of(4, Max()), Of((4, 0), TopN(2))))
FULL_NAMES, SUM_NAMES = ("n", "s", "m", "lo", "hi", "best"), ("n", "s", "m")


def full():
    """`FULL`, for Spark."""
    return {**sums(), "lo": min_of("v"), "hi": max_of("v"), "best": top(2, "v")}


def sums():
    """`SUMS`, for Spark."""
    return {"n": count(), "s": sum_of("v"), "m": mean_of("v")}


def right_values(frame):
    return frame.select(F.col("v").alias("other"))


def right_of(left):
    """A right side of the same source."""
    return left.filter("v < 2")


def halves(frame):
    """Results by the key's parity, in the same windows."""
    return frame.with_columns(half=F.col("k") % 2).rekey("log", "half", keep_window=True)


def second_stage():
    """All columns of the first stage, reduced."""
    sums_of = {name: sum_of(name) for name in ("n", "s", "m")}
    return {"c": count(), **sums_of, "lo": min_of("lo"), "hi": max_of("hi"), "best": top(2, "hi", "n")}


PLANS = {
    "select": (lambda left, right: left.filter("v != 1"), ("log", "k"), ("v",)),
    "map": (lambda left, right: left.select(F.expr("v div 2").alias("v")), ("log", "k"), ("v",)),
    "flat_map": (
        lambda left, right: left.explode("i", F.expr("slice(array(0, 1), 1, int(least(v, 2)))")).select("i"),
        ("log", "k"),
        ("i",),
    ),
    "rekey": (lambda left, right: left.rekey("log", "v"), ("log", "v"), ("k",)),
    "union": (lambda left, right: left.union(right, left), ("log", "k"), ("v",)),
    "difference": (lambda left, right: left.minus(right), ("log", "k"), ("v",)),
    "sliding": (lambda left, right: left.window(50, 20), ("log", "k"), ("v",)),
    "totals": (lambda left, right: left.minus(right).window(40).aggregate(**full()), ("log", "k"), FULL_NAMES),
    "two_stages": (
        lambda left, right: halves(left.minus(right).window(40).aggregate(**full())).aggregate(**second_stage()),
        ("log", "half"),
        ("c", "n", "s", "m", "lo", "hi", "best"),
    ),
    "final_sums": (lambda left, right: left.window(50, 20).aggregate("final", **sums()), ("log", "k"), SUM_NAMES),
    "final_order": (
        lambda left, right: left.window(40).aggregate("final", lo=min_of("v"), hi=max_of("v")),
        ("log", "k"),
        ("lo", "hi"),
    ),
    "distinct": (lambda left, right: left.window(40).distinct(), ("log", "k"), ("v",)),
    "all_time": (lambda left, right: left.minus(right).aggregate(**full()), ("log", "k"), FULL_NAMES),
    "all_distinct": (lambda left, right: left.distinct(), ("log", "k"), ("v",)),
    "wide": (
        lambda left, right: left.window(50, 20).aggregate(n=count()).rekey("log").window(120).aggregate(
            c=count(), s=sum_of("n")
        ),
        ("log",),
        ("c", "s"),
    ),
    "pairs": (lambda left, right: left.join(right_values(right)), ("log", "k"), ("v", "other")),
    "near": (lambda left, right: left.join(right_values(right), bound_ms=30), ("log", "k"), ("v", "other")),
    "window_pairs": (
        lambda left, right: left.window(40).join(right_values(right).window(40)), ("log", "k"), ("v", "other")
    ),
    "near_counts": (
        lambda left, right: left.join(right_values(right), bound_ms=30).window(40).aggregate(n=count()),
        ("log", "k"),
        ("n",),
    ),
    "joined_totals": (
        lambda left, right: left.window(40).aggregate(n=count()).join(
            right.window(40).aggregate(c=count())
        ),
        ("log", "k"),
        ("n", "c"),
    ),
}  # fmt: skip
"""Per name the plan on Spark, and the names of its result's key and value columns."""


def reference(delay_ms=0, lateness_ms=0, one_source=False):
    """The same plans; what takes records from a source takes them as late as `lateness_ms`.

    With one source, the right side is what `right_of` makes of the left one.
    """
    first = {"lateness_ms": lateness_ms}
    nodes = {
        "select": (Select(lambda k, v, t_e: v != 1), "left"),
        "map": (Map(lambda k, v, t_e: v // 2), "left"),
        "flat_map": (FlatMap(lambda k, v, t_e: range(min(v, 2))), "left"),
        "with_key": (Map(lambda k, v, t_e: (k[1], v)), "left"),
        "swapped": (Rekey(lambda k, v, t_e: (k[0], v[1])), "with_key"),
        "rekey": (Map(lambda k, v, t_e: v[0]), "swapped"),
        "union": (Union(), "left", "right", "left"),
        "difference": (Difference(), "left", "right"),
        "sliding": (SlidingWindow(50, 20), "left"),
        "tumbling": (tumbling(40), "left"),
        "tumbling_right": (tumbling(40), "right"),
        "tumbling_difference": (tumbling(40), "difference"),
        "totals": (Aggregate(FULL, **first), "tumbling_difference"),
        "halves": (Rekey(lambda k, v, t_e: WindowedKey(k.window, (k.key[0], k.key[1] % 2))), "totals"),
        "two_stages": (Aggregate(SECOND), "halves"),
        "final_sums": (Aggregate(SUMS, emission="final", **first), "sliding"),
        "final_order": (Aggregate(RowOf((Min(), Max())), emission="final", **first), "tumbling"),
        "distinct": (Distinct(**first), "tumbling"),
        "all_time": (Aggregate(FULL), "difference"),
        "all_distinct": (Distinct(), "left"),
        "sliding_counts": (Aggregate(Count(), **first), "sliding"),
        "by_log": (Rekey(lambda k, v, t_e: k.key[:1]), "sliding_counts"),
        "by_log_wide": (tumbling(120), "by_log"),
        "wide": (Aggregate(RowOf((Count(), Sum()))), "by_log_wide"),
        "pairs": (Join(), "left", "right"),
        "near": (Join(30), "left", "right"),
        "window_pairs": (Join(), "tumbling", "tumbling_right"),
        "near_windows": (tumbling(40), "near"),
        "near_counts": (Aggregate(Count()), "near_windows"),
        "left_counts": (Aggregate(Count(), **first), "tumbling"),
        "right_counts": (Aggregate(Count(), **first), "tumbling_right"),
        "joined_totals": (Join(), "left_counts", "right_counts"),
    }
    if one_source:
        nodes["right"] = (Select(lambda k, v, t_e: v < 2), "left")
    sources = tuple(Source(name, delay_ms) for name in ("left", "right") if name not in nodes)
    return LogicalPlan(sources, tuple(Node(name, operator, tuple(of)) for name, (operator, *of) in nodes.items()))


def together(
    logs: dict[int, ChangeLog], sources: tuple[str, ...] = ("left", "right"), sentinel: bool = False
) -> ChangeLog:
    """Logs as one, the n-th micro-batches in one, under keys (log, k); and, if asked for, a sentinel behind them."""
    batches = []
    for parts in zip_longest(*(log.batches for log in logs.values()), fillvalue=MicroBatch(0)):
        arrivals = tuple(
            arrival._replace(record=_shifted(arrival.record, log))
            for log, part in zip(logs, parts, strict=True)
            for arrival in part.arrivals
        )
        batches.append(MicroBatch(END + len(batches), arrivals))
    last = SignedRecord((SENTINEL, 0), 0, END, END)
    if sentinel:
        batches.append(MicroBatch(END + len(batches), tuple(Arrival(name, last) for name in sources)))
    return ChangeLog(sources, tuple(batches))


def _shifted(record: SignedRecord, log: int) -> SignedRecord:
    return replace(record, k=(log, record.k), t_e=record.t_e + EPOCH, t_i=record.t_i + EPOCH)


def write_log(folder: Path, log: ChangeLog) -> None:
    """Write each micro-batch of each source into a file of its own."""
    for source in log.sources:
        (folder / source).mkdir(parents=True)
        for n, batch in enumerate(log.batches):
            rows = [
                {
                    "log": record.k[0], "k": record.k[1], "v": record.v, "at": record.t_e, "came": record.t_i,
                    "sign": record.mult, "way": record.origin,
                }
                for name, record, _ in batch.arrivals
                if name == source
            ]  # fmt: skip
            file = folder / source / f"{n:03}.json"
            file.write_text("\n".join(map(json.dumps, rows)))
            os.utime(file, (END + n, END + n))  # the order that Spark takes them in


def read_log(spark, folder: Path, source: str, stream: bool, delay_ms: int, lateness_ms: int = 0):
    """One source of a log, as a table, or as a stream of a file per micro-batch."""
    reader = spark.readStream.option("maxFilesPerTrigger", 1) if stream else spark.read
    df = reader.schema(SCHEMA).json(str(folder / source)).drop("way")
    return signed(
        df, "at", ("log", "k"), mult="sign", ingested="came", delay_ms=delay_ms, lateness_ms=lateness_ms
    ).select("v")  # fmt: skip


def told(plans):
    """The changes of several frames in one DataFrame: plan, fact, sign."""
    packed = None
    for name, frame in plans.items():
        fact = [column for column in frame.changes.columns if column not in ("_mult", "_t_i", "_origin")]
        own = frame.changes.select(F.lit(name).alias("plan"), F.to_json(F.struct(*fact)).alias("fact"), "_mult")
        packed = own if packed is None else packed.unionByName(own)
    return packed


def collect_net(df):
    """Net per plan and fact."""
    return Counter({(row.plan, row.fact): row._net for row in net(df).collect()})


def parsed(nets):
    """Net per plan and fact, facts being comparable with the reference's; without the sentinel's."""
    found = Counter()
    for (plan, fact), count_of in nets.items():
        columns = json.loads(fact)
        if count_of and columns["log"] != SENTINEL:
            found[plan, _fact(columns)] += count_of
    return found


def expected(relations, names):
    """The reference's results in the same form.

    Args:
        relations: per node its relation, of a log of `together`.
        names: of the plans that are asked for.
    """
    wanted = Counter()
    for name in names:
        _, key_names, value_names = PLANS[name]
        for (k, v, t_e), mult in relations[name].items():
            window, key = (k.window, k.key) if isinstance(k, WindowedKey) else (None, k)
            columns = dict(zip(key_names, key, strict=True))
            columns |= dict(zip(value_names, v if len(value_names) > 1 else (v,), strict=True))
            columns["_t_e"] = t_e
            if window:
                columns |= {"_window_start": window.start, "_window_end": window.end}
            if columns.get("log") != SENTINEL:
                wanted[name, _fact(columns)] += mult
    return wanted


def _fact(columns):
    """Columns as a value; a row of one column, as in a list of the greatest, is that column."""
    return tuple(sorted((name, _plain(value)) for name, value in columns.items()))


def _plain(value):
    if isinstance(value, list | tuple):
        return tuple(map(_plain, value))
    if isinstance(value, dict):
        return _plain(list(value.values())) if len(value) > 1 else _plain(*value.values())
    return value
