"""Events of the adverts job, sent as they happen, at a rate that may be changed."""

from __future__ import annotations

import json
import threading
import time
from contextlib import closing
from datetime import UTC, datetime
from types import TracebackType

import numpy as np

from configs.sections import Kafka
from pipelines.jobs.chains.adverts import ADVERTS, KINDS, AdvertEvent
from pipelines.kafka.publisher import Publisher

EVERY_S = 0.1


class AdvertFeed:
    """Sends events from a thread, from entry to exit; `events` are those that were sent."""

    def __init__(self, kafka: Kafka, rps: float, seed: int = 7) -> None:
        """Nothing is sent before entry.

        Args:
            kafka: the broker.
            rps: events per second; may be set while it sends.
            seed: of adverts and kinds.
        """
        self.rps, self.events = rps, list[AdvertEvent]()
        self._failure: Exception | None = None
        self._kafka, self._random, self._stop = kafka, np.random.default_rng(seed), threading.Event()
        self._thread = threading.Thread(target=self._run, name="adverts", daemon=True)

    def __enter__(self) -> AdvertFeed:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def end(self) -> list[AdvertEvent]:
        """Send no more, wait until all that was sent is acknowledged, and return it.

        Raises:
            BrokerError: as `check`.
        """
        self._stop.set()
        self._thread.join()
        self.check()
        return self.events

    def check(self) -> None:
        """Raise what has ended the sending, if anything has.

        Raises:
            BrokerError: an event was not taken.
        """
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            with closing(Publisher(self._kafka)) as publisher:
                self._send(publisher)
        except Exception as error:
            self._failure = error

    def _send(self, publisher: Publisher) -> None:
        owed, before = 0.0, time.monotonic()
        while not self._stop.wait(EVERY_S):
            now = time.monotonic()
            owed += self.rps * (now - before)
            before = now
            for _ in range(int(owed)):
                event = self._drawn()
                publisher.send_bytes("events", str(event.ad).encode(), encode_event(event))
                self.events.append(event)
            owed -= int(owed)

    def _drawn(self) -> AdvertEvent:
        ad, kind = int(self._random.integers(ADVERTS)), KINDS[int(self._random.integers(len(KINDS)))]
        return AdvertEvent(len(self.events), round(time.time(), 3), ad, kind)


def encode_event(event: AdvertEvent) -> bytes:
    """Return an event as it stands on the topic."""
    at = datetime.fromtimestamp(event.at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return json.dumps({**event._asdict(), "at": at, "user": "u", "page": "p"}).encode()
