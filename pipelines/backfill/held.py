"""What a topic still says of a range that a table is to give: a table that lacks a part of a partition is refused."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from kafka import TopicPartition

from configs.sections import Kafka
from pipelines.backfill.asked import RangeError, TimeRange
from pipelines.backfill.ranges import first_stamps, offsets_at
from pipelines.kafka.connection import answered, connect_client
from tidecast.connection.transport import consumer


class HeldPartition(NamedTuple):
    """Offsets of a partition that a broker has.

    Attributes:
        kept: of the first record that it still holds.
        since: of the first one of these that is stamped at the range's begin or later, or the end of all.
        until: likewise at the range's end and its slack.
    """

    kept: int
    since: int
    until: int


class CopiedPartition(NamedTuple):
    """What a table has of a partition: the offset after its last record, and the stamp of that, wall epoch seconds."""

    past: int
    last: float


NOTHING = CopiedPartition(0, 0.0)


@dataclass(frozen=True)
class HeldTopic:
    """What a broker has of a topic about a range.

    Attributes:
        kafka: the broker.
        name: whole name of the topic.
        parts: its partitions; none where it is not on the broker.
    """

    kafka: Kafka
    name: str
    parts: Mapping[int, HeldPartition]

    @classmethod
    def about(cls, kafka: Kafka, name: str, asked: TimeRange) -> HeldTopic:
        """Ask the broker.

        Raises:
            BrokerError, SettingsError: as `find_offsets`.
        """
        with closing(connect_client(consumer, kafka)) as reader, answered(kafka):
            places = [TopicPartition(name, number) for number in sorted(reader.partitions_for_topic(name) or ())]
            if not places:
                return cls(kafka, name, {})
            kept, ended = reader.beginning_offsets(places), reader.end_offsets(places)
            since, until = (offsets_at(reader, at, ended) for at in (asked.begin, asked.until))
        return cls(kafka, name, {p.partition: HeldPartition(kept[p], since[p], until[p]) for p in places})

    def first_stamps(self, spans: Mapping[int, tuple[int, int]]) -> dict[int, float]:
        """Return what `ranges.first_stamps` does, by the numbers of the partitions.

        Raises:
            RangeError: the broker gives none within 10 s.
            BrokerError, ValueError: as `about`.
        """
        with closing(connect_client(consumer, self.kafka)) as reader, answered(self.kafka):
            found = first_stamps(reader, {TopicPartition(self.name, number): span for number, span in spans.items()})
        return {place.partition: at for place, at in found.items()}


def check_copied(table: Path, held: HeldTopic, copied: Mapping[int, CopiedPartition], asked: TimeRange) -> None:
    """Refuse a table that lacks records of a range: some that the topic has, or that neither of them has any more.

    A partition of the table that goes on behind the range holds all of it; so does one that ends where the range does
    on the topic.

    Raises:
        RangeError: as said; or as `HeldTopic.first_stamps`.
    """
    spans: dict[int, tuple[int, int]] = {}
    for number, part in held.parts.items():
        has = copied.get(number, NOTHING)
        if has.last >= asked.until or has.past >= part.until:
            continue
        if has.past < part.kept == part.since:  # what lies between was dropped, whenever it was stamped
            there = f"until {asked.told(has.last)} only" if number in copied else "nowhere"
            raise RangeError(
                f"{table} holds partition {number} of topic {held.name!r} {there}, and the topic begins later, at "
                f"offset {part.kept}: {_earlier(asked, has.last)}"
            )
        if (first := max(has.past, part.since)) < part.until:
            spans[number] = first, part.until
    if spans and (lacks := held.first_stamps(spans)):
        number, at = min(lacks.items(), key=lambda item: item[1])
        raise RangeError(
            f"{table} lacks records of partition {number} of topic {held.name!r} from {asked.told(at)} on, which the "
            f"topic has: {_earlier(asked, at)}"
        )


def _earlier(asked: TimeRange, wall: float) -> str:
    """What to do about a range of which nothing is known from a moment on."""
    end = wall - asked.slack_s
    if end <= asked.begin:
        return "give another table, or read the range from the topic, without --table, if it holds it"
    return (
        f"records of before --to may have come until {asked.told(asked.until)}, so give --to {asked.told(end)}, and "
        "read the rest from the topic, without --table, if it holds it"
    )
