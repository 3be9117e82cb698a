"""Which instant a deadline means: a time of day or a date in the job's own time zone, or in a trace's time.

Clocks jump. A time that the zone's clock skips (spring) means the instant at which it jumps over it, and one that it
shows twice (autumn) the earlier one that is not past: whoever waits for the later has it then, too.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from models.backfill.given import BackfillPlanError

_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")


class DeadlineInstant(NamedTuple):
    """An instant that a deadline means.

    Attributes:
        epoch_s: of it.
        local: the same in the zone.
        remark: why it is this one, where the clock skips or repeats what was asked for; else "".
    """

    epoch_s: float
    local: datetime
    remark: str


def read_deadline(text: str, now_s: float, zone: str) -> DeadlineInstant:
    """Read `--by`: "07:00" is the next such time, "2026-03-29 07:00" a date; an offset ("Z", "+02:00") counts.

    Args:
        text: as a person wrote it.
        now_s: epoch seconds.
        zone: IANA name, of the job.

    Raises:
        BackfillPlanError: the zone is unknown, the text is neither, or the instant is not in the future.
    """
    try:
        where = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError):
        raise BackfillPlanError(f"timezone {zone!r} is unknown. Take an IANA name such as Europe/Berlin") from None
    now = datetime.fromtimestamp(now_s, where)
    if clock := _CLOCK.fullmatch(text.strip()):
        wall = datetime(now.year, now.month, now.day, int(clock[1]), int(clock[2]))
        found = _instant(wall, where, now_s)
        return found if found.epoch_s > now_s else _instant(wall + timedelta(days=1), where, now_s)
    try:
        said = datetime.fromisoformat(text.strip())
    except ValueError:
        raise BackfillPlanError(f"--by {text!r} is no time. Write 07:00, or 2026-03-29 07:00") from None
    if said.tzinfo is not None:
        found = DeadlineInstant(said.timestamp(), said.astimezone(where), "")
    else:
        found = _instant(said, where, now_s)
    if found.epoch_s <= now_s:
        raise BackfillPlanError(f"--by {text!r} is {found.local.isoformat()}, which is past; now is {now.isoformat()}")
    return found


def read_moment(text: str, zone: ZoneInfo) -> float:
    """Read `--from` or `--to`, ISO 8601; without an offset it is in the zone. Returns epoch seconds.

    Raises:
        BackfillPlanError: it is no moment, or one that the zone's clock shows twice, or skips: of a range an hour
            would be left out, or an hour more be read, without a word.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BackfillPlanError("a moment as 2026-03-01 or 2026-03-01T10:00 is expected.") from None
    if moment.tzinfo is not None:
        return moment.timestamp()
    first, second = (moment.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    if first.utcoffset() != second.utcoffset():
        raise BackfillPlanError(
            f"the clock of {zone.key} shows it twice, or skips it. Give its offset, as {first.isoformat()} or "
            f"{second.isoformat()}."
        )
    return first.timestamp()


def name_moment(epoch_s: float, zone: ZoneInfo) -> str:
    """Return what a moment is called in names: the zone's time, or UTC's where the zone's clock shows it twice."""
    local = datetime.fromtimestamp(epoch_s, zone)
    if local.utcoffset() != local.replace(fold=1 - local.fold).utcoffset():
        return f"{local.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    return f"{local:%Y%m%dT%H%M%S}"


def _instant(wall: datetime, where: ZoneInfo, now_s: float) -> DeadlineInstant:
    """What a wall clock's time means, of two the earlier that is not past."""
    early, late = (wall.replace(tzinfo=where, fold=fold) for fold in (0, 1))
    if early.utcoffset() == late.utcoffset():
        return DeadlineInstant(early.timestamp(), early, "")
    # Skipped: with the offset of before the jump it lies after it, so that its way back shows another time.
    if early.astimezone(UTC).astimezone(where).replace(tzinfo=None) != wall:
        jump = _jump(late.timestamp(), early.timestamp(), where)
        local = datetime.fromtimestamp(jump, where)
        return DeadlineInstant(jump, local, f"{wall:%H:%M} is skipped in {where.key}: {local:%H:%M %Z} is meant")
    first = early.timestamp() > now_s
    told = f"{wall:%H:%M} comes twice in {where.key}: the {'first' if first else 'second'} is meant"
    return DeadlineInstant((early if first else late).timestamp(), early if first else late, told)


def _jump(low: float, high: float, where: ZoneInfo) -> float:
    """The second at which the offset changes between two instants."""
    before = datetime.fromtimestamp(low, where).utcoffset()
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if datetime.fromtimestamp(middle, where).utcoffset() == before else (low, middle)
    return high
