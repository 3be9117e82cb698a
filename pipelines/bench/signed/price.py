"""The price of a signed plan: its throughput beside the plain DataFrame job's, on a source that only ever appends."""

from __future__ import annotations

import math
import os
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pipelines.bench.signed.pairs import PAIRS, Pair, Query, Work
from pipelines.figures.written import find_commit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "id bigint, key bigint, x bigint, at bigint"
KEYS, STEP_MS = 50, 1
_ALL = "triggerExecution"


@dataclass(frozen=True)
class PriceEffort:
    """How much is measured.

    Attributes:
        rows: records per run, by what the plan does with one.
        text_rows: records per run where they are read as JSON text.
        files: micro-batches of a run; the first one warms up and does not count.
        pairs: runs of each form, one after the other in turns.
    """

    rows: Mapping[Work, int]
    text_rows: int
    files: int
    pairs: int


FULL = PriceEffort(
    {"passing": 4_000_000, "telling apart": 300_000, "joining": 30_000, "in Python": 20_000}, 300_000, files=6, pairs=9
)
QUICK = PriceEffort(
    {"passing": 20_000, "telling apart": 5_000, "joining": 2_000, "in Python": 2_000}, 5_000, files=3, pairs=1
)


class PricedCase(NamedTuple):
    """An operator on one form of its source.

    Attributes:
        pair: the operator.
        text: whether its records are JSON text that both jobs parse, as from a topic; else Parquet's columns.
    """

    pair: Pair
    text: bool

    @property
    def name(self) -> str:
        """Of its figures."""
        return f"{self.pair.name}, of JSON text" if self.text else self.pair.name


def measure_price(
    spark: SparkSession, size: PriceEffort, kept: Mapping[str, Any] | None = None,
    save: Callable[[dict[str, Any]], None] = lambda found: None,
) -> dict[str, Any]:  # fmt: skip
    """Run every operator as a plain job and as a signed plan, in turns, and compare records per second.

    A run reads Parquet files, one per micro-batch, and writes nowhere. The seconds are those of its micro-batches but
    the first one (Spark's `triggerExecution`): planning, state and its commit are in them. A pair of runs gives a
    ratio; which form comes first alternates, and one pair that is not counted comes before. Of stateful operators in
    Python there are few records, so that what a micro-batch costs anyway has a part in both. What Spark takes a record
    through once is measured on JSON text as well. Prints a line per operator with how many are left, and saves what is
    done after each.

    Args:
        spark: with one core and the state store RocksDB for both forms.
        size: how much.
        kept: what an earlier call found; operators of the same size are not run again.
        save: gets what is there so far.

    Returns:
        `operators`: per name `own` (Spark's own operators do it), `rows` (records per run), `files`, `plain_rps` and
        `signed_rps` (medians, records/s), `ratio` (median of signed ÷ plain), its 95 % interval `low` to `high`,
        `pairs`, `commit`; `worst`, the least ratio among Spark's own.
    """
    cases = [PricedCase(pair, text) for text in (False, True) for pair in PAIRS if not text or pair.work == "passing"]
    operators = {case.name: one for case in cases if (one := _kept(kept, case, size)) is not None}
    left = [case for case in cases if case.name not in operators]
    with tempfile.TemporaryDirectory(prefix="signed-") as made:
        for n, case in enumerate(left, 1):
            source = Path(made) / f"{_rows(case, size)}-{case.text}"
            if not source.exists():
                _write(spark, source, case.text, _rows(case, size), size.files)
            operators[case.name] = one = _compare(spark, case, source, size)
            print(
                f"{case.name:<40}{one['signed_rps']:12,.0f} of {one['plain_rps']:12,.0f} records/s: {one['ratio']:.3f}"
                f" ({one['low']:.3f} to {one['high']:.3f}); {len(left) - n} operators left",
                flush=True,
            )
            save(_found(operators))
    return _found(operators)


def _rows(case: PricedCase, size: PriceEffort) -> int:
    return size.text_rows if case.text else size.rows[case.pair.work]


def _kept(kept: Mapping[str, Any] | None, case: PricedCase, size: PriceEffort) -> dict[str, Any] | None:
    """What an earlier call found of a case with as many records, micro-batches and pairs."""
    one: dict[str, Any] | None = kept["operators"].get(case.name) if kept else None
    same = one is not None and (one["rows"], one["files"], one["pairs"]) == (_rows(case, size), size.files, size.pairs)
    return one if same else None


def _found(operators: Mapping[str, Any]) -> dict[str, Any]:
    worst = min((one["ratio"] for one in operators.values() if one["own"]), default=None)
    return {"operators": dict(operators), "worst": worst}


def _compare(spark: SparkSession, case: PricedCase, source: Path, size: PriceEffort) -> dict[str, Any]:
    pair = case.pair
    forms = {"plain": (pair.plain, pair.plain_mode), "signed": (pair.signed, pair.signed_mode)}
    found: dict[str, list[float]] = {name: [] for name in forms}
    for n in range(size.pairs + 1):
        for name in forms if n % 2 else reversed(forms):
            rps = _run(spark, source, case.text, *forms[name])
            if n:
                found[name].append(rps)
    ratios = [signed / plain for plain, signed in zip(found["plain"], found["signed"], strict=True)]
    low, high = median_interval(ratios)
    return {
        "commit": find_commit(), "own": pair.own, "rows": _rows(case, size), "files": size.files,
        "plain_rps": statistics.median(found["plain"]), "signed_rps": statistics.median(found["signed"]),
        "ratio": statistics.median(ratios), "low": low, "high": high, "pairs": size.pairs,
    }  # fmt: skip


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return an interval that holds the median with 95 % or more: the k-th least and greatest value of n.

    P(fewer than k of n values are below the median) is binomial with 1/2; with fewer than 6 values least and greatest
    hold it with less.

    Args:
        values: at least one.
    """
    ordered, n, k = sorted(values), len(values), 1
    while 2 * sum(math.comb(n, i) for i in range(k + 1)) / 2**n <= 0.05:
        k += 1
    return ordered[k - 1], ordered[n - k]


def _run(spark: SparkSession, source: Path, text: bool, query: Query, mode: str) -> float:
    """Records per second of one run, without its first micro-batch."""
    read = spark.readStream.schema("value string" if text else SCHEMA).option("maxFilesPerTrigger", 1)
    df = read.parquet(str(source))
    if text:
        df = df.selectExpr(f"from_json(value, '{SCHEMA}') AS record").select("record.*")
    with tempfile.TemporaryDirectory(prefix="signed-") as checkpoint, _no_empty_batches(spark):
        sink = query(df).writeStream.format("noop").outputMode(mode)
        running = sink.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        running.awaitTermination()
        measured = [one for one in running.recentProgress if one.numInputRows][1:]
    rows, spent_ms = (
        sum(of) for of in zip(*((one.numInputRows, one.durationMs[_ALL]) for one in measured), strict=True)
    )
    return float(rows / spent_ms * 1000)


@contextmanager
def _no_empty_batches(spark: SparkSession) -> Iterator[None]:
    """A micro-batch that only moves the watermark has no records to be divided by."""
    name = "spark.sql.streaming.noDataMicroBatches.enabled"
    before = spark.conf.get(name)
    spark.conf.set(name, "false")
    try:
        yield
    finally:
        spark.conf.set(name, str(before))


def _write(spark: SparkSession, folder: Path, text: bool, rows: int, files: int) -> None:
    """Records in order of time, a file per micro-batch, dated in the order they are to be read in."""
    begin = 1_700_000_000_000
    df = spark.range(0, rows, 1, files).selectExpr(
        "id", f"cast(abs(hash(id)) % {KEYS} AS bigint) AS key", "cast(abs(hash(id, 1)) % 1000 AS bigint) AS x",
        f"{begin} + id * {STEP_MS} AS at",
    )  # fmt: skip
    (df.selectExpr("to_json(struct(*)) AS value") if text else df).write.parquet(str(folder))
    for n, file in enumerate(sorted(folder.glob("*.parquet"))):
        os.utime(file, (begin / 1000 + n, begin / 1000 + n))
