"""The thread that follows the topics, and what it knows of every job with a contract."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any

from configs.contract import Contract
from configs.sections import Kafka
from models.alerts.followed import STRANGE, Followed, take
from models.pool.state import PoolState, with_pool
from pipelines.kafka.broker import Follower, Place, Record
from pipelines.kafka.connection import TopicError
from tidecast.messages import (
    Decision,
    Forecast,
    Heartbeat,
    MetricSample,
    Outcome,
    Reject,
    decode,
    decode_keyed,
)

_KINDS: dict[str, Any] = {
    "decisions": Decision, "forecasts": Forecast, "metrics": MetricSample, "heartbeats": Heartbeat, "outcomes": Outcome,
}  # fmt: skip
BACK_S = {
    "decisions": 86_400.0, "forecasts": 86_400.0, "outcomes": 0.0, "rejects": 0.0, "pools": 0.0,
    "heartbeats": 3600.0, "metrics": 3600.0,
}  # fmt: skip
"""Seconds that are read back at the start: a decision may stand for hours, the long window is an hour of a week."""
AGAIN_S, TOPIC_AGAIN_S, POLL_S = 5.0, 30.0, 0.2
"""Seconds until the broker is tried again, and a topic of it that could not be read; longest wait for metrics."""
MOST_S = 10.0
"""Most seconds that reading what was kept of decisions may take."""
_WITHOUT = "What it tells is not known; the rest goes on."
_REFUSING = ("autoscaler", "serving")


class FollowedTopics:
    """Follows the topics in a thread, and holds what is known; records that cannot be accepted are left out.

    A topic that cannot be read leaves the others as they are. Where the broker was lost, each is gone on with at its
    offset, so that no record is taken twice, whatever clocks say.

    Attributes:
        caught_up: whether what was kept of metrics has been read: until then the newest one known is an old one.
        unread: topics that cannot be read now, though the broker answers.
    """

    def __init__(
        self, kafka: Kafka, contracts: Callable[[], Mapping[str, Contract]], report: Callable[[str, str], None]
    ) -> None:
        """Prepare to follow.

        Args:
            kafka: the broker, its security and the topics' prefix.
            contracts: returns the contracts of the jobs that are followed, as they are now.
            report: called with "topics", or "topic " and its name, and what is wrong; "" once nothing is.
        """
        self._kafka, self._contracts, self._report = kafka, contracts, report
        self._lock = threading.Lock()
        self._jobs: dict[str, Followed] = {}
        self._pools: Mapping[str, PoolState] = {}
        self._refused = Counter[str]()
        self._followers: dict[str, Follower] = {}
        self._kept: dict[str, dict[Place, int]] = {}  # where what was kept of a topic ends
        self._next: dict[Place, int] = {}
        self._counted: dict[Place, int] = {}  # from which offset on records are counted
        self.caught_up, self._behind_at = False, time.monotonic()
        self.unread: frozenset[str] = frozenset()

    @property
    def behind_s(self) -> float:
        """Seconds for which what was kept of metrics has not been read; 0 where it has."""
        return 0.0 if self.caught_up else time.monotonic() - self._behind_at

    def known(self, jobs: Collection[str]) -> tuple[dict[str, Followed], dict[str, int]]:
        """Return what is known of these jobs, of others nothing is kept; and refused records by who refused them."""
        with self._lock:
            self._jobs = {job: known for job, known in self._jobs.items() if job in jobs}
            return dict(self._jobs), dict(self._refused)

    @property
    def pools(self) -> Mapping[str, PoolState]:
        """How each pool stands, by name, as the autoscaler said it last."""
        return self._pools

    def run(self, stop: threading.Event) -> None:
        """Follow until `stop` is set; where the broker does not answer, or has no topics yet, it is tried again."""
        while not stop.is_set():
            try:
                self._open()
                self._report("topics", "")
                self._follow(stop)
            except Exception as error:  # BrokerError, and whatever the client raises
                self._report("topics", f"{error}")
            for follower in self._followers.values():
                with suppress(Exception):
                    follower.close()
            self._followers = {}
            stop.wait(AGAIN_S)

    def _open(self) -> None:
        """Open the topics that are not followed.

        Raises:
            TopicError: none can be read.
            Exception: the broker does not answer.
        """
        wrong: dict[str, TopicError] = {}
        for topic in [*BACK_S]:
            if topic in self._followers:
                continue
            try:
                self._open_topic(topic)
            except TopicError as error:
                wrong[topic] = error
        if wrong and not self._followers:
            raise next(iter(wrong.values()))
        for topic in BACK_S:
            self._report(f"topic {topic}", f"{wrong[topic]} {_WITHOUT}" if topic in wrong else "")
        self.unread = frozenset(wrong)

    def _open_topic(self, topic: str) -> None:
        follower = Follower(self._kafka, [topic])
        try:
            ends = follower.ends()
            if BACK_S[topic]:
                follower.seek_to_time(time.time() - BACK_S[topic])
            else:
                follower.seek(ends)
            # One that ends before where it was left was made anew.
            follower.seek(
                {place: self._next[place] for place, end in ends.items() if self._next.get(place, end + 1) <= end}
            )
            self._next |= follower.positions()
        except BaseException:
            follower.close()
            raise
        self._counted |= {place: min(self._counted.get(place, end), end) for place, end in ends.items()}
        self._followers[topic], self._kept[topic] = follower, ends

    def _follow(self, stop: threading.Event) -> None:
        self.caught_up, self._behind_at = False, time.monotonic()
        until = time.monotonic() + MOST_S  # decisions first: they say which late seconds are counted already
        while not self._has_read("decisions") and time.monotonic() < until and not stop.is_set():
            self.add(self._poll("decisions", POLL_S))
        again = time.monotonic() + TOPIC_AGAIN_S
        while not stop.is_set():
            if "metrics" not in self._followers:
                stop.wait(POLL_S)
            self.add([one for topic in BACK_S for one in self._poll(topic, POLL_S if topic == "metrics" else 0.0)])
            self.caught_up = self.caught_up or (self._has_read("metrics") and self._has_read("heartbeats"))
            if self.unread and time.monotonic() > again:
                self._open()
                again = time.monotonic() + TOPIC_AGAIN_S

    def _poll(self, topic: str, wait_s: float) -> Collection[Record]:
        """New records of a topic; of one that must not be read any more none, until it is opened again."""
        if (follower := self._followers.get(topic)) is None:
            return ()
        try:
            records = follower.poll(wait_s)
            self._next |= follower.positions()
        except TopicError as error:
            self._report(f"topic {topic}", f"{error} {_WITHOUT}")
            del self._followers[topic]
            follower.close()
            self.unread |= {topic}
            return ()
        return records

    def _has_read(self, topic: str) -> bool:
        """Whether all that was kept of a topic when it was opened has been read, or it cannot be."""
        kept = self._kept[topic] if topic in self._followers else {}
        return all(self._next.get(place, -1) >= end for place, end in kept.items())

    def add(self, records: Collection[Record]) -> None:
        """Take records into what is known; also what cannot be accepted of one job leaves the others as they are."""
        contracts = self._contracts()
        with self._lock:
            for record in records:
                try:
                    self._add(record, contracts)
                except STRANGE:  # a MessageError, too; whoever acts on it has rejected it
                    continue

    def _add(self, record: Record, contracts: Mapping[str, Contract]) -> None:
        fresh = record.offset >= self._counted.get((record.topic, record.partition), 0)
        if record.topic == "rejects":
            by = decode(Reject, record.value).by
            self._refused["agent" if by.startswith("agent of ") else by if by in _REFUSING else "other"] += fresh
        elif record.topic == "pools":
            self._pools = with_pool(self._pools, decode_keyed(PoolState, record.key, record.value, time.time()))
        elif (job := record.key) in contracts and job is not None:
            message = decode_keyed(_KINDS[record.topic], job, record.value, time.time())
            self._jobs[job] = take(self._jobs.get(job, Followed()), message, contracts[job], fresh)
