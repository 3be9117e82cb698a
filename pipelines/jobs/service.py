"""The managed job's heavy stage: decode each event, call the (simulated) service, set bad events aside."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.jobs.events import EventError, decode_event

if TYPE_CHECKING:
    import pandas as pd

OUTPUT = "key string, seq long, late boolean"
"""Columns of the stage; a row with a null key stands for a rejected event, which is only counted."""

Stage = Callable[["Iterator[pd.DataFrame]"], "Iterator[pd.DataFrame]"]


def service_stage(service_s: float, kafka: dict[str, Any], by: str) -> Stage:
    """A function for `mapInPandas` over the columns of `SOURCE`.

    Every good event takes `service_s` seconds, as a call to another service does; a chunk waits for all of its events
    at once. A bad event is on `rejects` before its task ends, and a task that is repeated rejects it again: readers
    know it by topic, partition and offset. An event is late if a newer one stood before it in its partition in the
    same batch.

    Args:
        service_s: service time per record, seconds.
        kafka: the settings' section, as plain values: tasks get it without loading the settings' classes.
        by: name of the job, for `rejects`.
    """

    def stage(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        newest: dict[int, float] = {}
        for frame in frames:
            good, bad = _decoded(frame, newest)
            if bad:
                _publish_rejects(kafka, by, bad)
            time.sleep(service_s * sum(key is not None for key in good["key"]))
            yield _frame(good)

    return stage


SOURCE = ["value", "partition", "offset", "CAST(timestamp AS DOUBLE) AS produced_at"]
"""What the stage reads of Kafka's record."""


def _decoded(frame: pd.DataFrame, newest: dict[int, float]) -> tuple[dict[str, list[Any]], list[tuple[Any, ...]]]:
    """Columns of the stage, and (partition, offset, value, stamp, reason) of what was refused; updates `newest`."""
    columns: dict[str, list[Any]] = {"key": [], "seq": [], "late": []}
    bad = []
    rows = zip(frame["value"], frame["partition"], frame["offset"], frame["produced_at"], strict=True)
    for raw, partition, offset, produced_at in rows:
        try:
            seq, event_time, key = decode_event(raw, produced_at)
            late = event_time < newest.get(partition, -np.inf)
            newest[partition] = max(newest.get(partition, -np.inf), event_time)
        except EventError as error:
            bad.append((int(partition), int(offset), raw, produced_at, str(error)))
            seq, key, late = 0, None, False
        columns["key"].append(key)
        columns["seq"].append(seq)
        columns["late"].append(late)
    return columns, bad


def _frame(columns: dict[str, list[Any]]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame({
        "key": pd.Series(columns["key"], dtype=object),
        "seq": np.asarray(columns["seq"], dtype=np.int64),
        "late": np.asarray(columns["late"], dtype=bool),
    })  # fmt: skip


def _publish_rejects(kafka: dict[str, Any], by: str, bad: list[tuple[Any, ...]]) -> None:
    from configs.settings import Kafka
    from pipelines.broker import Publisher, Record

    publisher = Publisher(Kafka(**kafka))
    for partition, offset, raw, produced_at, reason in bad:
        publisher.reject(Record("events", partition, offset, None, raw or b"", produced_at), by, reason)
    publisher.close()
