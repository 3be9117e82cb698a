"""The thread that follows the topics, and what it knows of every job with a contract."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack, closing
from typing import Any

from configs.contract import Contract
from configs.sections import Kafka
from models.alerts.followed import STRANGE, Followed, take
from models.pool.state import PoolState, with_pool
from pipelines.kafka.broker import Follower, Record
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
    ("decisions", "forecasts"): 86_400.0,
    ("metrics", "heartbeats"): 3600.0,
    ("outcomes", "rejects", "pools"): 0.0,
}
"""Seconds that are read back at the start: a decision may stand for hours, the long window is an hour of a week."""
AGAIN_S, POLL_S = 5.0, 0.2
"""Seconds until the broker is tried again; longest wait for metrics."""
QUIET_S, MOST_S = 1.0, 10.0
"""Seconds without a record after which what was kept of a topic is read; most that this may take for decisions."""
_REFUSING = ("autoscaler", "serving")


class FollowedTopics:
    """Follows the topics in a thread, and holds what is known; records that cannot be accepted are left out.

    Attributes:
        caught_up: whether what was kept of metrics has been read: until then the newest one known is an old one.
    """

    def __init__(
        self, kafka: Kafka, contracts: Callable[[], Mapping[str, Contract]], began: float,
        report: Callable[[str, str], None],
    ) -> None:  # fmt: skip
        """Prepare to follow.

        Args:
            kafka: the broker, its security and the topics' prefix.
            contracts: returns the contracts of the jobs that are followed, as they are now.
            began: epoch seconds from which on records are counted.
            report: called with "topics" and what is wrong, "" once nothing is.
        """
        self._kafka, self._contracts, self._began, self._report = kafka, contracts, began, report
        self._lock = threading.Lock()
        self._jobs: dict[str, Followed] = {}
        self._pools: Mapping[str, PoolState] = {}
        self._refused = Counter[str]()
        self._polled_at: float | None = None
        self.caught_up = False

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
                self._follow(stop)
            except Exception as error:  # BrokerError, and whatever the client raises
                self._report("topics", f"{error}")
                stop.wait(AGAIN_S)

    def _follow(self, stop: threading.Event) -> None:
        began, followers = time.time(), []
        with ExitStack() as opened:
            for topics, back_s in BACK_S.items():
                followers.append(opened.enter_context(closing(Follower(self._kafka, [*topics]))))
                followers[-1].seek_to_time(self._polled_at or time.time() - back_s)
            self._report("topics", "")
            decided, measured, counted = followers
            self.caught_up = False
            until = time.monotonic() + MOST_S  # decisions first: they say which late seconds are counted already
            while (records := decided.poll(QUIET_S)) and time.monotonic() < until:
                self.add(records)
            until = time.monotonic() + QUIET_S
            while not stop.is_set():
                metrics = measured.poll(POLL_S)
                self.add([*records, *decided.poll(0), *counted.poll(0), *metrics])
                records, self._polled_at = [], time.time()
                until = time.monotonic() + QUIET_S if metrics else until
                if time.monotonic() > until or any(record.timestamp >= began for record in metrics):
                    self.caught_up = True

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
        if record.topic == "rejects":
            by = decode(Reject, record.value).by
            self._refused["agent" if by.startswith("agent of ") else by if by in _REFUSING else "other"] += 1
        elif record.topic == "pools":
            self._pools = with_pool(self._pools, decode_keyed(PoolState, record.key, record.value, time.time()))
        elif (job := record.key) in contracts and job is not None:
            message = decode_keyed(_KINDS[record.topic], job, record.value, time.time())
            self._jobs[job] = take(self._jobs.get(job, Followed()), message, contracts[job], self._began)
