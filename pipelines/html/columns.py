"""Columns of plain text, for the terminal."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any


def aligned(lines: Sequence[Sequence[str]], left: Collection[int] = (0,)) -> list[str]:
    """Return a string per line, cells padded to their column's width: aligned left in columns `left`, else right.

    Raises:
        ValueError: lines of different lengths.
    """
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths, strict=True)))
        for line in lines
    ]


def of_rows(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return rows as lines of aligned text, the first with the keys of the first row; None is left empty.

    Raises:
        IndexError: there are no rows.
        ValueError: rows of different lengths.
    """
    cells = [["" if value is None else str(value) for value in row.values()] for row in rows]
    return aligned([list(rows[0]), *cells])
