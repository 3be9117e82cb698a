"""Names of partitions: an event hour, an interval of event hours, or the moment of a run that nobody named."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from configs.errors import FinalError

_HOUR = "%Y-%m-%dT%H"
_MOMENT = "%Y-%m-%dT%H%M%S"
_SLACK = timedelta(minutes=5)
"""By which the clock of whoever ingests may be behind the scheduler's, which begins a run on the hour."""


class PartitionError(FinalError, ValueError):
    """The name of an ingest partition is no hour, interval of hours or moment, or its hour is not over."""


def validate_name(name: str, now: datetime) -> str:
    """Return the name of an ingest partition unchanged if it is valid.

    Args:
        name: an hour `2014-10-22T04` that is over, an interval of hours `2014-09-24T04/2014-10-22T04` (the end is not
            part of it), or a moment `2014-10-22T042031`; all UTC. Only the hour has to be over, give or take five
            minutes, as clocks differ.
        now: with a time zone.

    Raises:
        PartitionError: the name is none of these, its hour is not over, or its interval does not end after its start.
        TypeError: `now` has no time zone.
    """
    if _read(name, _MOMENT):
        return name
    hours = [_hour(name, part) for part in name.split("/")]
    if len(hours) == 1 and now + _SLACK < hours[0].replace(tzinfo=UTC) + timedelta(hours=1):
        raise PartitionError(
            f"partition={name!r}: this hour is not over (it is {now.astimezone(UTC):%Y-%m-%d %H:%M} UTC here), and the "
            "run that follows it has its name. Leave it empty; where it was, set this computer's clock right."
        )
    if len(hours) > 2:
        raise PartitionError(
            f"partition={name!r}: an interval has one start and one end, as 2014-09-24T04/2014-10-22T04."
        )
    if len(hours) == 2 and hours[0] >= hours[1]:
        raise PartitionError(f"partition={name!r}: the interval must end after it starts; swap the two.")
    return name


def _hour(name: str, text: str) -> datetime:
    hour = _read(text, _HOUR)
    if hour is None:
        raise PartitionError(
            f"partition={name!r}: {text!r} is not an hour. Write 2014-10-22T04, or 2014-09-24T04/2014-10-22T04."
        )
    return hour


def _read(text: str, form: str) -> datetime | None:
    try:
        read = datetime.strptime(text, form)
    except ValueError:
        return None
    return read if read.strftime(form) == text else None


def default_name(scheduled_hour: datetime | None, moment: datetime) -> str:
    """Name the ingest partition of a run for which nobody gave one.

    Args:
        scheduled_hour: the hour that the schedule ran it for; None where something else did.
        moment: when the run began; used without a scheduled hour, so that such a run takes no hour's name.

    Returns:
        `2014-10-22T04` for an hour, `2014-10-22T042031` for a moment, in UTC.
    """
    time, form = (moment, _MOMENT) if scheduled_hour is None else (scheduled_hour, _HOUR)
    return time.astimezone(UTC).strftime(form)
