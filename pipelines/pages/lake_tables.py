"""The lake's tables: columns and types as an ingest writes them, after what the message classes say of their fields."""

from __future__ import annotations

import inspect

from pipelines.ingest.columns import KINDS, PLACE, QUARANTINED, spark_columns
from pipelines.lake.tables import QUARANTINE
from pipelines.pages.markdown import format_table


def render_tables() -> str:
    """Return a section for each table of the lake: what a row is, and the columns with their Spark types.

    Raises:
        TypeError: a field of a message class has a type that no column type is known for.
    """
    return "\n\n".join([
        f"## In every table but `{QUARANTINE}`",
        _told(PLACE),
        *(f"## `{table}`\n\n{_doc(kind)}\n\n{_columns(spark_columns(kind))}" for table, kind in KINDS.items()),
        f"## `{QUARANTINE}`",
        "A record that the quality gate refused.",
        _told(QUARANTINED),
    ])  # fmt: skip


def _doc(kind: type) -> str:
    return " ".join(inspect.getdoc(kind).split()) if kind.__doc__ else ""  # type: ignore[union-attr]


def _told(columns: dict[str, tuple[str, str]]) -> str:
    return format_table([{"column": f"`{n}`", "type": kind, "says": said} for n, (kind, said) in columns.items()])


def _columns(columns: dict[str, str]) -> str:
    """Names by type, as the text above says what they mean."""
    kinds: dict[str, list[str]] = {}
    for name, kind in columns.items():
        kinds.setdefault(kind, []).append(f"`{name}`")
    return format_table([{"type": kind, "columns": ", ".join(names)} for kind, names in kinds.items()])
