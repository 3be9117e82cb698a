"""Plans written twice: for Spark and for the reference."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import functions as F

from models.relation.aggregates import Aggregate, Distinct
from models.relation.join import Join
from models.relation.linear import Difference, FlatMap, Map, Rekey, Select, SlidingWindow, Union, tumbling
from models.relation.ordered import Max, Min, Quantile, TopN
from models.relation.plan import LogicalPlan, Node
from models.relation.reducers import Count, Mean, Reducer, RowOf, Sum
from models.relation.sessions import SessionWindow
from models.relation.watermark import Source
from models.relation.windows import WindowedKey
from tidecast.signed import count, max_of, mean_of, min_of, quantile_of, sum_of, top


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


FULL = RowOf((Count(), Sum(), Mean(), Min(), Max(), TopN(2), Quantile(0.5)))
SUMS = RowOf((Count(), Sum(), Mean()))
SECOND = RowOf((Count(), Of(0, Sum()), Of(1, Sum()), Of(2, Sum()), Of(3, Min()), Of(4, Max()), Of((4, 0), TopN(2))))
FULL_NAMES, SUM_NAMES = ("n", "s", "m", "lo", "hi", "best", "mid"), ("n", "s", "m")


def full():
    """`FULL`, for Spark."""
    return {**sums(), "lo": min_of("v"), "hi": max_of("v"), "best": top(2, "v"), "mid": quantile_of("v", 0.5)}


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
    "sessions": (lambda left, right: left.minus(right).sessions(30), ("log", "k"), ("v",)),
    "session_totals": (
        lambda left, right: left.minus(right).sessions(30).aggregate(**full()), ("log", "k"), FULL_NAMES
    ),
    "final_sessions": (lambda left, right: left.sessions(30).aggregate("final", **sums()), ("log", "k"), SUM_NAMES),
    "distinct_sessions": (lambda left, right: left.sessions(30).distinct(), ("log", "k"), ("v",)),
    "session_pairs": (
        lambda left, right: left.sessions(30).join(right_values(right_of(left)).sessions(30)),
        ("log", "k"),
        ("v", "other"),
    ),
    "near_sessions": (
        lambda left, right: left.join(right_values(right), bound_ms=30).sessions(20).aggregate(n=count()),
        ("log", "k"),
        ("n",),
    ),
    "sessions_of_windows": (
        lambda left, right: left.window(20).aggregate(n=count()).rekey("log").sessions(40).aggregate(
            c=count(), s=sum_of("n")
        ),
        ("log",),
        ("c", "s"),
    ),
    "windows_of_sessions": (
        lambda left, right: left.sessions(30).aggregate(n=count()).rekey("log").window(120).aggregate(
            c=count(), s=sum_of("n")
        ),
        ("log",),
        ("c", "s"),
    ),
}  # fmt: skip
"""Per name the plan on Spark, and the names of its result's key and value columns."""


def reference(names, delay_ms=0, lateness_ms=0, one_source=False):
    """What these plans and nodes need; what takes records from a source takes them as late as `lateness_ms`.

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
        "sessions": (SessionWindow(30, **first), "difference"),
        "session_totals": (Aggregate(FULL), "sessions"),
        "left_sessions": (SessionWindow(30, **first), "left"),
        "small": (Select(lambda k, v, t_e: v < 2), "left"),
        "small_sessions": (SessionWindow(30, **first), "small"),
        "final_sessions": (Aggregate(SUMS, emission="final"), "left_sessions"),
        "distinct_sessions": (Distinct(), "left_sessions"),
        "session_pairs": (Join(), "left_sessions", "small_sessions"),
        "sessions_of_near": (SessionWindow(20), "near"),
        "near_sessions": (Aggregate(Count()), "sessions_of_near"),
        "short": (tumbling(20), "left"),
        "short_counts": (Aggregate(Count(), **first), "short"),
        "short_by_log": (Rekey(lambda k, v, t_e: k.key[:1]), "short_counts"),
        "sessions_of_short": (SessionWindow(40), "short_by_log"),
        "sessions_of_windows": (Aggregate(RowOf((Count(), Sum()))), "sessions_of_short"),
        "session_counts": (Aggregate(Count()), "left_sessions"),
        "session_counts_by_log": (Rekey(lambda k, v, t_e: k.key[:1]), "session_counts"),
        "wide_of_sessions": (tumbling(120), "session_counts_by_log"),
        "windows_of_sessions": (Aggregate(RowOf((Count(), Sum()))), "wide_of_sessions"),
    }
    if one_source:
        nodes["right"] = (Select(lambda k, v, t_e: v < 2), "left")
    sources = tuple(Source(name, delay_ms) for name in ("left", "right") if name not in nodes)
    needed, left = set(), [*names]
    while left:
        if (name := left.pop()) in nodes and name not in needed:
            needed.add(name)
            left += nodes[name][1:]
    made = (Node(name, operator, tuple(of)) for name, (operator, *of) in nodes.items() if name in needed)
    return LogicalPlan(sources, tuple(made))
