"""The rows of the table: which cells each needs, how those are arranged, and what the kept ones come to; pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from configs.errors import SettingsError
from pipelines.bench.backfill import deadlines, finish, latency, limits
from pipelines.bench.backfill.arrangement import Arrangement, arrange
from pipelines.bench.backfill.cells import Found, MeasuredCell, latency_limit_s


@dataclass(frozen=True)
class TableRow:
    """A part of the table that can be measured by itself.

    Attributes:
        minutes: of a cell, unless others are asked for.
        plan: its cells, for the minutes of each.
        arrange: what a cell runs.
        limited: whether live records are held to MOST_RATIO times the p99 of live alone, else to the promise.
    """

    minutes: float
    plan: Callable[[float], list[MeasuredCell]]
    arrange: Callable[[MeasuredCell], Arrangement]
    limited: bool = False


def _row(module: Any, load: str, until_done: bool, limited: bool) -> TableRow:
    def plan(minutes: float) -> list[MeasuredCell]:
        return list(module.plan_load(load, minutes))

    return TableRow(module.MINUTES, plan, lambda cell: arrange(cell, until_done), limited)


ROWS: Mapping[str, TableRow] = {
    **{f"{latency.ROW}-{load}": _row(latency, load, False, True) for load in latency.LOADS},
    **{f"{finish.ROW}-{load}": _row(finish, load, True, True) for load in finish.LOADS},
    deadlines.ROW: TableRow(deadlines.MINUTES, deadlines.plan_cells, deadlines.arrange_deadline),
    **{f"{limits.ROW}-{load}".replace(" ", "-"): _row(limits, load, False, False) for load in limits.LOADS},
}
"""By the names that `--rows` takes."""


def choose_rows(names: Sequence[str]) -> list[str]:
    """Return the rows that are named, in the order of the table; of no names all; a row's loads may be left out.

    Raises:
        SettingsError: no such row.
    """
    chosen: set[str] = set()
    for name in names:
        found = {row for row in ROWS if row == name or row.startswith(f"{name}-")}
        if not found:
            raise SettingsError(f"--rows {name!r}: there is no such row; there are {', '.join(ROWS)}.")
        chosen |= found
    return [row for row in ROWS if row in chosen or not names]


def plan_cells(names: Sequence[str], minutes: float | None) -> dict[MeasuredCell, TableRow]:
    """Return the cells of some rows in the order in which they are run, with their rows.

    Args:
        names: of ROWS.
        minutes: of each cell; None: as each row says.
    """
    return {cell: ROWS[name] for name in names for cell in ROWS[name].plan(minutes or ROWS[name].minutes)}


def limit_of(kept: Mapping[MeasuredCell, Found], cell: MeasuredCell, row: TableRow) -> float | None:
    """Return what the p99 of live records may come to in a cell, seconds; None: only the promise is known yet."""
    return latency_limit_s(kept, cell, latency.MOST_RATIO) if row.limited else None


def summarise(kept: Mapping[MeasuredCell, Found]) -> dict[str, Any]:
    """Summarise all kept cells: an entry per row, and `cells`, a line for each."""
    finished = {load: finish.summarise(kept, load) for load in finish.LOADS}
    limited = {load: limits.summarise(kept, load) for load in limits.LOADS}
    decisions, differing = (sum(found[name] for found in kept.values()) for name in ("decisions", "differing"))
    return {
        latency.ROW: {load: latency.summarise(kept, load) for load in latency.LOADS},
        finish.ROW: {**finished, "all": finish.over_loads(finished)},
        deadlines.ROW: deadlines.summarise(kept),
        limits.ROW: {**limited, "all": limits.over_loads(limited)},
        "trace": {"decisions": decisions, "differing": differing if decisions else None},
        "cells": [{**cell._asdict(), **_short(found)} for cell, found in kept.items()],
    }  # fmt: skip


def _short(found: Found) -> dict[str, Any]:
    names = ("seconds", "p99_s", "limit_s", "done_s", "rps", "exact", "refused", "commit", "busy_before")
    return {name: found[name] for name in names}
