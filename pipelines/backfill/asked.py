"""A range of time as a person asks for it, and in words why it is not to be had."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from kafka import TopicPartition

from configs.errors import CorrectableError
from tidecast.control import WALL, Clock

CLOCKS_S = 600.0
"""How far the broker's clock may be ahead of the one here, seconds."""
FROM_TABLE = "from a table of the same columns: --table PATH, or Table in the form of Airflow's DAG"
"""How a range is read that the topic does not give."""


class RangeError(CorrectableError, ValueError):
    """The range cannot be read again; the message says what can."""


class NotHeldError(RangeError):
    """The topic does not give the range, or not all of it any more: a table of its records may."""


class TimeRange(NamedTuple):
    """A range of time of which the records are to be found; wall time, epoch seconds.

    Attributes:
        begin: its first moment.
        end: the moment after the last one.
        slack_s: how much later than it happened a record may have been produced, seconds.
        now: when it is asked for.
        clock: of the job, whose time a person gives and is told.
        least_s: how late the live query surely takes records, seconds.
        final: until when its windows are final, as far as that is known; wall time, epoch seconds.
    """

    begin: float
    end: float
    slack_s: float
    now: float
    clock: Clock = WALL
    least_s: float = 0.0
    final: float = math.inf

    @property
    def until(self) -> float:
        """When the last record of the range may have been produced."""
        return self.end + self.slack_s

    def told(self, wall: float) -> str:
        """Format a moment of wall time as a person gives it: job time, ISO 8601 in UTC, whole seconds."""
        return told_moment(self.clock.at(wall))

    def told_after(self, wall: float) -> str:
        """Format likewise the first whole second after it."""
        return told_moment(math.floor(self.clock.at(wall)) + 1)


def check_moments(asked: TimeRange) -> None:
    """Refuse a range that is empty, in the future, or so new that records of it may still come, or be counted.

    Raises:
        RangeError: as said.
    """
    begin, end, slack_s, now, told = asked.begin, asked.end, asked.slack_s, asked.now, asked.told
    if not begin < end:
        raise RangeError(f"the range from {told(begin)} to {told(end)} is empty: --to has to be after --from")
    if end > now:
        raise RangeError(
            f"--to {told(end)} is in the future, it is {told(now)}: records of that time are live ones yet; end "
            "the range now at the latest"
        )
    if asked.until > now:
        smaller = ", or give a smaller --late-s (Late in the form of Airflow's DAG)" if slack_s > asked.least_s else ""
        raise RangeError(
            f"records of before --to {told(end)} may come until {told(asked.until)}, it is {told(now)}: end "
            f"the range by {told(now - slack_s)}{smaller}"
        )
    if end > asked.final:
        raise RangeError(
            f"live records may still change windows before --to {told(end)}, and a correction would not show that: the "
            f"live query's watermark was at {told(asked.final)} in its newest batch; end the range there, or order it "
            "once the job has come further"
        )


def why_cut(asked: TimeRange, stamps: Mapping[TopicPartition, float]) -> str:
    """Say what is left where a range begins at the first record that is kept: older ones may have been of it.

    Args:
        asked: the range.
        stamps: of that record by partition, wall epoch seconds; one at least.
    """
    oldest, place = max((at, place) for place, at in stamps.items())
    return (
        f"topic {place.topic!r} no longer holds all from {asked.told(asked.begin)}: in {len(stamps)} of its partitions "
        f"it begins at {asked.told(oldest)}. Give --from {asked.told_after(oldest)}, or read the rest {FROM_TABLE}"
    )


def why_emptied(asked: TimeRange, emptied: Sequence[TopicPartition], kept_s: float | None) -> str:
    """Say why partitions without any record may have had some of a range; "": none that came since its begin is gone.

    Args:
        asked: the range.
        emptied: the partitions; one at least. Nothing in them tells when what they dropped was produced.
        kept_s: for how long the topic surely keeps its records, seconds; None: nobody knows.
    """
    first = emptied[0]
    may = (
        f"topic {first.topic!r} holds no record any more in {len(emptied)} of its partitions, such as "
        f"{first.partition}, and may have dropped some of the range from {asked.told(asked.begin)}"
    )
    if kept_s is None:
        return (
            f"{may}: for how long it keeps them is not known. It has a retention.bytes or no retention.ms, or this "
            f"user may not ask (right DescribeConfigs on the topic). Give that right, or read the range {FROM_TABLE}"
        )
    since = asked.now - kept_s + CLOCKS_S
    if asked.begin >= since:
        return ""
    later = since + CLOCKS_S  # or the moment would be too early again once somebody has given it
    instead = f"Give --from {asked.told_after(later)}, or read" if later < asked.end else "Read"
    return f"{may}: its retention.ms keeps them for {kept_s:,.0f} s. {instead} the range {FROM_TABLE}"


def told_moment(time_s: float) -> str:
    """Format a moment of the job's own time, epoch seconds: ISO 8601 in UTC, whole seconds."""
    return datetime.fromtimestamp(time_s, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
