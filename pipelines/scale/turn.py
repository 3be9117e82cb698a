"""Who decides from a checkpoint: one at a time. The next one gets warm beside it, and takes over once it has ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from configs.sections import Kafka
from pipelines.kafka.broker import Follower
from pipelines.kafka.claim import AUTOSCALER, Claim
from pipelines.kafka.connection import BrokerError, TopicError
from pipelines.kafka.publisher import Publisher
from pipelines.scale.alone import LISTEN_S, AnotherAutoscalerError, first_job_heard, refuse_another
from pipelines.scale.beside import report
from pipelines.scale.remedies import SLOW_WORKER
from pipelines.spark.checkpoint.lock import CheckpointLock

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

TRIES = 5
"""Starts of a query at most, where Spark waits too shortly for its Python worker."""
LOOK_S = 0.2
"""Seconds between two looks whether whoever decides has ended."""
WRITTEN_S = 30.0
"""Seconds within which whoever decides ends a micro-batch, on a busy computer, too."""


class Turn:
    """One process's place at the autoscaler's checkpoint, and on its topics.

    Attributes:
        lost: whether another autoscaler has claimed the topics since this one's turn came: from another checkpoint, and
            while no job ran, for which this one would have been heard.
    """

    def __init__(self, checkpoint: Path, kafka: Kafka) -> None:
        """Take the checkpoint's lock if nobody has it.

        Raises:
            OSError: the file cannot be made, or its file system has no locks.
        """
        self._lock, self._kafka, self.lost = CheckpointLock(checkpoint), kafka, False
        self._claim: Claim | None = None

    def has_come(self) -> bool:
        """Return whether nobody decides; False: somebody does from this checkpoint. Listens for up to LISTEN_S (10 s).

        Where nobody does, the topics are claimed: one that said nothing, as none of its jobs runs, sees it and leaves.

        Raises:
            AnotherAutoscalerError: somebody decides on these topics from another checkpoint.
            BrokerError: as `refuse_another`; or the claim is not taken within 30 s.
        """
        if not self._lock.take():
            return False
        try:
            refuse_another(self._kafka)
        except AnotherAutoscalerError:
            if not self._lock.written_lately(WRITTEN_S):
                raise
            return False
        self._claim_topics()
        return True

    def wait(self, stop: threading.Event) -> bool:
        """Wait until whoever decides from this checkpoint has ended; False where `stop` was set before.

        One that handed over is believed. Of one that was killed, whose JVM may outlive it, or that takes no lock, as
        earlier releases, nothing must have been heard for LISTEN_S (10 s). Then the topics are claimed.

        Raises:
            BrokerError: the broker does not answer.
        """
        if self._others_end(stop):
            self._claim_topics()
            return True
        return False

    def look(self) -> list[str]:
        """Look whether another autoscaler has claimed the topics; returns what there is to say, does not wait."""
        if self._claim is None or self.lost or not self._claim.superseded():
            return []
        self.lost = True
        return [f"another autoscaler has begun on the topics {self._kafka.prefix}* at {self._kafka.bootstrap}"]

    def hand_over(self) -> None:
        """Let the next one decide; the query has ended."""
        self._lock.hand_over()
        if self._claim is not None:
            self._claim.close()

    def _claim_topics(self) -> None:
        publisher = Publisher(self._kafka)
        try:
            self._claim = Claim(self._kafka, publisher, AUTOSCALER)
        except TopicError as error:  # of a user with the rights of an earlier release
            report([f"another autoscaler on these topics may go unseen, as `control` is not allowed: {error}"])
        finally:
            with suppress(BrokerError):  # what it did not take was said already
                publisher.close()

    def _others_end(self, stop: threading.Event) -> bool:
        with closing(Follower(self._kafka, ["heartbeats", "decisions"], start="latest")) as heard:
            heard_at = time.monotonic()
            while not stop.is_set():
                if (has_lock := self._lock.take()) and self._lock.handed_over:
                    return True
                if first_job_heard(self._kafka, heard, LOOK_S) is not None:
                    heard_at = time.monotonic()
                elif has_lock and time.monotonic() - heard_at > LISTEN_S:
                    return True
        return False


def stand_by(turn: Turn, stop: threading.Event, rehearse: Callable[[Path], StreamingQuery]) -> bool:
    """Rehearse beside the one that decides until the turn has come; False where `stop` was set before.

    Where the rehearsal fails that is said, and the turn is waited for all the same: if the other one dies, trying is
    better than that nobody decides.

    Args:
        turn: that has not come.
        stop: ends the wait.
        rehearse: starts a query that keeps its state in a folder, and whose decisions go nowhere.

    Raises:
        BrokerError: the broker does not answer.
        Exception: whatever `rehearse` raises.
    """
    report(["another one decides from this checkpoint; getting ready beside it"])
    with TemporaryDirectory(prefix="tidecast-rehearsal-", ignore_cleanup_errors=True) as folder:
        query = _rehearsed(rehearse, Path(folder), stop)
        try:
            if query.lastProgress is not None:
                report(["ready to take over, once the other one is ended"])
            elif not stop.is_set():
                report([f"not ready: leave the other one running until this is mended: {query.exception()}"])
            return turn.wait(stop)
        finally:
            query.stop()


def _rehearsed(rehearse: Callable[[Path], StreamingQuery], folder: Path, stop: threading.Event) -> StreamingQuery:
    """Rehearse until a micro-batch is done, `stop` is set, or it fails; TRIES times where a Python worker is slow."""
    for tries in range(1, TRIES + 1):
        query = rehearse(folder)
        while query.isActive and query.lastProgress is None and not stop.wait(LOOK_S):
            pass
        if query.isActive or tries == TRIES or SLOW_WORKER not in str(query.exception()):
            break
    return query
