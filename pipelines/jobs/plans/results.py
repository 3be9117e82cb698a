"""A plan's results as records to merge by key, as what a reader has of them, and as the reference has them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from models.relation.records import Relation, relation
from models.relation.windows import WindowedKey
from pipelines.jobs.plans.records import SignedEvent
from pipelines.jobs.windows import result_key, result_key_column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tidecast.signed import SignedFrame

Results = dict[str, dict[str, Any]]
"""Columns by name of each result, by the key of its record."""


def to_records(results: SignedFrame, job: str) -> DataFrame:
    """Return the changes of windowed results as records for the topic `windows`, to be merged by key.

    An insertion is the result as JSON, a retraction a tombstone. The last record of a key holds: the changes of a
    group are told in order by one task, and a micro-batch that is repeated tells the same.

    Args:
        results: of an aggregate in windows, under one key column or none.
        job: name of the job.
    """
    from pyspark.sql import functions as F

    key = result_key_column(job, *results.keys)
    value = F.when(F.col("_mult") > 0, F.to_json(F.struct(*results.values)))
    return results.changes.select(F.lit("windows").alias("topic"), key.alias("key"), value.alias("value"))


def results_of(records: Iterable[tuple[str, str | bytes | None]], job: str) -> Results:
    """Return what records (key and value) of the topic `windows`, in order, come to for a job; empty ones take away."""
    newest = {key: value for key, value in records if key.startswith(f"{job}:")}
    return {key: json.loads(value) for key, value in newest.items() if value}


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
