"""The heavy stage of `word_count`: decode each event, call the (simulated) service, reject invalid events."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

from pipelines.jobs.events import EventError, decode_event, event_ms

if TYPE_CHECKING:
    import pyarrow as pa

OUTPUT = "key string, seq string, late string, at string"
"""Columns of the stage, all text (see `_batch`); a null key stands for a rejected event, which is only counted."""
TYPED = ["key", "CAST(seq AS LONG) AS seq", "late IS NOT NULL AS late", "CAST(at AS LONG) AS at"]
"""The same columns with their types; `at` is the event time, epoch ms."""

SOURCE = ["value", "partition", "offset", "CAST(timestamp AS DOUBLE) AS produced_at"]
"""What the stage reads of Kafka's record."""

Columns = dict[str, list[str | None]]
Stage = Callable[["Iterator[pa.RecordBatch]"], "Iterator[pa.RecordBatch]"]


def service_stage(service_s: float, kafka: dict[str, Any], by: str) -> Stage:
    """Build the function for Spark's `mapInArrow` that decodes events and simulates a service call for each.

    It maps columns SOURCE (value, partition, offset, produced_at in epoch seconds) to OUTPUT (texts key, seq, late, at;
    key and at null if refused, late null if not late), and sleeps `service_s` per valid event, once per Arrow batch.
    The refused are sent to `rejects`, again if the task is repeated. An event is late if one with a newer time stood
    before it in its partition in the same task.

    Args:
        service_s: service time per record, wall seconds.
        kafka: the settings' section, as plain values: tasks get it without loading the settings' classes.
        by: name of the job, for `rejects`.

    Returns:
        The function; in the task it raises BrokerError if rejects cannot be sent.
    """

    def stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the served rows (columns OUTPUT, one batch for each) of one task's Arrow batches (columns SOURCE)."""
        newest: dict[int, float] = {}
        for batch in batches:
            good, bad = _decoded(batch, newest)
            if bad:
                _publish_rejects(kafka, by, bad)
            time.sleep(service_s * sum(key is not None for key in good["key"]))
            yield _batch(good)

    return stage


def _decoded(batch: pa.RecordBatch, newest: dict[int, float]) -> tuple[Columns, list[tuple[Any, ...]]]:
    """Columns of the stage, and (partition, offset, value, stamp, reason) of what was refused; updates `newest`."""
    columns: Columns = {"key": [], "seq": [], "late": [], "at": []}
    bad = []
    names = ("value", "partition", "offset", "produced_at")
    rows = zip(*(batch.column(name).to_pylist() for name in names), strict=True)
    for raw, partition, offset, produced_at in rows:
        key, seq, late, at = None, 0, None, None
        try:
            event = decode_event(raw, produced_at)
            seq, event_time, key = event
            at = str(event_ms(event))
            before = newest.get(partition, -math.inf)
            late = "late" if event_time < before else None
            newest[partition] = max(before, event_time)
        except EventError as error:
            bad.append((partition, offset, raw, produced_at, str(error)))
        for name, value in zip(columns, (key, str(seq), late, at), strict=True):
            columns[name].append(value)
    return columns, bad


def _batch(columns: Columns) -> pa.RecordBatch:
    """The columns as Arrow text; built by a builder, because `pyarrow.array` imports pandas: 0.8 s of a cold worker."""
    import pyarrow as pa

    arrays = []
    for values in columns.values():
        builder = pa.lib.StringBuilder()
        builder.append_values(values)
        arrays.append(builder.finish())
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _publish_rejects(kafka: dict[str, Any], by: str, bad: list[tuple[Any, ...]]) -> None:
    from configs.sections import Kafka
    from pipelines.kafka.broker import Record
    from pipelines.kafka.publisher import Publisher

    with closing(Publisher(Kafka(**kafka))) as publisher:
        for partition, offset, raw, produced_at, reason in bad:
            publisher.reject(Record("events", partition, offset, None, raw or b"", produced_at), by, reason)
