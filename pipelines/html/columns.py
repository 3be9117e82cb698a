"""Columns of plain text, for the terminal."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any


def aligned(lines: Sequence[Sequence[str]], left: Collection[int] = (0,)) -> list[str]:
    """A string per line, as wide as each column's longest cell; columns but those of `left` end at their right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths, strict=True)))
        for line in lines
    ]


def of_rows(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The same of rows whose values stand under their names; None is left empty."""
    cells = [["" if value is None else str(value) for value in row.values()] for row in rows]
    return aligned([list(rows[0]), *cells])
