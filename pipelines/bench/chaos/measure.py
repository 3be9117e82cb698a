"""`tidecast bench chaos`: sessions of cells, each kept in the figure, so that hours of them may be run in parts."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from configs.settings import Settings
from pipelines.bench.chaos.cells import CELLS, CORRUPTED, FAULTS, FURTHER, PARTS, TABLE
from pipelines.bench.chaos.session import run_cell
from pipelines.bench.chaos.site_under_load import prepare
from pipelines.figures.written import find_commit
from pipelines.stack.isolation import isolated_settings


def measure_chaos(
    settings: Settings, cells: Collection[str], runs: int, earlier: Mapping[str, Any],
    save: Callable[[dict[str, Any]], None],
) -> dict[str, Any]:  # fmt: skip
    """Run sessions of cells, in turns, until each has as many as asked for; some three minutes each.

    Args:
        settings: without an address of a broker, registry or Airflow.
        cells: names, of CELLS.
        runs: sessions of each.
        earlier: figures of an earlier call, whose sessions count.
        save: called with all figures after each session.

    Returns:
        `kept` (sessions by cell); of the table's `cells` how many were `ran`, `passed` in all of their `sessions`, and
        `refused` to start until the command that they named was run; `slowest_s`, the longest `back_s` of each part;
        what is done (`faults`, `corrupted`); `further_ran` and `further_passed`, cells beyond the table, and `further`,
        what is done there.

    Raises:
        SettingsError: such an address is configured.
        StackError, DemoError, ...: as `prepare`. A session that does not get to its load is told and left to another
            call.
    """
    folder = isolated_settings(settings, "bench").var_dir / "chaos"
    kept = {name: list(earlier.get("kept", {}).get(name, [])) for name in CELLS}
    left = [name for turn in range(runs) for name in CELLS if name in cells and len(kept[name]) <= turn]
    if left:
        prepared = prepare(isolated_settings(settings, "bench"), folder)
    for name in left:
        began = time.monotonic()
        try:
            found = run_cell(prepared, folder / "brokers", CELLS[name])
        except Exception as error:  # the site did not come to its load: it is told, and left to another call
            print(f"{name}: not measured: {type(error).__name__}: {error}", flush=True)
            continue
        kept[name].append({**found, "commit": find_commit()})
        verdict = "passed" if has_passed(found) else "FAILED"
        print(f"{name}: {verdict} after {time.monotonic() - began:.0f} s: {found}", flush=True)
        save(summarise(kept))
    return summarise(kept)


def has_passed(session: Mapping[str, Any]) -> bool:
    """Whether all records were counted once, the account is right, the part came back, and nothing was left running."""
    exact = 0 < session.get("produced", 0) == session["counted"]
    exact = exact and not session["lost"] and not session["duplicated"]
    whole = session["account"] == "kept" or (session["account"] == "anew" and session["command"] is not None)
    return bool(exact and whole and session["back_s"] is not None and not session["failed"] and not session["left"])


def summarise(kept: Mapping[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Return the figures of sessions by cell."""
    ran = {name: kept[name] for name in TABLE if kept.get(name)}
    beyond = {cell.name: kept[cell.name] for cell in FURTHER if kept.get(cell.name)}
    passed, beyond_passed = (
        sum(all(map(has_passed, sessions)) for sessions in found.values()) for found in (ran, beyond)
    )
    back = {part: [one["back_s"] for name in ran if CELLS[name].part == part for one in ran[name]] for part in PARTS}
    seen = {part: [one for one in found if one is not None] for part, found in back.items()}
    return {
        "kept": {**ran, **beyond}, "ran": len(ran), "cells": len(TABLE), "passed": passed,
        "sessions": sum(map(len, ran.values())), "fewest": min(map(len, ran.values()), default=0),
        "further_fewest": min(map(len, beyond.values()), default=0),
        "slowest_s": {part: max(found) for part, found in seen.items() if found},
        "refused": sum(any(one["command"] for one in sessions) for sessions in ran.values()),
        "faults": dict(FAULTS), "corrupted": dict(CORRUPTED), "further_ran": len(beyond),
        "further_passed": beyond_passed, "further": {cell.name: done for cell, done in FURTHER.items()},
    }  # fmt: skip
