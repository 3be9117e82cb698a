"""The log's side of the serving loop: records of `metrics` as arrivals, the cursor after each, and where to go on."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from itertools import islice

import msgspec

from configs.sections import Kafka
from pipelines.kafka.broker import Record, offsets, read_all
from pipelines.kafka.librdkafka import Feed
from pipelines.kafka.topics import topic_id
from pipelines.serve.fast.core import CURSOR, Arrival, Core
from pipelines.serve.fast.outbox import NOTE
from pipelines.serve.step.event import origin_of
from pipelines.serve.step.records import ForecastValue, unpacked
from pipelines.store import Store
from tidecast.messages import Forecast, MessageError, decode

log = logging.getLogger(__name__)
TOPIC = "metrics"
TAIL = 10_000
"""Newest forecasts of the topic that are looked at after an ordinary restart."""
MOST = 10_000
"""Records that wait at most."""


class Cursor(msgspec.Struct, array_like=True):
    """Where to read on: the topic by its id (a topic made anew has another), and the next offset by partition."""

    topic: str
    next: dict[int, int]


class LogFeed:
    """Reads `metrics` from the stored cursor on in a thread of its own; records wait here until the loop takes them.

    `came` is called in the reading thread after every read, and may take them at once. Above `MOST` waiting records the
    thread reads on only when some were taken.
    """

    def __init__(self, kafka: Kafka, store: Store, came: Callable[[], None]) -> None:
        """Begin to read.

        Raises:
            BrokerError: the broker does not answer, or has no such topic.
            StoreError: the cursor cannot be read.
        """
        self._waiting: deque[Record] = deque()
        self._tell, self._closing = came, threading.Event()
        self.cursor = begin(kafka, store)
        self._feed = Feed(kafka, TOPIC, dict(self.cursor.next), self._came)

    def arrivals(self, most: int) -> list[Arrival]:
        """Return up to `most` waiting records, oldest first, each with the cursor (MessagePack) that holds after it.

        Nothing is removed: the same records come again until `taken`.
        """
        found, after = [], dict(self.cursor.next)
        for record in list(islice(self._waiting, most)):
            after[record.partition] = record.offset + 1
            at, cursor = (TOPIC, record.partition, record.offset), Cursor(self.cursor.topic, after)
            found.append(Arrival(record.value, at, msgspec.msgpack.encode(cursor), record.key or ""))
        return found

    def taken(self, count: int) -> None:
        """Remove the `count` oldest records, which are in the store now, and move the cursor behind them.

        Raises:
            IndexError: fewer are waiting.
        """
        for _ in range(count):
            record = self._waiting.popleft()
            self.cursor.next[record.partition] = record.offset + 1

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def failure(self) -> Exception | None:
        """The exception that ended the reading thread; None while it runs."""
        return self._feed.failure

    def close(self) -> None:
        """Stop the reading thread; waits up to 5 s for it."""
        self._closing.set()
        self._feed.close()

    def _came(self, records: list[Record]) -> None:
        self._waiting.extend(records)
        self._tell()
        while len(self._waiting) > MOST and not self._closing.wait(0.01):
            pass  # a long topic is read no faster than it is taken


def begin(kafka: Kafka, store: Store) -> Cursor:
    """Return the cursor to read `metrics` from: the stored one, or the topic's beginning.

    The beginning is taken (and logged) where none is stored or the topic was created anew; windows already closed are
    not closed again then. An offset no longer on the topic moves up to the oldest that is.

    Raises:
        BrokerError: the broker does not answer, or has no such topic.
        StoreError: the store cannot be read.
        msgspec.DecodeError: the stored cursor cannot be decoded.
    """
    present, ends = topic_id(kafka, TOPIC), offsets(kafka, TOPIC)
    raw = store.get_meta(CURSOR)
    kept = Cursor(present, {}) if raw is None else msgspec.msgpack.decode(raw, type=Cursor)
    if kept.topic != present:
        log.warning("topic %s was created anew: reading it from its beginning", TOPIC)
        kept = Cursor(present, {})
    return Cursor(present, {p: max(kept.next.get(p, 0), first) for p, (first, _) in ends.items()})


def recall(kafka: Kafka, core: Core, claims: Collection[int], rebuilt: bool) -> None:
    """Read the end of `forecasts` to learn what was sent already, and adopt the forecasts that the store lacks.

    `core.sent` gets the newest window sent by job; `core.closing.adopted` the forecasts that are to keep their bytes.
    The newest `TAIL` records are read, or all where these do not reach back to what is stored.

    Args:
        kafka: connection settings.
        core: with the jobs and the store.
        claims: epochs of all servers that have claimed; a forecast with another is ignored.
        rebuilt: whether the store was begun anew, so that all is read.

    Raises:
        BrokerError: the broker does not answer, or has no such topic.
        StoreError: the store cannot be read.
        msgspec.DecodeError: the header of a forecast cannot be decoded.
    """
    stored = {job: -1 if (made := core.last_sent(job)) is None else made for job in core.known}
    if rebuilt or not _adopt(kafka, core, claims, stored, TAIL):
        _adopt(kafka, core, claims, stored, None)


def _adopt(kafka: Kafka, core: Core, claims: Collection[int], stored: Mapping[str, int], newest: int | None) -> bool:
    """Read so many of the newest forecasts, or all; whether that reaches back to what is stored of every job."""
    oldest: dict[str, int] = {}
    now = time.time()
    for record in read_all(kafka, "forecasts", newest):
        try:
            issued = decode(Forecast, record.value, now)
        except MessageError:
            continue
        ours = issued.job in stored and NOTE in record.headers and issued.step_s == core.step_s
        if not ours or issued.epoch not in claims:
            continue  # of another server, or of nobody
        origin = origin_of(issued)
        core.sent[issued.job] = max(core.sent.get(issued.job, origin), origin)
        oldest[issued.job] = min(oldest.get(issued.job, origin), origin)
        if origin > stored[issued.job]:
            note = unpacked(ForecastValue, record.headers[NOTE])
            value = msgspec.structs.replace(note, message=record.value)
            core.closing.adopted.setdefault((issued.job, origin), value)
    return all(origin <= stored[job] + 1 for job, origin in oldest.items())
