"""The serving loop: one event at a time; samples in by socket and log, forecasts out, swaps between two events."""

from __future__ import annotations

import os
import selectors
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.kafka.connection import BrokerError
from pipelines.serve.fast.core import Core, IncomingSample
from pipelines.serve.fast.reading import answer_request, refusal
from pipelines.serve.fast.swapping import swap_model
from pipelines.serve.models.loader import Loader
from pipelines.serve.net.socket_server import BATCH, SocketServer
from pipelines.serve.net.wire import Answer
from pipelines.serve.step.records import STATUS, Status, encode_value
from pipelines.store import BadInput, Conflict, Corrupt, Fenced, MustReopen, StoreError
from tidecast.messages import encode

if TYPE_CHECKING:
    from pipelines.kafka.librdkafka import Sender
    from pipelines.serve.fast.log_feed import LogFeed

HOUSEKEEPING_S = 0.1
"""Wall seconds between two rounds of housekeeping."""
RETRY_S = 1.0
"""Wall seconds before log and champions are tried again after the store refused."""
SET_S = 1.0
"""Seconds by which the wall clock goes another way than the store's before that is told."""
LASTING = (MustReopen, Fenced, Corrupt)
"""What no trying again cures: it ends the process, and the next run opens the store, or rebuilds it from the log."""
REFUSED = (BadInput, Conflict)
"""What the store never takes, whereas it takes everything else."""


class Loop:
    """The serving loop: sockets, log, sending, model swaps and housekeeping in turn; `run_once` is one turn."""

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
        self._wake_up = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._selector.register(self._wake_up, selectors.EVENT_READ, self._woken)
        self._socket_server = SocketServer(
            path, self._selector, self._process_puts, lambda request: answer_request(core, request)
        )
        self._housekeeping = self._log_from = self._swap_from = 0.0
        self._status_trouble, self._ahead_s = "", 0.0
        self._damage: Corrupt | None = None
        self._told: set[type[StoreError]] = set()
        """Why samples were refused that the store never takes."""
        self._turn = threading.Lock()
        """Held by who works on the core: this loop, or for a moment the thread that reads the log."""
        self._wanted = True
        """Whether the loop waits for its turn; until its first round nobody else has one."""

    def wake(self) -> None:
        """Make a waiting `run_once` go on at once; may be called from any thread."""
        os.eventfd_write(self._wake_up, 1)

    def run_once(self, wait_s: float = HOUSEKEEPING_S) -> None:
        """Wait for sockets or the log, then do one turn of everything that is due.

        Requests are answered, up to 32 records of the log are processed, the outbox is sent, prepared models are
        swapped in (each waits for the disk); every 0.1 s the status is stored. What a store that refuses says is
        printed, and log and swaps are tried again after 1 s, unless only opening the store anew helps. What it never
        takes, or holds with other bytes, is left out: the model, or the sample, which is refused.

        Args:
            wait_s: longest wait, wall seconds.

        Raises:
            MustReopen, Fenced, Corrupt: a write of the store failed half-way, another process has opened it, or it is
                damaged.
            msgspec.DecodeError, MessageError: a stored value cannot be decoded, or a forecast not encoded.
            confluent_kafka.KafkaException: the client refuses a record, e.g. as too large.
            Exception: whatever ended the thread that reads the log.
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
                self._socket_server.answer_frames(frames)
            self._process_log()
            self._send()
            if self.loader is not None:
                self._swap_models(self.loader)
            if time.monotonic() >= self._housekeeping:
                self._housekeeping = time.monotonic() + HOUSEKEEPING_S
                self._store_status()
                self._socket_server.resume()

    def process_log(self) -> None:
        """Process up to 32 records of the log and send their forecasts, if the loop sleeps; else only wake the loop.

        For the thread that has read them; it waits for no lock. A store or sender's queue that refuses is printed, not
        raised, unless only opening the store anew helps.

        Raises:
            MustReopen, Fenced, Corrupt: as `run_once`.
            msgspec.DecodeError, MessageError: a stored value cannot be decoded, or a forecast not encoded.
            confluent_kafka.KafkaException: the client refuses a record, e.g. as too large.
        """
        if self._wanted or not self._turn.acquire(blocking=False):
            self.wake()
            return
        try:
            self._process_log()
            self._send()
        finally:
            self._turn.release()

    def stop_turns(self) -> None:
        """Wait for the present turn to end, and let no thread process anything any more."""
        self._turn.acquire()

    def close(self) -> None:
        """Cut off every client, remove the socket's path, and close what the loop waits on."""
        self._socket_server.close()
        self._selector.close()
        os.close(self._wake_up)

    def _woken(self, mask: int) -> Sequence[tuple[object, bytes]]:
        os.eventfd_read(self._wake_up)
        return []

    def _process_puts(self, samples: Sequence[bytes]) -> Sequence[Answer]:
        try:
            return self._process([IncomingSample(sample) for sample in samples])
        except StoreError as error:  # one that lasts ends the loop when the status is stored
            if isinstance(error, Corrupt):
                self._damage = error  # which need not touch the status
            return [refusal(error)] * len(samples)

    def _process(self, samples: Sequence[IncomingSample]) -> Sequence[Answer]:
        """Process samples together; one by one where the store takes one of them never, which alone is then refused."""
        try:
            return self.core.process(samples)
        except REFUSED as error:
            if len(samples) > 1:
                return [answer for one in samples for answer in self._process([one])]
            if type(error) not in self._told:  # once: the next one of the job is likely to be its like
                print(f"serving: a sample is refused: {error}", flush=True)
                self._told.add(type(error))
            return self.core.process([samples[0]._replace(refused=refusal(error))])

    def _process_log(self) -> None:
        """Process what waits of the log; what the store has no room for waits on, and the cursor with it."""
        if self.log is None or not len(self.log) or time.monotonic() < self._log_from:
            return
        samples = self.log.peek(BATCH)
        try:
            self._process(samples)
        except LASTING:
            raise
        except StoreError as error:
            print(f"serving: {error}; trying again", flush=True)
            self._log_from = time.monotonic() + RETRY_S
            return
        self.log.remove(len(samples))

    def _send(self) -> None:
        if self.sender is None:
            return
        try:
            self.core.outbox.send(self.sender)
            for beat in self.core.heartbeats:
                if not self.core.outbox.holds_forecast(beat.job):  # what waits of other jobs is no matter of this one
                    self.sender.send("heartbeats", beat.job, encode(beat), ())
        except BrokerError as error:
            self.core.counts["broker full"] += 1
            if self.core.counts["broker full"] == 1:
                print(f"serving: {error}", flush=True)
        self.core.heartbeats.clear()
        self.sender.poll()

    def _swap_models(self, loader: Loader) -> None:
        while loader.ready and time.monotonic() >= self._swap_from:
            ready = loader.ready[0]
            try:
                deployment = swap_model(self.core, ready)
            except LASTING:
                raise
            except REFUSED as error:  # for good: the swaps behind it go on
                loader.ready.popleft()
                refused = f"version {ready.version} is refused: {error} The present champion stays"
                print(f"serving {ready.job}: {refused}", flush=True)
                continue
            except StoreError as error:  # the loader offers a version once: it waits for room like the log
                print(f"serving {ready.job}: {error}; the present champion stays, trying again", flush=True)
                self._swap_from = time.monotonic() + RETRY_S
                return
            loader.ready.popleft()
            champion = f"version {deployment.model_version} ({ready.model_set.forecaster.kind})"
            print(f"serving {ready.job}: champion is {champion} from window {deployment.first_origin} on", flush=True)

    def _store_status(self) -> None:
        if self.log is not None and (failure := self.log.failure) is not None:
            raise failure  # an outage is waited out; this is another matter, and the next run begins afresh
        if damage := self._damage or (self.loader and self.loader.damage):
            raise damage
        core, ahead_s = self.core, self.core.store.ahead_s()
        if abs(ahead_s - self._ahead_s) > SET_S:  # else it stays: a reader that asks again is to see the same
            self._ahead_s = ahead_s
        known = core.server.epoch, dict(core.counts), len(core.outbox), self._ahead_s
        status = Status(time.time(), os.getpid(), *known)
        try:
            core.store.set_meta(STATUS, encode_value(status))
            self._status_trouble = ""
        except LASTING:
            raise
        except StoreError as error:
            if str(error) != self._status_trouble:  # once, not ten times a second
                print(f"serving: {error}", flush=True)
            self._status_trouble = str(error)
