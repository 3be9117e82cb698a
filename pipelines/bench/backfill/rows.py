"""The rows of the table: which cells each needs, how those are arranged, and what the kept ones come to; pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from configs.errors import SettingsError
from pipelines.bench.backfill import deadlines, faults, finish, latency, limits, outages, workloads
from pipelines.bench.backfill.arrangement import Arrangement, arrange
from pipelines.bench.backfill.cells import Found, MeasuredCell, latency_limit_s
from pipelines.bench.backfill.faults import FaultySession
from pipelines.bench.backfill.loads import CORRECTED, STEADY
from pipelines.bench.backfill.outages import OutageSession
from pipelines.bench.backfill.workloads import GENERATED, WorkloadSession


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
    arrange: Callable[[MeasuredCell], Arrangement | OutageSession | FaultySession | WorkloadSession]
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
    outages.ROW: TableRow(outages.MINUTES, lambda minutes: outages.plan_load(STEADY, minutes), outages.arrange_outage),
    faults.ROW: TableRow(faults.MINUTES, lambda minutes: faults.plan_load(CORRECTED, minutes), faults.arrange_faults),
    workloads.ROW: TableRow(
        workloads.MINUTES, lambda minutes: workloads.plan_load(GENERATED, minutes), workloads.arrange_workload
    ),
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


def summarise(kept: Mapping[MeasuredCell, Found], before: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Summarise all kept cells.

    Args:
        kept: cells.
        before: an earlier summary, of which rows and loads without a kept cell are taken over; None: none.

    Returns:
        An entry per row; `cells`, a line for each; `trace`, their `decisions` and how many of these are `differing`;
        `commits` at which they were measured.
    """
    earlier, measured = before or {}, {(cell.row, cell.load) for cell in kept}

    def of_loads(module: Any) -> dict[str, Any]:
        known = {load: one for load, one in earlier.get(module.ROW, {}).items() if (module.ROW, load) not in measured}
        return {load: known.get(load) or module.summarise(kept, load) for load in module.LOADS}

    finished = {load: finish.judge(one) for load, one in of_loads(finish).items()}
    limited = of_loads(limits)
    dated = any(row == deadlines.ROW for row, _ in measured)
    lines = [{**cell._asdict(), **_short(found)} for cell, found in kept.items()]
    lines += [
        one for one in earlier.get("cells", [])
        if (one["row"], one["load"]) not in measured and not (dated and one["row"] == deadlines.ROW)
    ]  # fmt: skip
    decisions, differing = (sum(one[name] for one in lines) for name in ("decisions", "differing"))
    return {
        latency.ROW: of_loads(latency),
        finish.ROW: {**finished, "all": finish.over_loads(finished)},
        deadlines.ROW: (not dated and earlier.get(deadlines.ROW)) or deadlines.summarise(kept),
        limits.ROW: {**limited, "all": limits.over_loads(limited)},
        outages.ROW: of_loads(outages),
        faults.ROW: of_loads(faults), workloads.ROW: of_loads(workloads),
        "trace": {"decisions": decisions, "differing": differing if decisions else None},
        "cells": lines, "commits": sorted({one["commit"] or "unknown" for one in lines}),
    }  # fmt: skip


def _short(found: Found) -> dict[str, Any]:
    names = (
        "seconds", "p99_s", "limit_s", "done_s", "rps", "exact", "refused", "decisions", "differing", "commit",
        "busy_before",
    )  # fmt: skip
    return {name: found[name] for name in names}
