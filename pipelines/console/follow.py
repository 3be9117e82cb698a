"""The one follower of the topics in the web process: keeps the read model, as old as a second at most."""

from __future__ import annotations

import logging
import operator
import threading
import time
from collections.abc import Iterable, Mapping
from enum import Enum

from configs.sections import Kafka
from pipelines.console.read.fold import ReadModel, fold
from pipelines.console.read.merged import MergedTopics
from pipelines.console.read.newest import fold_newest
from pipelines.kafka.broker import STUCK_S, Follower, Place, Record
from pipelines.kafka.connection import BrokerError
from pipelines.kafka.signing import SIGNED, Signer
from tidecast.messages import MessageError

log = logging.getLogger(__name__)

NEWEST: Mapping[str, int | None] = {
    "contracts": None, "control": None, "metrics": 3000, "heartbeats": 1000, "decisions": 1000, "outcomes": 500,
    "forecasts": 500, "replays": 500, "pools": 200, "rejects": 500,
}  # fmt: skip
"""Records at the end of each topic that make the first screen, None for all: the newest of each of 500 jobs."""
DEEP: Mapping[str, int | None] = {
    **NEWEST, "metrics": 400_000, "decisions": 20_000, "outcomes": 20_000, "replays": 50_000,
}  # fmt: skip
"""Those that make the hours before it, which come in later. A replay that runs says up to four a second, before which
lies the last word of one that is over; 50,000 take 2 s of a core."""
READING = "The topics are being read."
"""The problem of a model that is not there yet; pages ask again soon."""
WAIT_S, GATHER_S, AGAIN_S = 0.2, 0.25, 5.0
"""Longest wait for records; pause in which these gather, so that not each is asked for alone, of a busy job some 20 a
second; pause after the broker has not answered."""
QUIET_S = 10.0
"""Seconds without a record after which the broker is asked for its ends: a poll gives nothing where the broker is away,
as where nothing is new."""
FRESH_S = 1.0
"""Age of the ends that the hours before are read up to, so that their model knows no less than the first one."""
SENT = operator.attrgetter("timestamp")
"""Order of records of several topics."""
SHARE, AT_ONCE = 0.3, 500
"""Of the time that the hours before are read in, so that the pages of Airflow stay quick meanwhile; records without a
pause."""


class Depth(Enum):
    """How far back a thread begins to read: the newest records, or also those of the hours before."""

    NEWEST = "newest"
    HOURS = "hours"


BEGINNINGS = {Depth.NEWEST: NEWEST, Depth.HOURS: DEEP}
"""Records at the end of each topic from which it begins."""


class TopicsFollower:
    """Follows the topics in a thread of its own, begun by the first look; ends with the process.

    First the newest records are read, so that there is a screen within a second, then, without haste, those of the
    hours before: the model that they make takes the place of the first one.

    Attributes:
        problem: why there is no newer model, for a person; "" while there is one.
    """

    def __init__(self, kafka: Kafka) -> None:
        """Take the broker's settings; nothing is read yet."""
        self._kafka, self._signer = kafka, Signer.of(kafka)
        self._lock = threading.Lock()
        self._begun: set[Depth] = set()
        self._model, self._shown = ReadModel(), Depth.NEWEST
        self.problem = READING

    def look(self) -> ReadModel:
        """Return the newest model; the first call begins to follow."""
        self._begin(Depth.NEWEST)
        return self._model

    def _begin(self, depth: Depth) -> None:
        with self._lock:
            if depth in self._begun:
                return
            self._begun.add(depth)
        threading.Thread(target=self._run, args=(depth,), name="console", daemon=True).start()

    def _goes_on(self, depth: Depth) -> bool:
        """Whether a thread is still needed: that of the newest records until the model of the hours has taken over."""
        return depth is Depth.HOURS or self._shown is Depth.NEWEST

    def _run(self, depth: Depth) -> None:
        """Follow as long as that is needed; after a failure again from the start."""
        while self._goes_on(depth):
            try:
                self._follow(depth)
            except Exception as error:  # the pages say so, and stay as they were
                if (problem := f"The topics cannot be read: {error}") != self.problem:
                    log.warning("the console tries again every %g s: %s", AGAIN_S, problem)
                self.problem = problem
                self._give_way()
                time.sleep(AGAIN_S)

    def _give_way(self) -> None:
        """Let the newest records be read first again, where the model of the hours was the one that is shown."""
        with self._lock:
            if self._shown is Depth.HOURS:
                self._shown = Depth.NEWEST
                self._begun.discard(Depth.NEWEST)

    def _follow(self, depth: Depth) -> None:
        newest = BEGINNINGS[depth]
        follower = Follower(self._kafka, list(newest))
        try:
            ends = follower.seek_to_newest(newest)
            read = self._read_hours if depth is Depth.HOURS else self._read_newest
            model, answered_at = read(follower, ends), time.monotonic()
            while self._goes_on(depth):
                self._publish(model, depth)
                if records := follower.poll(WAIT_S):
                    answered_at = time.monotonic()
                elif time.monotonic() - answered_at > QUIET_S:
                    follower.ends()
                    answered_at = time.monotonic()
                model = fold(model, self._in_order(records), time.time())
                time.sleep(GATHER_S)
        finally:
            follower.close()

    def _read_newest(self, follower: Follower, ends: Mapping[Place, int]) -> ReadModel:
        """The model of what lies before these ends, of which the newest alone is looked at."""
        return fold_newest(self._in_order(follower.read_until(ends)), time.time())

    def _read_hours(self, follower: Follower, ends: Mapping[Place, int]) -> ReadModel:
        """The model of all up to now, read without haste.

        Raises:
            BrokerError: partitions that are not at their ends gave nothing for STUCK_S; what the others give would be
                held back for them for ever.
        """
        model, merged, asked_at = ReadModel(), MergedTopics(), time.monotonic()
        unread, until_s = set(ends), time.monotonic() + STUCK_S
        while True:
            began = time.thread_time()
            read, waited = follower.poll(WAIT_S), unread
            unread = follower.unread(ends)
            due = merged.add(self._in_order(read), unread)  # many at once, where they waited for another topic
            for first in range(0, max(len(due), 1), AT_ONCE):
                model = fold(model, due[first : first + AT_ONCE], time.time())
                time.sleep((time.thread_time() - began) * (1 / SHARE - 1))
                began = time.thread_time()
            if not waited.isdisjoint((one.topic, one.partition) for one in read):
                until_s = time.monotonic() + STUCK_S
            elif unread and time.monotonic() > until_s:
                topics = ", ".join(repr(topic) for topic in sorted({topic for topic, _ in unread}))
                raise BrokerError(f"topic {topics} at {self._kafka.bootstrap}: nothing more came for {STUCK_S:g} s")
            if not unread:
                if time.monotonic() - asked_at < FRESH_S:
                    return model
                ends, asked_at = follower.ends(), time.monotonic()  # records came meanwhile
                unread, until_s = set(ends), asked_at + STUCK_S

    def _in_order(self, records: Iterable[Record]) -> list[Record]:
        return sorted((record for record in records if self._holds(record)), key=SENT)

    def _publish(self, model: ReadModel, depth: Depth) -> None:
        with self._lock:
            if self._goes_on(depth):
                self._model, self._shown, self.problem = model, depth, ""
        self._begin(Depth.HOURS)

    def _holds(self, record: Record) -> bool:
        """Whether the job's agent would take it, as far as its signature goes."""
        if record.topic in SIGNED:
            try:
                self._signer.check_record(record, (record.key or "").partition(":")[0])
            except MessageError:
                return False
        return True
