"""Operators whose records each take a while on a core, as those that ask a service: simulated by waiting."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


def served(operator: Callable[..., DataFrame], work_ms: float) -> Callable[..., DataFrame]:
    """Return an operator that waits for each record that it takes, once per Arrow batch, and does the same else.

    Args:
        operator: from the records that it takes to those that it makes.
        work_ms: that a record takes.
    """

    def waits(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            time.sleep(work_ms * batch.num_rows / 1000)
            yield batch

    def run(*taken: DataFrame) -> DataFrame:
        return operator(*(frame.mapInArrow(waits, frame.schema) for frame in taken))

    return run
