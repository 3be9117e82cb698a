"""Who decides from a checkpoint: one at a time. The next one gets warm beside it, and takes over once it has ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from configs.sections import Kafka
from pipelines.kafka.broker import Follower
from pipelines.kafka.claim import AUTOSCALER, Claim
from pipelines.kafka.connection import BrokerError, TopicError
from pipelines.kafka.publisher import Publisher
from pipelines.scale.beside import report
from pipelines.scale.other_autoscaler import LISTEN_S, AnotherAutoscalerError, first_job_heard, refuse_another
from pipelines.scale.remedies import SLOW_WORKER
from pipelines.spark.checkpoint.lock import CheckpointLock

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

TRIES = 5
"""Starts of a query at most, where Spark waits too shortly for its Python worker."""
LOOK_S = 0.2
"""Seconds between two looks whether whoever decides has ended."""
SLOW_S = 60.0
"""Seconds for a rehearsal's micro-batch, after which that is said, and the turn is looked for meanwhile."""
STILL_WAITS = (
    f"no micro-batch yet, after {SLOW_S:.0f} s; it is waited for. On a cluster this one needs as many cores as the "
    "other one has: where they are not to be had, end the other one, and this one takes over"
)
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

    def wait(self, stop: threading.Event, look: Callable[[], object] = bool) -> bool:
        """Wait until whoever decides from this checkpoint has ended; False where `stop` was set before.

        One that handed over is believed. Of one that was killed, whose JVM may outlive it, or that takes no lock, as
        earlier releases, nothing must have been heard for LISTEN_S (10 s). Then the topics are claimed.

        Args:
            stop: ends the wait.
            look: called a few times a second meanwhile.

        Raises:
            BrokerError: the broker does not answer.
            Exception: whatever `look` raises.
        """
        if self._others_end(stop, look):
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

    def _others_end(self, stop: threading.Event, look: Callable[[], object]) -> bool:
        with closing(Follower(self._kafka, ["heartbeats", "decisions"], start="latest")) as heard:
            heard_at = time.monotonic()
            while not stop.is_set():
                look()
                if (has_lock := self._lock.take()) and self._lock.handed_over:
                    return True
                if first_job_heard(self._kafka, heard, LOOK_S) is not None:
                    heard_at = time.monotonic()
                elif has_lock and time.monotonic() - heard_at > LISTEN_S:
                    return True
        return False


class WarmUp:
    """A query that decides for nobody, from its start until a micro-batch is done; tells what there is to say of it.

    Attributes:
        query: the one that was started last.
    """

    def __init__(self, rehearse: Callable[[], StreamingQuery]) -> None:
        """Start it."""
        self._rehearse, self._tries, self._began_s = rehearse, 1, time.monotonic()
        self._over = self._slow = False
        self.query = rehearse()

    def look(self) -> bool:
        """Return whether nothing more is to be waited for: it is ready, has failed, or takes longer than SLOW_S (60 s).

        Says each of them once. Where a Python worker is slow it is started again, TRIES times at most.

        Raises:
            Exception: whatever starting it raises.
        """
        if self._over:
            return True
        if self.query.lastProgress is not None:
            self._end("ready to take over, once the other one is ended")
        elif not self.query.isActive:
            failure = self.query.exception()
            if self._tries == TRIES or SLOW_WORKER not in str(failure):
                self._end(f"not ready: leave the other one running until this is mended: {failure}")
            else:
                self._tries += 1
                self.query = self._rehearse()
        elif not self._slow and time.monotonic() - self._began_s > SLOW_S:
            self._slow = True
            report([STILL_WAITS])
        return self._over or self._slow

    def _end(self, words: str) -> None:
        self._over = True
        report([words])


def stand_by(turn: Turn, stop: threading.Event, rehearse: Callable[[Path], StreamingQuery]) -> bool:
    """Rehearse beside the one that decides until the turn has come; False where `stop` was set before.

    Where the rehearsal fails, or takes longer than SLOW_S (60 s), that is said, and the turn is waited for all the
    same: if the other one ends, trying is better than that nobody decides.

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
        warm = WarmUp(partial(rehearse, Path(folder)))
        try:
            while not warm.look() and not stop.wait(LOOK_S):
                pass
            return turn.wait(stop, warm.look)
        finally:
            warm.query.stop()
