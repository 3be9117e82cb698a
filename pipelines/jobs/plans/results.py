"""A plan's results as records to merge by key, as what a reader has of them, and as the reference has them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from models.relation.records import Relation, relation
from models.relation.windows import WindowedKey
from pipelines.jobs.plans.records import SignedEvent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tidecast.signed import SignedFrame

Results = dict[str, dict[str, Any]]
"""Columns by name of each result, by the key of its record."""


def result_key(job: str, key: str, start: int, end: int) -> str:
    """Return the key of a result's record, `<job>:<key>@<start>-<end>`, the window's ends in epoch ms."""
    return f"{job}:{key}@{start}-{end}"


def to_records(results: SignedFrame, job: str) -> DataFrame:
    """Return the changes of windowed results as records for the topic `windows`, to be merged by key.

    An insertion is the result as JSON, a retraction a tombstone. The last record of a key holds: the changes of a
    group are told in order by one task, and a micro-batch that is repeated tells the same.

    Args:
        results: of an aggregate in windows, under one key column or none.
        job: name of the job.
    """
    from pyspark.sql import functions as F

    key, start, end = F.concat(F.lit(""), *results.keys), F.col("_window_start"), F.col("_window_end")
    named = F.concat(F.lit(f"{job}:"), key, F.lit("@"), start, F.lit("-"), end)
    value = F.when(F.col("_mult") > 0, F.to_json(F.struct(*results.values)))
    return results.changes.select(F.lit("windows").alias("topic"), named.alias("key"), value.alias("value"))


def results_of(records: Iterable[tuple[str, str | bytes | None]], job: str) -> Results:
    """Return what records (key and value) of the topic `windows`, in order, come to for a job."""
    newest = {key: value for key, value in records if key.startswith(f"{job}:")}
    return {key: json.loads(value) for key, value in newest.items() if value is not None}


def relation_of(events: Iterable[SignedEvent]) -> Relation:
    """Return what signed events add up to: (key, seq, event time) and its net."""
    return relation(((event.key, event.seq, event.t_e), event.sign) for event in events)


def expected(job: str, results: Relation, names: Sequence[str]) -> Results:
    """Return the reference's results in the same form.

    Args:
        job: name of the job.
        results: under windowed keys; the value is a tuple.
        names: of the value's columns.
    """
    found: Results = {}
    for (k, v, _), _net in results.items():
        assert isinstance(k, WindowedKey)
        found[result_key(job, str(k.key), *k.window)] = dict(zip(names, v, strict=True))
    return found


def totals_per_key(results: Mapping[str, Mapping[str, Any]], job: str) -> dict[str, dict[str, int]]:
    """Return each key's `n` and `seq_sum` over all of its windows, sorted by key."""
    totals: dict[str, dict[str, int]] = {}
    for record, result in results.items():
        key = record.removeprefix(f"{job}:").rpartition("@")[0]
        known = totals.setdefault(key, {"n": 0, "seq_sum": 0})
        totals[key] = {name: known[name] + result[name] for name in known}
    return dict(sorted(totals.items()))
