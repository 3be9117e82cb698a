"""Records of a chain's source, drawn and sent as they are made, at a rate that may be changed."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from types import TracebackType
from typing import Generic

import numpy as np

from configs.sections import Kafka
from pipelines.jobs.chains.truth import ChainRecord, R
from pipelines.kafka.publisher import Publisher

EVERY_S = 0.1


class ChainFeed(Generic[R]):
    """Sends a chain's records from a thread, from entry to exit; `events` are those that were sent."""

    def __init__(
        self, kafka: Kafka, topic: str, draw: Callable[[int, float, np.random.Generator], R], rps: float, seed: int = 7
    ) -> None:
        """Nothing is sent before entry.

        Args:
            kafka: the broker.
            topic: of the chain's source.
            draw: from number, time and chance to a record.
            rps: records per second; may be set while it sends.
            seed: of what is drawn.
        """
        self.rps, self.events = rps, list[R]()
        self._failure: Exception | None = None
        self._kafka, self._topic, self._draw = kafka, topic, draw
        self._random, self._stop = np.random.default_rng(seed), threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"feed of {topic}", daemon=True)

    def __enter__(self) -> ChainFeed[R]:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def end(self) -> list[R]:
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
            BrokerError: a record was not taken.
        """
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            with closing(Publisher(self._kafka, enable_idempotence=True)) as publisher:  # each counts, once
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
                event = self._draw(len(self.events), round(time.time(), 3), self._random)
                publisher.send_bytes(self._topic, str(event.seq).encode(), encode_event(event))
                self.events.append(event)
            owed -= int(owed)


def encode_event(event: ChainRecord) -> bytes:
    """Return a record as it stands on the topic."""
    at = datetime.fromtimestamp(event.at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return json.dumps({**event._asdict(), "at": at}).encode()
