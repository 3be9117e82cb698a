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
from pipelines.kafka.broker import Record, read_records, topic_offsets
from pipelines.kafka.librdkafka import Feed
from pipelines.kafka.topics import topic_id
from pipelines.serve.fast.core import CURSOR, Core, IncomingSample
from pipelines.serve.fast.outbox import RECORD_HEADER
from pipelines.serve.step.forecasts import origin_of
from pipelines.serve.step.records import ForecastValue, decode_value
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

    Above `MOST` waiting records the thread reads on only when some were removed.
    """

    def __init__(self, kafka: Kafka, store: Store, on_records: Callable[[], None]) -> None:
        """Begin to read.

        Args:
            kafka: connection settings.
            store: holds the cursor.
            on_records: called in the reading thread after every read; may process what waits at once.

        Raises:
            BrokerError: the broker does not answer, or has no such topic.
            StoreError: the cursor cannot be read.
        """
        self._waiting: deque[Record] = deque()
        self._on_records, self._closing = on_records, threading.Event()
        self.cursor = find_cursor(kafka, store)
        self._feed = Feed(kafka, TOPIC, dict(self.cursor.next), self._take_in)

    def peek(self, most: int) -> list[IncomingSample]:
        """Return up to `most` waiting records, oldest first, each with the cursor that holds after it.

        The cursor is MessagePack of the topic's id and the next offset by partition. Nothing is removed: the same
        records come again until `remove`. Does not wait; empty where none waits.
        """
        samples, offsets_after = [], dict(self.cursor.next)
        for record in list(islice(self._waiting, most)):
            offsets_after[record.partition] = record.offset + 1
            cursor = msgspec.msgpack.encode(Cursor(self.cursor.topic, offsets_after))
            position = TOPIC, record.partition, record.offset
            samples.append(IncomingSample(record.value, position, cursor, record.key or ""))
        return samples

    def remove(self, count: int) -> None:
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

    def _take_in(self, records: list[Record]) -> None:
        self._waiting.extend(records)
        self._on_records()
        while len(self._waiting) > MOST and not self._closing.wait(0.01):
            pass  # a long topic is read no faster than it is taken


def find_cursor(kafka: Kafka, store: Store) -> Cursor:
    """Return the cursor (next offset by partition) to read `metrics` from: the stored one, or the topic's beginning.

    The beginning is taken where none is stored or the topic was created anew (logged). An offset that is no longer on
    the topic moves up to the oldest that is.

    Args:
        kafka: connection settings.
        store: holds the cursor under the meta name `CURSOR`.

    Raises:
        BrokerError: the broker does not answer, or has no such topic.
        ValueError: an unknown security option.
        StoreError, msgspec.DecodeError: the stored cursor cannot be read or decoded.
    """
    present, ends = topic_id(kafka, TOPIC), topic_offsets(kafka, TOPIC)
    raw = store.get_meta(CURSOR)
    kept = Cursor(present, {}) if raw is None else msgspec.msgpack.decode(raw, type=Cursor)
    if kept.topic != present:
        log.warning("topic %s was created anew: reading it from its beginning", TOPIC)
        kept = Cursor(present, {})
    return Cursor(present, {p: max(kept.next.get(p, 0), first) for p, (first, _) in ends.items()})


def recall_sent(kafka: Kafka, core: Core, claims: Collection[int], rebuilt: bool) -> None:
    """Read from the topic `forecasts` what was sent already, and adopt the forecasts that the store lacks.

    `core.newest_sent` gets the newest window sent by job, `core.closer.adopted` the forecasts that are to keep their
    bytes. The newest 10,000 records are read, or all where these do not reach back to what is stored.

    Args:
        kafka: connection settings.
        core: with the jobs and the store; changed.
        claims: epochs of all servers that have claimed; a forecast with another is ignored.
        rebuilt: whether the store was begun anew, so that the whole topic is read.

    Raises:
        BrokerError: the broker does not answer, or has no such topic.
        StoreError: the store cannot be read.
    """
    stored = {job: -1 if (newest := core.newest_forecast_window(job)) is None else newest for job in core.known}
    if rebuilt or not _adopt(kafka, core, claims, stored, TAIL):
        _adopt(kafka, core, claims, stored, None)


def _adopt(kafka: Kafka, core: Core, claims: Collection[int], stored: Mapping[str, int], newest: int | None) -> bool:
    """Read so many of the newest forecasts, or all; whether that reaches back to what is stored of every job."""
    oldest: dict[str, int] = {}
    now = time.time()
    for record in read_records(kafka, "forecasts", newest):
        try:
            issued = decode(Forecast, record.value, now)
        except MessageError:
            continue
        ours = issued.job in stored and RECORD_HEADER in record.headers and issued.step_s == core.step_s
        note = _read_note(record.headers[RECORD_HEADER]) if ours and issued.epoch in claims else None
        if note is None:
            continue  # of another server, or of nobody
        origin = origin_of(issued)
        core.newest_sent[issued.job] = max(core.newest_sent.get(issued.job, origin), origin)
        oldest[issued.job] = min(oldest.get(issued.job, origin), origin)
        if origin > stored[issued.job]:
            value = msgspec.structs.replace(note, message=record.value)
            core.closer.adopted.setdefault((issued.job, origin), value)
    return all(origin <= stored[job] + 1 for job, origin in oldest.items())


def _read_note(header: bytes | None) -> ForecastValue | None:
    """What a server noted of a forecast that it sent; None of what no server has written, as where there is nothing."""
    try:
        return decode_value(ForecastValue, header or b"")
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
