"""The sink of a block: each micro-batch is in its topics once, whatever fails on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from configs.sections import Kafka
    from pipelines.kafka.transactions import BatchMark, BatchWriter

_WRITERS: dict[tuple[Any, ...], BatchWriter] = {}
"""Of this worker process, by broker, prefix, sink and part: to take a part over takes a tenth of a second."""


class BlockSink(NamedTuple):
    """Who writes a block's micro-batches.

    Attributes:
        query: name of the query, the same wherever it runs, and of no other that ever ran.
        epoch: higher by one wherever it is begun anew elsewhere.
        marks: a topic, by whose partitions the numbers of sent batches are kept.
        parts: tasks of a batch, no more than that topic has partitions.
    """

    query: str
    epoch: int
    marks: str
    parts: int

    def writer(self, kafka: Kafka, part: int) -> BatchWriter:
        """Return the writer of a part."""
        from pipelines.kafka.transactions import BatchWriter

        return BatchWriter(kafka, f"{self.query}.0", part, self.epoch, self.marks)  # as jobs that run have named it

    def has_marks(self, kafka: Kafka) -> bool:
        """Return whether the broker knows of any part what was sent last; raises as `BatchWriter.has_mark`."""
        return any(self.writer(kafka, part).has_mark() for part in range(self.parts))

    def claim(self, kafka: Kafka) -> list[BatchMark]:
        """Shut out whoever wrote with a lower epoch, for all parts; returns what each has sent.

        Raises:
            SupersededError, BrokerError: as `BatchWriter.claim`.
        """
        return [self.writer(kafka, part).claim() for part in range(self.parts)]


def once(kafka: dict[str, Any], sink: BlockSink) -> Callable[[DataFrame, int], None]:
    """Return the function for `foreachBatch` that sends columns topic, key and value, a task's share in a transaction.

    A share is known again by the number of its partition. So records are put into partitions by what they say: those of
    a source are numbered in another order when a batch is run again after a restart, and a coalesce groups them by
    where they may be read.

    Args:
        kafka: the settings' section, as plain values: tasks get it without loading the settings' classes.
        sink: who writes.

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
                _writer(kafka, sink, context.partitionId()).send(batch, rows)
            yield pa.RecordBatch.from_pydict({"records": pa.array([len(rows)], pa.int64())})

        return stage

    def write(frame: DataFrame, batch: int) -> None:
        """Send a micro-batch."""
        columns = ("topic", "key", "value")
        frame.select(*columns).repartition(sink.parts, *columns).mapInArrow(send(batch), "records long").collect()

    return write


def _writer(kafka: dict[str, Any], sink: BlockSink, part: int) -> BatchWriter:
    from configs.sections import Kafka

    known = (kafka["bootstrap"], kafka["prefix"], sink, part)
    if known not in _WRITERS:
        _WRITERS[known] = sink.writer(Kafka(**kafka), part)
    return _WRITERS[known]
