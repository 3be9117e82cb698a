"""What a backfill is: its table, range and plan, its rounds, and which of them may stand beside each other."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Literal

State = Literal["open", "published", "superseded"]
SEVERAL_LENGTHS = (
    "a replay is for windows of one length (give each length a table of its own). It reads no record from before its "
    "range, so that of a session that began there it would publish a part: let the plan read all records once more, "
    "into another table or topic"
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class BackfillError(ValueError):
    """A backfill that cannot be begun, gone on with or published; the message names it, the value and the remedy."""


@dataclass(frozen=True)
class Round:
    """One replay of the range, or of those of its windows that live changed after the one before.

    Attributes:
        number: rises with every round, also with those that were begun again.
        mark: newest live version of the table, noted before the replay's source was cut; -1: live told nothing.
        table_version: Delta version of the table that it was read from.
        written: whether all of its windows stand in the shadow table.
    """

    number: int
    mark: int
    table_version: int
    written: bool = False


@dataclass(frozen=True)
class Spec:
    """A backfill as it stands on disk.

    Attributes:
        name: its id; a folder is named by it.
        table: path of the live table.
        begin: event time from which on windows are replaced, ms since the epoch.
        end: event time before which they end, ms.
        plan: version of the plan that the replay runs.
        keys: columns of the key.
        state: `published` once all of its rounds are in the table; `superseded` when a later one took over its range.
        rounds: the first one is of the whole range.
        next_round: number of the next one.
    """

    name: str
    table: str
    begin: int
    end: int
    plan: str
    keys: tuple[str, ...]
    state: State = "open"
    rounds: tuple[Round, ...] = ()
    next_round: int = 0

    @property
    def last(self) -> Round:
        """The newest round."""
        return self.rounds[-1]

    @property
    def words(self) -> str:
        """Name and range, for people."""
        return f"{self.name} [{instant(self.begin)}, {instant(self.end)})"

    def started_over(self, mark: int, table_version: int) -> Spec:
        """Return it before a replay of the whole range."""
        only = (Round(self.next_round, mark, table_version),)
        return replace(self, state="open", rounds=only, next_round=self.next_round + 1)

    def with_round(self, mark: int, table_version: int) -> Spec:
        """Return it before a further round; one that was not written to its end is forgotten."""
        done = tuple(one for one in self.rounds if one.written)
        return replace(
            self, rounds=(*done, Round(self.next_round, mark, table_version)), next_round=self.next_round + 1
        )

    def with_written(self) -> Spec:
        """Return it after its newest round was written."""
        return replace(self, rounds=(*self.rounds[:-1], replace(self.last, written=True)))

    def to_json(self) -> str:
        """Return it as text."""
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> Spec:
        """Return what was written.

        Raises:
            ValueError, TypeError, KeyError: it is none.
        """
        found = json.loads(text)
        rounds = tuple(Round(**one) for one in found["rounds"])
        return cls(**{**found, "keys": tuple(found["keys"]), "rounds": rounds})


def check_name(name: str) -> str:
    """Return a backfill's id.

    Raises:
        BackfillError: it cannot name a folder.
    """
    if not _NAME.fullmatch(name):
        raise BackfillError(f"backfill {name!r}: give 1 to 64 letters, digits, '.', '_' and '-', no '.' in front")
    return name


def check_range(begin: int, end: int, now: int) -> None:
    """Refuse a range of event time that can hold no window, or none yet.

    Args:
        begin: ms since the epoch.
        end: likewise, not part of it.
        now: likewise, of the job's clock.

    Raises:
        BackfillError: it is empty, or reaches into the future.
    """
    if begin >= end:
        raise BackfillError(f"range [{instant(begin)}, {instant(end)}) is empty: give an end after its begin")
    if end > now:
        raise BackfillError(
            f"range [{instant(begin)}, {instant(end)}) reaches into the future, it is {instant(now)}: end it there or"
            " before; what comes later is live's"
        )


def check_lengths(shortest: int | None, longest: int | None) -> None:
    """Refuse what was replayed if its windows, from the shortest to the longest, ms, are of several lengths.

    Raises:
        BackfillError: they are.
    """
    if shortest != longest:
        raise BackfillError(f"results are of windows of {shortest} and {longest} ms: {SEVERAL_LENGTHS}")


def overlapping(spec: Spec, others: Iterable[Spec]) -> list[Spec]:
    """Return the other backfills of a range in common that may still be published."""
    return [
        one
        for one in others
        if one.name != spec.name and one.state != "superseded" and one.begin < spec.end and spec.begin < one.end
    ]


def instant(ms: int) -> str:
    """Format an event time: UTC, to the second, ms only where there are some; a bare number where no date is."""
    try:
        text = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(ms // 1000))
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"
    return text + (f".{ms % 1000:03d}" if ms % 1000 else "")
