"""Which offsets of a topic hold the records of a time range; a range that the topic cannot give is refused."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Any, NamedTuple

from kafka import TopicPartition

from configs.sections import Kafka
from pipelines.backfill.asked import (
    FROM_TABLE,
    NotHeldError,
    RangeError,
    TimeRange,
    check_moments,
    why_cut,
    why_emptied,
)
from pipelines.kafka.connection import answered, connect_client
from pipelines.kafka.topics import retention_s
from tidecast.connection.transport import consumer

FIRST_S = 10.0
"""Seconds that records are waited for which a partition has."""
STRAYS_S = 120.0
"""Seconds of reading behind a range for records of it, while such records come."""


class OffsetRange(NamedTuple):
    """First offset and offset after the last, {topic with its prefix: {partition: offset}}, as orders carry them."""

    starts: dict[str, dict[str, int]]
    ends: dict[str, dict[str, int]]

    @property
    def records(self) -> int:
        """How many offsets it spans."""
        return sum(self.ends[t][p] - at for t, parts in self.starts.items() for p, at in parts.items())


def find_offsets(kafka: Kafka, topic: str, asked: TimeRange, may_be_empty: bool = False) -> OffsetRange:
    """Find the offsets of all records whose event time may lie in a range.

    A record is stamped when it is produced, after it happened: what happened in the range is stamped between its begin
    and the slack after its end. That has to be over, so that no record of the range is yet to come.

    Args:
        kafka: the broker.
        topic: its whole name.
        asked: the range.
        may_be_empty: whether it may hold no record, as of one topic among several.

    Raises:
        RangeError: the range is empty or holds no record, ends in the future or so lately that records may still come,
            or begins before what the topic surely holds; a clock that runs fast has stamped too many records; or the
            broker gives no record within 10 s.
        BrokerError: no broker answers within 10 s (30 s for the offsets), or the topic is forbidden.
        SettingsError: an unknown security option.
    """
    check_moments(asked)
    with closing(connect_client(consumer, kafka)) as reader, answered(kafka):
        numbers = sorted(reader.partitions_for_topic(topic) or ())
        if not numbers:
            raise NotHeldError(f"topic {topic!r} is not on the broker: there is nothing to read again")
        places = [TopicPartition(topic, number) for number in numbers]
        kept, ended = reader.beginning_offsets(places), reader.end_offsets(places)
        starts = offsets_at(reader, asked.begin, ended)
        ends = {place: max(at, starts[place]) for place, at in offsets_at(reader, asked.until, ended).items()}
        ends = _past_strays(reader, ends, ended, asked.until)
        if cut := [place for place in places if 0 < kept[place] == starts[place]]:
            left = {place: (kept[place], ended[place]) for place in cut if kept[place] < ended[place]}
            if stamps := first_stamps(reader, left):
                raise NotHeldError(why_cut(asked, stamps))
            if why := why_emptied(asked, cut, retention_s(kafka, topic)):
                raise NotHeldError(why)
    found = OffsetRange(_by_topic(starts), _by_topic(ends))
    if not found.records and not may_be_empty:
        raise RangeError(
            f"topic {topic!r} holds no record produced from {asked.told(asked.begin)} to {asked.told(asked.until)}"
        )
    return found


def offsets_at(reader: Any, wall: float, ended: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Return each partition's first record that is stamped at a wall time or later, or its end."""
    found = reader.offsets_for_times({place: max(int(wall * 1000), 0) for place in ended})
    return {place: ended[place] if found.get(place) is None else found[place].offset for place in ended}


def first_stamps(reader: Any, spans: Mapping[TopicPartition, tuple[int, int]]) -> dict[TopicPartition, float]:
    """Return the stamp of the first record in a span of offsets of each partition, wall epoch seconds.

    Those without a record are left out: an offset may be a transaction's mark, or of what was compacted.

    Raises:
        RangeError: the broker gives none within 10 s.
    """
    waits, found = dict(spans), dict[TopicPartition, float]()
    reader.assign(sorted(waits))
    for place, (first, _) in spans.items():
        reader.seek(place, first)
    give_up = time.monotonic() + FIRST_S
    while waits and time.monotonic() < give_up:
        for place, records in reader.poll(timeout_ms=500).items():
            if place in waits and records[0].offset < waits[place][1]:
                found[place] = records[0].timestamp / 1000
        for place, (_, end) in list(waits.items()):
            if place in found or reader.position(place) >= end:
                del waits[place]
    _refuse_silence(waits)
    return found


def _past_strays(
    reader: Any, ends: Mapping[TopicPartition, int], ended: Mapping[TopicPartition, int], until: float
) -> dict[TopicPartition, int]:
    """Ends behind records that a clock which jumped or runs fast stamped too late: what follows may be of the range.

    It reads on until a poll gives no record of the range; where a clock runs fast, that is as far as it does.
    """
    found, waits = dict(ends), {place for place, at in ends.items() if at < ended[place]}
    reader.assign(sorted(waits))
    for place in waits:
        reader.seek(place, ends[place])
    began = heard = time.monotonic()
    while waits and time.monotonic() < heard + FIRST_S:
        if time.monotonic() >= began + STRAYS_S:
            _refuse_fast_clock(waits)
        polled = reader.poll(timeout_ms=500)
        if waits & polled.keys():
            heard = time.monotonic()
        for place, records in polled.items():
            inside = [record.offset for record in records if record.timestamp < until * 1000]
            if inside:
                found[place] = inside[-1] + 1
            if not inside or reader.position(place) >= ended[place]:
                waits.discard(place)
                reader.pause(place)
    reader.resume(*reader.assignment())
    _refuse_silence(waits)
    return found


def _refuse_fast_clock(waits: Iterable[TopicPartition]) -> None:
    """Refuse partitions whose records of the range go on behind later ones for longer than it is worth to read."""
    place = min(waits)
    raise NotHeldError(
        f"topic {place.topic!r}, partition {place.partition}: records of the range are among others that a clock "
        f"which runs fast stamped behind it, for more than {STRAYS_S:g} s of reading. Give a --to of before it ran "
        f"fast, or read the range {FROM_TABLE}"
    )


def _refuse_silence(waits: Iterable[TopicPartition]) -> None:
    """Refuse partitions of which the broker gives nothing, though they have records."""
    if place := min(waits, default=None):
        raise RangeError(
            f"topic {place.topic!r} gives no record of partition {place.partition} within {FIRST_S:g} s: see that the "
            "broker runs, and try again"
        )


def _by_topic(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for place, at in offsets.items():
        found.setdefault(place.topic, {})[str(place.partition)] = at
    return found
