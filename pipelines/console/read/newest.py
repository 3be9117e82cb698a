"""The first screen out of the newest records: of each job what makes a row, and little of what was before it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.console.read.fold import ReadModel, fold_messages, read_message
from pipelines.kafka.broker import Record
from tidecast.messages import MessageError

SHARED: Mapping[str, int] = {"metrics": 1000, "decisions": 500, "pools": 1}
"""Records of a topic that its keys share, one of each key at least: a later one of these replaces what is shown.

Of the other topics all count: an outcome belongs to a decision, and of forecasts, heartbeats, and replays of a job the
last record need not be the one that holds.
"""
_BATCH = re.compile(rb'"kind"\s*:\s*"batch"')


def fold_newest(records: Sequence[Record], now: float) -> ReadModel:
    """Return a model of the newest records alone, as `fold` makes one of all; of many jobs few records are decoded.

    The newest interval, batch, decision and state of a pool that can be read are those of all records; of few jobs more
    than the newest are kept.

    Args:
        records: in the order in which they were read; see `fold`.
        now: wall time, epoch seconds.
    """
    kinds = [_kind(record) for record in records]
    keys = Counter(topic for topic, *_ in set(kinds))
    kept, refused, messages = Counter[tuple[Any, ...]](), 0, list[Any]()
    for record, kind in zip(reversed(records), reversed(kinds), strict=True):
        topic = record.topic
        if topic in SHARED and kept[kind] >= max(SHARED[topic] // keys[topic], 1):
            continue
        try:
            messages.append(read_message(record, now))
        except MessageError:
            refused += 1
            continue
        kept[kind] += 1
    return fold_messages(ReadModel(refused=refused), reversed(messages))


def _kind(record: Record) -> tuple[str, str | None, bool]:
    """What a record is one of several of: a key of its topic, of metrics the batches or the intervals."""
    return record.topic, record.key, record.topic == "metrics" and _BATCH.search(record.value) is not None
