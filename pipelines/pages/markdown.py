"""Tables of Markdown, and the numbers in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def format_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Format rows as a table whose columns are the keys of the first one; a bar in a text is escaped."""
    titles = list(rows[0]) if rows else []
    lines = [titles, ["---"] * len(titles), *([format_value(row.get(title)) for title in titles] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def format_value(value: Any) -> str:
    """Format a number with four digits, None as nothing, anything else as it is."""
    if value is None or isinstance(value, bool):
        return "" if value is None else str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value).replace("|", "\\|")
