"""Who decides from a checkpoint: one at a time. The next one gets warm beside it, and takes over once it has ended."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from configs.sections import Kafka
from pipelines.kafka.broker import Follower
from pipelines.scale.alone import LISTEN_S, AnotherAutoscalerError, refuse_another, spoken
from pipelines.scale.beside import report

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

LOOK_S = 0.2
"""Seconds between two looks whether whoever decides has ended."""
WRITTEN_S = 30.0
"""Seconds within which whoever decides ends a micro-batch, on a busy computer, too."""


class Turn:
    """One process's place at a checkpoint; whose turn it is has the lock of the file `<checkpoint>.lock`.

    The file holds that one's process id, and nothing once its query has ended in order.
    """

    def __init__(self, checkpoint: Path, kafka: Kafka) -> None:
        """Take the lock if nobody has it.

        Raises:
            OSError: the file cannot be made, or its file system has no locks.
        """
        checkpoint.parent.mkdir(parents=True, exist_ok=True)
        self._commits, self._kafka = checkpoint / "commits", kafka
        self._file = checkpoint.with_name(f"{checkpoint.name}.lock").open("a+")
        self._has_waited = self._handed_over = False
        self._has_lock = self._take()

    def has_come(self) -> bool:
        """Return whether nobody decides; False: somebody does from this checkpoint. Listens for up to LISTEN_S (10 s).

        Raises:
            AnotherAutoscalerError: somebody decides on these topics from another checkpoint.
            BrokerError, kafka.errors.KafkaError: as `refuse_another`.
        """
        if not self._has_lock:
            return False
        try:
            refuse_another(self._kafka)
        except AnotherAutoscalerError:
            if not self._written_lately():
                raise
            return False
        return True

    def wait(self, stop: threading.Event) -> bool:
        """Wait until whoever decides from this checkpoint has ended; False where `stop` was set before.

        One that handed over is believed. Of one that was killed, whose JVM may outlive it, or that takes no lock, as
        earlier releases, nothing must have been heard for LISTEN_S (10 s).

        Raises:
            BrokerError, kafka.errors.KafkaError: the broker does not answer.
        """
        with closing(Follower(self._kafka, ["heartbeats", "decisions"], start="latest")) as heard:
            heard_at = time.monotonic()
            while not stop.is_set():
                self._has_lock = self._has_lock or self._take()
                if self._has_lock and self._handed_over:
                    return True
                if spoken(heard, LOOK_S) is not None:
                    heard_at = time.monotonic()
                elif self._has_lock and time.monotonic() - heard_at > LISTEN_S:
                    return True
        return False

    def hand_over(self) -> None:
        """Let the next one decide; the query has ended."""
        self._file.truncate(0)
        self._file.close()

    def _take(self) -> bool:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._has_waited = True
            return False
        self._file.seek(0)
        self._handed_over = self._has_waited and not self._file.read()
        self._file.truncate(0)
        self._file.write(f"{os.getpid()}\n")
        self._file.flush()
        return True

    def _written_lately(self) -> bool:
        try:
            return abs(time.time() - self._commits.stat().st_mtime) < WRITTEN_S
        except FileNotFoundError:
            return False


def stand_by(turn: Turn, stop: threading.Event, rehearse: Callable[[Path], StreamingQuery]) -> bool:
    """Rehearse beside the one that decides until the turn has come; False where `stop` was set before.

    Args:
        turn: that has not come.
        stop: ends the wait.
        rehearse: starts a query that keeps its state in a folder, and whose decisions go nowhere.

    Raises:
        BrokerError, kafka.errors.KafkaError: the broker does not answer.
        Exception: whatever `rehearse` raises.
    """
    report(["another one decides from this checkpoint; getting ready beside it"])
    with TemporaryDirectory(prefix="tidecast-rehearsal-", ignore_cleanup_errors=True) as folder:
        query = rehearse(Path(folder))
        try:
            while query.isActive and query.lastProgress is None and not stop.wait(LOOK_S):
                pass
            report(["ready to take over, once the other one is ended"])
            return turn.wait(stop)
        finally:
            query.stop()
