"""The sink of a block: each micro-batch is in its topics once, whatever fails on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_WRITERS: dict[tuple[Any, ...], Any] = {}
"""Of this worker process, by broker, prefix, query, epoch and part: to take a part over takes a tenth of a second."""


def once(kafka: dict[str, Any], query: str, epoch: int, marks: str, parts: int) -> Callable[[DataFrame, int], None]:
    """Return the function for `foreachBatch` that sends columns topic, key and value, each part in one transaction.

    Args:
        kafka: the settings' section, as plain values: tasks get it without loading the settings' classes.
        query: name of the query, the same wherever it runs.
        epoch: higher by one wherever it is begun anew elsewhere.
        marks: topic of at least `parts` partitions, by which the numbers of sent batches are kept.
        parts: tasks of a batch at most.

    Returns:
        The function; a task raises BrokerError where its share is not sent.
    """

    def send(batch: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        def stage(shares: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            """Send a task's share, and yield the number of its records."""
            import pyarrow as pa
            from pyspark import TaskContext

            from pipelines.kafka.transactions import OutRecord

            context = TaskContext.get()
            assert context is not None  # this runs in a task
            rows = [
                OutRecord(row["topic"], None if row["key"] is None else row["key"].encode(), row["value"].encode())
                for share in shares
                for row in share.to_pylist()
            ]
            if rows:  # without any there is nothing to send twice
                _writer(kafka, query, epoch, marks, context.partitionId()).send(batch, rows)
            yield pa.RecordBatch.from_pydict({"records": pa.array([len(rows)], pa.int64())})

        return stage

    def write(frame: DataFrame, batch: int) -> None:
        """Send a micro-batch."""
        frame.select("topic", "key", "value").coalesce(parts).mapInArrow(send(batch), "records long").collect()

    return write


def _writer(kafka: dict[str, Any], query: str, epoch: int, marks: str, part: int) -> Any:
    from configs.sections import Kafka
    from pipelines.kafka.transactions import BatchWriter

    known = (kafka["bootstrap"], kafka["prefix"], query, epoch, part)
    if known not in _WRITERS:
        _WRITERS[known] = BatchWriter(Kafka(**kafka), query, part, epoch, marks)
    return _WRITERS[known]
