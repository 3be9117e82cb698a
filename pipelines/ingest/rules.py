"""What a message must be to enter the lake, derived from its class; limits are those of `tidecast.messages.decode`."""

from __future__ import annotations

from pipelines.ingest.columns import Column, columns
from pipelines.ingest.parse import PROBLEMS
from pipelines.ingest.quality import NoProblem, OneOf, Present, Rule, Within
from tidecast.messages import FUTURE_S, SCHEMA

_CHOICES = {"kind": "KINDS", "mode": "MODES", "status": "STATUSES"}
_ABOVE_ZERO = {"time_scale", "span_s", "step_s"}
_LATEST = 4_102_444_800.0
"""The year 2100: a job's time beyond it is milliseconds taken for seconds."""
_MOST = 1e15
_OLD_S = 30 * 86_400.0


def rules(kind: type, now: float) -> list[Rule]:
    """The rules of a message class at a wall time; those of severity warning keep nothing back."""
    found: list[Rule] = [NoProblem(name) for name in PROBLEMS]
    for column in columns(kind):
        if column.required and column.default is None:
            found.append(Present(column.name))
        if choices := getattr(kind, _CHOICES.get(column.name, ""), None):
            found.append(OneOf(column.name, choices))
        if (limits := _limits(column, now)) is not None:
            found.append(limits)
    found += [OneOf("schema", (SCHEMA,)), Within("wall_time", now - _OLD_S, now + FUTURE_S, severity="warning")]
    return found


def _limits(column: Column, now: float) -> Within | None:
    if column.name == "wall_time":
        return Within("wall_time", 0, now + FUTURE_S)
    if column.name == "time":
        return Within("time", 0, _LATEST)
    if column.name in _ABOVE_ZERO:
        return Within(column.name, 0, _MOST, above=True)
    if column.hint == "int" and column.name != "schema":
        return Within(column.name, column.least or 0, 2**63 - 1)
    if column.hint == "float":
        return Within(column.name, _least(column), _MOST)
    return None


def _least(column: Column) -> float:
    if column.least is not None:
        return column.least
    return 0.0 if column.name.endswith("_rps") else -_MOST
