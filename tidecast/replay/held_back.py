"""Live records that are held back: the last relief of a job whose limits stay violated, but for dropping records.

The read limit of the live query is set as a replay's is, while it runs; what is not read waits on its topic.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Mapping
from typing import Any

from tidecast.job import Job
from tidecast.spark.admission import Admission, AdmissionError
from tidecast.spark.shares import highest_first

log = logging.getLogger("tidecast")

POLL_S = 0.25  # seconds between two polls
WORDS = 500  # most characters of why a query cannot be held back that each of its metrics repeats
_SUBSCRIBED = re.compile(r"Subscribe\[(.*?)\]")


class HeldBack:
    """Keeps the live query to the rate that was decided last; call `poll` every POLL_S, always in the same thread."""

    def __init__(self, job: Job, query: Any) -> None:
        """Follow the decisions about a job.

        Args:
            job: its state, with the rate as decided.
            query: the live query; what `.start()` returned.
        """
        self._job, self._query = job, query
        self._admission: Admission | None = None
        self._checked = False
        self._own: Mapping[str, int | None] = {}
        self._set: tuple[int, str] | None = None

    def poll(self) -> None:
        """Set the query's read limits to what the decided rate comes to in a batch; give its own back without a rate.

        They are set anew when the rate, the length of a batch or, of several sources, the waiting records change. Once
        the query has planned its first batch it is said, if so, that it cannot be held back, and why.

        Raises:
            tidecast.spark.admission.AdmissionError: a source takes no limit.
            py4j.protocol.Py4JError: the JVM does not answer.
        """
        if not self._checked:
            self._check()
        rps = self._rate()
        if rps is None:
            self.close()
            return
        if self._admission is None:
            self._admission = Admission(self._query)
        if self._set is None:
            self._own = self._admission.limits()
            if not self._own:
                return  # its first batch is being planned
        rows = max(int(rps * self._job.period_s), len(self._job.ends), 1)
        newest = rows, "" if len(self._own) == 1 else str(self._job.committed)
        if newest == self._set:
            return
        self._admission.admit_each(rows_by_source(rows, self._own, self._job))
        if self._set is None:
            log.warning("%s: live records are held back to %.0f/s by %s", self._job.name, rps, self._job.admitted_by)
        elif self._set[0] != rows:
            log.info("%s: at most %d live records a batch by %s", self._job.name, rows, self._job.admitted_by)
        self._set = newest

    def _check(self) -> None:
        """Find out, and tell, before it is needed whether the query takes limits; what is wrong then stays wrong."""
        try:
            self._admission = self._admission or Admission(self._query)
            self._checked = self._admission.check()
        except AdmissionError as error:
            self._checked, self._job.cannot_hold = True, f"{error}"[:WORDS]
            say = log.warning if self._job.widest_mode == "act" else log.info
            why = "so let its contract name no controls.live_rps, or change the query"
            say("%s: live records of this query cannot be held back, %s: %s", self._job.name, why, error)

    def close(self) -> None:
        """Give the query its own read limits back, if live records are held back.

        Raises:
            py4j.protocol.Py4JError: the JVM does not answer.
        """
        if self._set is None or self._admission is None:
            return
        self._admission.release()
        self._set = None
        log.warning("%s: live records are no longer held back", self._job.name)

    def _rate(self) -> float | None:
        """What was decided, while whoever decided is heard: one who is silent does not see that it has become calm."""
        job = self._job
        return job.admission_rps if job.mode == "act" and job.heard else None


def rows_by_source(rows: int, own: Mapping[str, int | None], job: Job) -> dict[str, int]:
    """Divide the records of a batch between a query's sources by what waits for each, the lowest weight cut first.

    Equal weights are cut alike (max-min). What is left beyond what waits is divided evenly, for the records that come
    until the batch begins. Each source has a record at least.

    Args:
        rows: of the batch.
        own: by Spark's description of a source, the most that the query itself lets it read; None: no bound.
        job: with its newest offsets and the weights of topics, 1 where none was decided; of a source's topics the
            highest counts. A source whose topics cannot be told from its description asks for all.
    """
    topics = {source: _topics(source) for source in own}
    waiting = [_waiting(topics[source], job) for source in own]
    weights = [_weight(topics[source], job) for source in own]
    shares = highest_first(float(rows), waiting, weights)
    left = (rows - math.fsum(shares)) / len(waiting)
    parts = {source: max(int(share + left), 1) for source, share in zip(own, shares, strict=True)}
    return {source: part if (most := own[source]) is None else min(part, most) for source, part in parts.items()}


def _topics(source: str) -> set[str]:
    """The topics that Spark's description of a source names; empty where it names none."""
    found = _SUBSCRIBED.search(source)
    return {topic.strip() for topic in found[1].split(",")} if found else set()


def _waiting(topics: set[str], job: Job) -> float:
    committed = job.committed
    if not topics or committed is None:
        return math.inf
    return float(sum(max(end - committed.get(place, 0), 0) for place, end in job.ends.items() if place[0] in topics))


def _weight(topics: set[str], job: Job) -> float:
    return max((job.weights.get(topic.removeprefix(job.prefix), 1.0) for topic in topics), default=1.0)
