"""What a publish would change, in numbers and in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class ColumnChange:
    """How far a column of numbers changes, and the key for which it does most.

    Attributes:
        column: its name.
        size: sum of what stands in windows that change, before and after, without signs.
        off: sum of the differences, without signs.
        key: values of the key's columns, of the key with the largest sum of differences.
        key_off: that sum.
        key_windows: windows of the key that change.
        before: sum over those, as the table has it.
        after: likewise, as the replay has it.
    """

    column: str
    size: float
    off: float
    key: tuple[object, ...]
    key_off: float
    key_windows: int
    before: float
    after: float

    @property
    def share(self) -> float:
        """Differences over size, 0 to 1; an infinite difference is all of it."""
        if math.isinf(self.off):
            return 1.0
        return self.off / self.size if self.size else 0.0


@dataclass(frozen=True)
class Summary:
    """A shadow table against the live one, in the range.

    Attributes:
        windows: keys in windows that either of them has a result for.
        differs: of these, how many both have, with different values.
        new: how many only the replay has.
        gone: how many only the table has.
        changed: how many live has told since the replay noted its version; they are to be computed again.
        due: how many rows a publish would write now.
        columns: of those that hold numbers, the change of each.
    """

    windows: int
    differs: int
    new: int
    gone: int
    changed: int
    due: int
    columns: Sequence[ColumnChange] = ()

    @property
    def worst(self) -> ColumnChange | None:
        """The column that changes most for its size; None where none does."""
        return max((one for one in self.columns if one.off > 0), key=lambda one: one.share, default=None)

    def text(self) -> str:
        """Return it as a line."""
        other = self.differs + self.new + self.gone
        line = f"{count(other)} of {count(self.windows)} windows differ"
        if not other:
            return line + self._changed()
        line += f" ({count(self.differs)} other values, {count(self.new)} new, {count(self.gone)} gone)"
        if (worst := self.worst) is not None:
            key = "/".join(map(str, worst.key)) or "(none)"
            line += (
                f", worst key {key}: {worst.column} {_format_number(worst.before)} → {_format_number(worst.after)},"
                f" {_format_number(worst.key_off)} off in {count(worst.key_windows)}"
                f" window{'s' * (worst.key_windows != 1)}"
            )
        return line + self._changed()

    def _changed(self) -> str:
        return f"; {count(self.changed)} changed by live meanwhile, to be computed again" if self.changed else ""


def count(number: int) -> str:
    """Format a number of things: `2,114`, and from a million on `1.2 M`."""
    return f"{number / 1e6:,.1f} M" if number >= 1_000_000 else f"{number:,}"


def _format_number(value: float) -> str:
    return f"{value:,.0f}" if math.isfinite(value) and value == round(value) else f"{value:,.4g}"
