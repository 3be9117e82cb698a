"""Who serves, and until when: each server claims an epoch on `control`; one that sees a later claim leaves.

Forecasts carry the epoch: milliseconds of the claim's wall time, and always above the claim before, so that a later
server counts for more even where the broker was built anew and offsets begin again.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from configs.sections import Kafka
from pipelines.kafka.broker import Follower, Record, read_records
from pipelines.kafka.publisher import Publisher
from tidecast.messages import Control, MessageError, decode, encode

TOPIC = "control"
KEY = "serving:epoch"


class Claim:
    """One server's claim on the topic `control`, by which an older server sees that it must leave.

    Attributes:
        epoch: number in this server's forecasts: wall time of the claim in ms, above all claims before.
        epochs: this and every other claim that the topic holds.
    """

    def __init__(self, kafka: Kafka, publisher: Publisher, kept: int | None = None) -> None:
        """Publish a claim and wait until the broker has it (at most 30 s), or take up the claim of an earlier run.

        Args:
            kafka: connection settings.
            publisher: sends the claim.
            kept: epoch of the earlier run on the same store; it is used again if no other server has claimed since, so
                that replayed forecasts have the same bytes.

        Raises:
            BrokerError: the broker does not answer.
            kafka.errors.KafkaError: it does not take the claim, or not within 30 s.
        """
        now = time.time()
        claims = [(record.offset, epoch) for record in read_records(kafka, TOPIC) if (epoch := _epoch(record, now))]
        newest = max(claims, default=(-1, 0))
        if kept is None or kept != newest[1]:
            epoch = max(round(now * 1000), *(epoch + 1 for _, epoch in claims), 0)
            message = encode(Control(job="serving", wall_time=epoch / 1000))
            newest = int(publisher.send_bytes(TOPIC, KEY.encode(), message).get(timeout=30).offset), epoch
        self._offset, self.epoch = newest
        self.epochs = frozenset({self.epoch, *(epoch for _, epoch in claims)})
        self._claims = Follower(kafka, [TOPIC])

    def superseded(self) -> bool:
        """Return whether another server has claimed since this one, and this one must leave; does not wait."""
        now = time.time()
        return any(record.offset > self._offset and _epoch(record, now) for record in self._claims.poll(0))

    def close(self) -> None:
        """Close the consumer of `control`; the claim stays on the topic."""
        self._claims.close()


def _epoch(record: Record, now: float) -> int | None:
    """The epoch that a record claims; None of what is no claim."""
    if record.key != KEY:
        return None
    try:
        return round(decode(Control, record.value, now).wall_time * 1000)
    except MessageError:
        return None


@contextmanager
def stop_on_signals(stop: threading.Event) -> Iterator[None]:
    """Set the event on SIGTERM and ctrl-C while the `with` block runs; the handlers before are put back after it.

    Raises:
        ValueError: not called from the main thread.
    """
    before = {name: signal.signal(name, lambda *_: stop.set()) for name in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
