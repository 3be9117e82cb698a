"""The serving loop: one event at a time; samples in by socket and log, forecasts out, swaps between two events."""

from __future__ import annotations

import gc
import os
import selectors
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.kafka.broker import BrokerError
from pipelines.serve.fast.core import Arrival, Core
from pipelines.serve.fast.reading import answer, refusal
from pipelines.serve.fast.swapping import swap
from pipelines.serve.models.loader import Loader
from pipelines.serve.net.socket_server import BATCH, SocketServer
from pipelines.serve.net.wire import Answer
from pipelines.serve.step.records import STATUS, Status, packed
from pipelines.store import StoreError
from tidecast.messages import encode

if TYPE_CHECKING:
    from pipelines.kafka.librdkafka import Sender
    from pipelines.serve.fast.log_feed import LogFeed

EVERY_S = 0.1
"""Wall seconds between two rounds of housekeeping."""
FULL_S = 1.0
"""Wall seconds before log and champions are tried again after the store refused."""


class Loop:
    """The serving loop: sockets, log, sending, model swaps and housekeeping in turn; `round` is one turn."""

    def __init__(self, core: Core, path: Path) -> None:
        """Open the Unix socket at `path`; log, sender and loader are set later where there are any.

        Raises:
            SocketError: the path is too long, or a server answers there.
            OSError: it cannot be opened for another reason.
        """
        self.core = core
        self.log: LogFeed | None = None
        self.sender: Sender | None = None
        self.loader: Loader | None = None
        self._selector = selectors.DefaultSelector()
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._selector.register(self._bell, selectors.EVENT_READ, self._heard)
        self._door = SocketServer(path, self._selector, self._puts, lambda request: answer(core, request))
        self._housekeeping = self._log_from = self._swap_from = 0.0
        self._turn = threading.Lock()
        """Held by who works on the core: this loop, or for a moment the thread that reads the log."""
        self._wanted = True
        """Whether the loop waits for its turn; until its first round nobody else has one."""

    def wake(self) -> None:
        """Make a waiting `round` go on at once; may be called from any thread."""
        os.eventfd_write(self._bell, 1)

    def round(self, wait_s: float = EVERY_S) -> None:
        """Wait up to `wait_s` wall seconds for sockets or the log, then do one turn of everything that is due.

        Requests are answered, up to 32 records of the log are taken, the outbox is sent, prepared models are swapped
        in; every 0.1 s the status is stored. A store that refuses is printed and tried again after 1 s.

        Raises:
            Exception: whatever ended the thread that reads the log, or what a new model raised when it was swapped in.
        """
        busy = self.log is not None and len(self.log) > 0 and time.monotonic() >= self._log_from
        ready = self._selector.select(0 if busy else wait_s)
        self._wanted = True
        with self._turn:
            self._wanted = False
            frames = []
            for key, mask in ready:
                frames += key.data(mask)
            if frames:
                self._door.answer(frames)
            self._follow()
            self._send()
            if self.loader is not None:
                self._swap(self.loader)
            if time.monotonic() >= self._housekeeping:
                self._housekeeping = time.monotonic() + EVERY_S
                self._note()
                self._door.resume()

    def came(self) -> None:
        """Take and send what has come from the log, in the calling thread if the loop sleeps; else only wake the loop.

        Called by the thread that has read it, because waking another thread takes about as long as a forecast.
        """
        if self._wanted or not self._turn.acquire(blocking=False):
            self.wake()
            return
        try:
            self._follow()
            self._send()
        finally:
            self._turn.release()

    def rest(self) -> None:
        """Wait for the present turn to end, and let no thread work on the core any more."""
        self._turn.acquire()

    def close(self) -> None:
        """Cut off every client, remove the socket's path, and close what the loop waits on."""
        self._door.close()
        self._selector.close()
        os.close(self._bell)

    def _heard(self, mask: int) -> Sequence[tuple[object, bytes]]:
        os.eventfd_read(self._bell)
        return []

    def _puts(self, samples: Sequence[bytes]) -> Sequence[Answer]:
        try:
            return self.core.take([Arrival(sample) for sample in samples])
        except StoreError as error:
            return [refusal(error)] * len(samples)

    def _follow(self) -> None:
        """Take what waits of the log; what the store has no room for waits on, and the cursor with it."""
        if self.log is None or not len(self.log) or time.monotonic() < self._log_from:
            return
        arrivals = self.log.arrivals(BATCH)
        try:
            self.core.take(arrivals)
        except StoreError as error:
            print(f"serving: {error}; trying again", flush=True)
            self._log_from = time.monotonic() + FULL_S
            return
        self.log.taken(len(arrivals))

    def _send(self) -> None:
        if self.sender is None:
            return
        try:
            self.core.outbox.send(self.sender)
            if not len(self.core.outbox):  # one would vouch for a forecast that was not yet sent
                for beat in self.core.heartbeats:
                    self.sender.send("heartbeats", beat.job, encode(beat), ())
        except BrokerError as error:
            self.core.counts["broker full"] += 1
            if self.core.counts["broker full"] == 1:
                print(f"serving: {error}", flush=True)
        self.core.heartbeats.clear()
        self.sender.poll()

    def _swap(self, loader: Loader) -> None:
        while loader.ready and time.monotonic() >= self._swap_from:
            ready = loader.ready[0]
            try:
                made = swap(self.core, ready)
            except StoreError as error:  # the loader offers a version once: it waits for room like the log
                print(f"serving {ready.job}: {error}; the present champion stays, trying again", flush=True)
                self._swap_from = time.monotonic() + FULL_S
                return
            loader.ready.popleft()
            kind = ready.made.forecaster.kind
            what = f"champion is version {made.model_version} ({kind}) from window {made.first_origin} on"
            print(f"serving {ready.job}: {what}", flush=True)
            gc.freeze()  # a model is for long: the collector need not look at it again

    def _note(self) -> None:
        if self.log is not None and (failure := self.log.failure) is not None:
            raise failure  # an outage is waited out; this is another matter, and the next run begins afresh
        core = self.core
        said = Status(time.time(), os.getpid(), core.serving.epoch, dict(core.counts), len(core.outbox))
        try:
            core.store.set_meta(STATUS, packed(said))
        except StoreError as error:
            print(f"serving: {error}", flush=True)
