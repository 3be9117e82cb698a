"""Records with a header whose name is no UTF-8, as Kafka takes from any client: kafka-python 3.0 reads none.

At such a record its `poll` raises, and the one after that never returns. What lies behind it in its batch cannot be
reached by seeking either, as a batch is read from its beginning.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kafka.consumer.fetcher import Fetcher
from kafka.errors import CorruptRecordError
from kafka.record.default_records import DefaultRecordBatch


def take_any_name(consumer: Any) -> None:
    """Let a KafkaConsumer give such records as well: what of a name is no UTF-8 is U+FFFD there.

    Where it raises for another reason, it does so again at each `poll`, which returns.
    """
    consumer._fetcher.PartitionRecords = _Records


class _Records(Fetcher.PartitionRecords):  # type: ignore[misc]
    """The records of a partition in one answer of the broker."""

    def _unpack_records(self, tp: Any, records: Any, *deserializers: Any) -> Iterator[Any]:
        try:
            yield from super()._unpack_records(tp, _Batches(records), *deserializers)
        except Exception:
            self.drain()  # the next poll asks the broker anew; else it would look in here for ever
            raise


class _Batches:
    """The batches of an answer, of the kind that takes any name."""

    def __init__(self, records: Any) -> None:
        self._records = records

    def next_batch(self) -> Any:
        batch = self._records.next_batch()
        return _Batch(batch._buffer) if isinstance(batch, DefaultRecordBatch) else batch


class _Batch(DefaultRecordBatch):  # type: ignore[misc]
    _buffer: Any

    def __next__(self) -> Any:
        try:
            return super().__next__()
        except CorruptRecordError:
            if isinstance(self._buffer, _Lenient):
                raise
        self._buffer = _Lenient(self._buffer)  # slower, so no batch begins with it
        return super().__next__()


class _Lenient(bytearray):
    """Bytes that are decoded whatever they are, as are those of their slices."""

    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        return _Lenient(found) if isinstance(at, slice) else found

    def decode(self, encoding: str = "utf-8", errors: str = "replace") -> str:
        return super().decode(encoding, errors)
