"""Finished micro-batches, as Spark's progress reports tell of them."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from tidecast.spark.sensors import Offsets

COUNTED = "tidecast.rows."
"""Begins the name under which a query observes how many rows (`n`) a step of it makes; the step's name follows."""

YEAR_10000_S = 253_402_300_800.0
"""Its begin, epoch seconds. Spark has event times of later years, as of a stamp in ms that was read as one in seconds;
Python has no such date."""


class Phases(NamedTuple):
    """Wall seconds of a batch beside its tasks: making the plan, asking for offsets, the log of offsets and commits.

    `state_commit_s` is summed over the tasks that keep state; None for a query without any.
    """

    planning_s: float = 0.0
    offsets_s: float = 0.0
    log_s: float = 0.0
    state_commit_s: float | None = None


NONE_KNOWN = Phases()


@dataclass(frozen=True)
class Batch:
    """One finished micro-batch; times are wall epoch seconds, offsets those of its Kafka sources only.

    `batch_s` is its duration in wall seconds, `rows` the records read, `starts` and `ends` its offsets (end exclusive).
    A record of Kafka counts once, however often it was read, unless the batch is a query's first one ever.
    `latest` are the sources' end offsets as the query itself saw them at `latest_at`; `watermark` is job time, epoch
    seconds, None without one and after the year 9999; `state_rows` is None for a query without state; `phases` say
    where it spent time beside its tasks; `operator_rows` are those that its steps have made, None where it counts none.
    """

    batch_id: int
    run_id: str
    finished: float
    batch_s: float
    rows: int
    starts: Offsets
    ends: Offsets
    latest: Offsets
    latest_at: float
    watermark: float | None = None
    state_rows: int | None = None
    phases: Phases = NONE_KNOWN
    operator_rows: Mapping[str, int] | None = None

    @property
    def processed_rps(self) -> float:
        """Records per second while the batch ran."""
        return self.rows / self.batch_s if self.batch_s > 0 else 0.0

    @property
    def span(self) -> int:
        """Offsets between its starts and ends; 0 where it tells no starts, as a query's first one ever."""
        return sum(max(at - self.starts.get(place, 0), 0) for place, at in self.ends.items()) if self.starts else 0


def parse_progress(text: str) -> Batch | None:
    """Parse one StreamingQueryProgress (JSON text) of Spark.

    Returns:
        The finished batch that it reports; None if it reports none (an idle trigger).

    Raises:
        ValueError: no JSON, or a time that is not ISO 8601.
        KeyError: `timestamp`, `batchId` or `runId` is missing.
        TypeError, AttributeError: no JSON object, or a duration that is no number of ms.
    """
    report = json.loads(text)
    durations = report.get("durationMs") or {}
    if "addBatch" not in durations:
        return None
    started = _seconds(report["timestamp"])
    batch_s = durations.get("triggerExecution", report.get("batchDuration", 0)) / 1000
    sources, state = report.get("sources") or [], report.get("stateOperators") or []
    starts, ends, latest = (
        {place: at for source in sources for place, at in parse_offsets(source.get(name)).items()}
        for name in ("startOffset", "endOffset", "latestOffset")
    )
    stamp = (report.get("eventTime") or {}).get("watermark")
    watermark = event_s(stamp) if stamp else 0.0  # 1970 means that there is none yet
    return Batch(
        batch_id=report["batchId"], run_id=report["runId"], finished=started + batch_s, batch_s=batch_s,
        rows=report.get("numInputRows", 0) - sum(map(_read_again, sources)), starts=starts, ends=ends, latest=latest,
        latest_at=started + durations.get("latestOffset", 0) / 1000,
        watermark=watermark if watermark and watermark < YEAR_10000_S else None,
        state_rows=sum(s.get("numRowsTotal", 0) for s in state) if state else None,
        phases=_phases(durations, state), operator_rows=_operator_rows(report.get("observedMetrics") or {}),
    )  # fmt: skip


def event_s(stamp: str) -> float:
    """Return an event time as a report has it, epoch seconds; YEAR_10000_S for any later one.

    Raises:
        ValueError: it is not ISO 8601.
    """
    return YEAR_10000_S if re.match(r"\+?\d{5}", stamp) else _seconds(stamp)


def parse_offsets(value: Any) -> Offsets:
    """Convert offsets as Spark reports them for a Kafka source to {(topic, partition): offset}.

    Args:
        value: `{topic: {partition: offset}}`, as JSON text or dict; for anything else, such as None or the offsets of
            another kind of source, the result is empty.
    """
    try:
        by_topic = json.loads(value) if isinstance(value, str) else value
        return {
            (topic, int(partition)): operator.index(offset)
            for topic, partitions in by_topic.items()
            for partition, offset in partitions.items()
        }
    except (ValueError, TypeError, AttributeError):
        return {}


class ProgressReader:
    """Polls a query for its finished batches and yields each once.

    Spark keeps the last 100 reports (`spark.sql.streaming.numRecentProgressUpdates`), so nothing is missed at a poll of
    0.25 s. A poll costs 0.03 ms of CPU and needs no listener in the user's driver.
    """

    def __init__(self, jquery: Any) -> None:
        self._jquery = jquery
        last = jquery.lastProgress()
        told = [] if last is None else [parse_progress(report.json()) for report in jquery.recentProgress()]
        coming = 0 if last is None else last.batchId()
        # Of what ended before, the newest is enough; idle reports may have come since.
        self._seen = max((batch.batch_id for batch in told if batch is not None), default=coming) - 1

    def new_batches(self) -> list[Batch]:
        """Return the batches that finished since the last call, by rising id; empty if none.

        The first call also returns the newest batch that had finished before this reader was made.

        Raises:
            ValueError, KeyError, TypeError: a progress report of Spark lacks a field or has another form.
            py4j.protocol.Py4JError: the JVM does not answer.
        """
        last = self._jquery.lastProgress()
        if last is None or last.batchId() <= self._seen:
            return []
        reports = [last]
        if last.batchId() > self._seen + 1:  # an idle report carries the id of the batch that is yet to come
            reports = [r for r in self._jquery.recentProgress() if r.batchId() > self._seen]
        batches = {b.batch_id: b for b in (parse_progress(r.json()) for r in reports) if b is not None}
        ordered = [batches[i] for i in sorted(batches)]
        if ordered:
            self._seen = ordered[-1].batch_id
        return ordered

    def committed(self) -> Offsets:
        """Return the offsets up to which the newest report, also one without a batch, says that all was processed.

        Raises:
            ValueError, AttributeError: it has another form.
            py4j.protocol.Py4JError: the JVM does not answer.
        """
        last = self._jquery.lastProgress()
        sources = [] if last is None else json.loads(last.json()).get("sources") or []
        return {place: at for source in sources for place, at in parse_offsets(source.get("endOffset")).items()}


def _read_again(source: Mapping[str, Any]) -> int:
    """How many rows Spark counts of a Kafka source beyond those between its offsets: it counts each reading anew.

    Fewer are no fault: a compacted topic has gaps, and a transactional one offsets that are no records.
    """
    starts, ends = parse_offsets(source.get("startOffset")), parse_offsets(source.get("endOffset"))
    if not starts or not ends:
        return 0
    between = sum(max(end - starts.get(place, 0), 0) for place, end in ends.items())  # a new partition begins at 0
    return max(int(source.get("numInputRows", 0)) - between, 0)


def _operator_rows(observed: Mapping[str, Any]) -> dict[str, int] | None:
    counts = {name.removeprefix(COUNTED): row for name, row in observed.items() if name.startswith(COUNTED)}
    return {name: row["n"] for name, row in counts.items()} or None


def _phases(durations: dict[str, Any], state: list[dict[str, Any]]) -> Phases:
    parts = (("queryPlanning",), ("latestOffset", "getBatch"), ("walCommit", "commitOffsets"))
    planning_s, offsets_s, log_s = (sum(durations.get(name, 0) for name in names) / 1000 for names in parts)
    commit_s = sum(one.get("commitTimeMs", 0) for one in state) / 1000 if state else None
    return Phases(planning_s, offsets_s, log_s, commit_s)


def _seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()
