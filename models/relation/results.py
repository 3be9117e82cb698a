"""What a table of results holds of one key and window when live micro-batches and backfills meet in it.

A row is a last-writer-wins register: the version of the micro-batch that told it decides, so that repeats and
stragglers change nothing. What a backfill corrected stands until one that knows more comes. Why that ends in the truth:
let a backfill note m, the newest version of the table, and cut its source only then. All that live had taken by m had
come before, so the cut has it. A later change of live's has a version above m; live tells every change. So a row whose
version is at most m has lost nothing to the cut's result, and one above m is not replaced but computed again, from a
later note and cut. When no version is above the note, every row is the plan's result of all records that live took.

A live query that begins anew without its state (after an outage, at the newest record) knows only a part of the windows
that were open then. What it tells of them counts as a change after the note, and is never what readers see.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

Window = Hashable
"""A key within a window."""
NOTHING = -1
"""What a row covers that holds none of live's tellings."""
Difference = Literal["equal", "differs", "new", "gone"]


@dataclass(frozen=True)
class ResultRow:
    """A key's result in a window, as the table has it.

    Attributes:
        value: the result; None: there is none any more.
        version: of live's newest telling, or of the newest one that a correction holds.
        covers: None in what live told; else the newest version of live's that the value holds: in a correction, and
            where live has told a part of the window since.
    """

    value: Any
    version: int
    covers: int | None = None

    @property
    def waits(self) -> bool:
        """Whether live has told a change that the correction does not hold."""
        return self.covers is not None and self.version > self.covers


def told(row: ResultRow | None, value: Any, version: int, whole: bool = True) -> ResultRow:
    """Return a row after a live micro-batch of a version told a value of it, None for no result.

    Args:
        row: so far; None: there is none.
        value: as live has it.
        version: of the micro-batch.
        whole: whether live has seen all records of the window. A query that began anew in its middle has not: what it
            tells is noted, and what stands stays until it is computed again.
    """
    if row is None:
        return ResultRow(value, version) if whole else ResultRow(None, version, NOTHING)
    if version <= row.version:
        return row
    if row.covers is not None:
        return replace(row, version=version)
    return ResultRow(value, version) if whole else ResultRow(row.value, version, row.version)


def changed_since(row: ResultRow | None, mark: int) -> bool:
    """Return whether live told anything of it after the version that a backfill noted before it cut its source."""
    return row is not None and row.version > mark


def difference(row: ResultRow | None, value: Any) -> Difference:
    """Return how a replay's value (None: no result) differs from what readers see."""
    before = row.value if row is not None else None
    if before == value:
        return "equal"
    if before is None:
        return "new"
    return "gone" if value is None else "differs"


def corrected(row: ResultRow | None, value: Any, mark: int) -> ResultRow | None:
    """Return a row after a backfill that noted `mark` was published; what live changed since then stays as it is."""
    if changed_since(row, mark):
        return row
    if difference(row, value) == "equal" and not (row is not None and row.waits):
        return row
    return ResultRow(value, mark, mark)


def publish(
    table: Mapping[Window, ResultRow], replayed: Mapping[Window, Any], windows: frozenset[Window], mark: int
) -> tuple[dict[Window, ResultRow], frozenset[Window]]:
    """Return the table after one atomic publish, and the windows that live changed meanwhile: they are left to again.

    Args:
        table: all rows.
        replayed: the replay's results.
        windows: of the range; all others stay as they are.
        mark: newest version that was noted before the replay's source was cut.
    """
    after = dict(table)
    for window in windows:
        row = corrected(table.get(window), replayed.get(window), mark)
        if row is not None:
            after[window] = row
    return after, frozenset(window for window in windows if changed_since(table.get(window), mark))
