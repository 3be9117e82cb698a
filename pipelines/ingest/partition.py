"""Names of partitions: an event hour, or an interval of event hours."""

from __future__ import annotations

from datetime import UTC, datetime

from configs.errors import FinalError

_HOUR = "%Y-%m-%dT%H"


class PartitionError(FinalError, ValueError):
    """A name that is not an hour and not an interval of hours."""


def checked(name: str) -> str:
    """The name itself, `2014-10-22T04` or `2014-09-24T04/2014-10-22T04` (the end is not part of it).

    Raises:
        PartitionError: names the text and what would be right.
    """
    hours = [_hour(name, part) for part in name.split("/")]
    if len(hours) > 2:
        raise PartitionError(
            f"partition={name!r}: an interval has one start and one end, as 2014-09-24T04/2014-10-22T04."
        )
    if len(hours) == 2 and hours[0] >= hours[1]:
        raise PartitionError(f"partition={name!r}: the interval must end after it starts; swap the two.")
    return name


def _hour(name: str, text: str) -> datetime:
    try:
        hour = datetime.strptime(text, _HOUR)
    except ValueError:
        hour = None
    if hour is None or hour.strftime(_HOUR) != text:
        raise PartitionError(
            f"partition={name!r}: {text!r} is not an hour. Write 2014-10-22T04, or 2014-09-24T04/2014-10-22T04."
        )
    return hour


def hour_of(time: datetime) -> str:
    """The name of the hour that holds a time.

    Raises:
        PartitionError: the time has no zone.
    """
    if time.tzinfo is None:
        raise PartitionError(f"time={time}: without a zone it names no hour; give it one.")
    return time.astimezone(UTC).strftime(_HOUR)
