"""Random change logs as files that Spark reads, and results of Spark and of the reference in one form."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

from pyspark.sql import functions as F

from models.relation.changelog import ChangeLog
from models.relation.records import SignedRecord
from models.relation.stream import Arrival, MicroBatch
from models.relation.windows import WindowedKey
from tests.fakes.signed_plans import PLANS
from tidecast.signed import signed

EPOCH = 1_000_000
"""Event times of the logs count from here on, ms: Spark takes none before 1970, and theirs begin at 0."""
END = 10**10
"""Event time of the sentinel, ms, and from which on the micro-batches are taken."""
SENTINEL = -1
"""Log of the record that brings the watermark past all others."""
SCHEMA = "log bigint, k bigint, v bigint, at bigint, came bigint, sign int, way string"


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
    packed = []
    for name, frame in plans.items():
        changes = frame.changes
        fact = [column for column in changes.columns if column not in ("_mult", "_t_i", "_origin")]
        packed.append(changes.select(F.lit(name).alias("plan"), F.to_json(F.struct(*fact)).alias("fact"), "_mult"))
    return _united(packed)


def _united(frames):
    """All of them; each union is looked through whole, so the first ones are not in all others."""
    if len(frames) == 1:
        return frames[0]
    half = len(frames) // 2
    return _united(frames[:half]).unionByName(_united(frames[half:]))


def collect_net(df):
    """Net per plan and fact, added up here: Spark would plan and shuffle for it in every micro-batch."""
    nets = Counter()
    for plan, fact, mult in df.collect():
        nets[plan, fact] += mult
    return nets


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
