"""`tidecast bench placement --parts real`: all placements of all cases, on a broker of its own.

Each session is kept in the figure itself, so that hours of them may be run in parts, and on more than one computer.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil

from configs.settings import Settings
from configs.topology import load_topology
from models.placement.plan.compared import compared_placements
from models.placement.plan.measured import Placement
from pipelines.bench.placement.real.cases import case_files
from pipelines.bench.placement.real.session import run_placement
from pipelines.bench.placement.real.summary import PlacementRuns, summarise
from pipelines.figures.written import find_commit
from pipelines.placement.tried import TrialError
from pipelines.stack.isolation import isolated_settings
from pipelines.stack.stack import Stack

DRAWN, TURNS, LOOK_S = 5, 3, 5.0
"""Drawn placements of each case, sessions of each, and for how long the cores are watched before one, seconds."""


Kept = dict[str, dict[str, Any]]
"""Sessions by the names of their cells."""
Placements = Mapping[str, list[tuple[list[str], Placement]]]
"""Of each case the distinct placements, with their names."""


def measure_real(
    settings: Settings, earlier: Mapping[str, Any], save: Callable[[dict[str, Any]], None] = lambda found: None
) -> dict[str, Any]:
    """Run every placement of every case of which no session is kept; about three minutes each.

    Args:
        settings: without the address of a broker.
        earlier: figures of an earlier call, whose sessions of the same placements count; empty: all are run.
        save: called with the figures after each session.

    Returns:
        As `figures`: `summary.summarise` of whole `turns`, with the `commits` at which sessions were run, and these as
        `kept`.

    Raises:
        SettingsError: the address of a service is set.
        StackError, ProcessError, PortError, JavaError: a service or a cluster does not start. A session in which a
            query does not begin, or begins again, is said and left out.
        BrokerError: the broker does not answer.
        OSError: the figures cannot be written.
    """
    own = isolated_settings(settings, "bench")
    own = own.model_copy(update={"var": own.var_dir / "placement"})
    placements = {name: distinct(compared(file)) for name, file in case_files().items()}
    order = [cell for turn in range(TURNS) for cell in _turn(placements, turn)]
    kept = {
        _cell(*cell): session for cell in order
        if (session := earlier.get("kept", {}).get(_cell(*cell))) and _is_of(session, placements[cell[0]][cell[1]][1])
    }  # fmt: skip
    left = [cell for cell in order if _cell(*cell) not in kept]
    if left:
        with Stack(own, {"broker"}) as stack:
            for number, (name, at, turn) in enumerate(left, 1):
                began, busy = time.monotonic(), psutil.cpu_percent(LOOK_S) / 100
                kafka = stack.settings.kafka.model_copy(update={"prefix": f"{name}.{at}.{turn}."})
                apart = stack.settings.model_copy(update={"kafka": kafka})
                names, placement = placements[name][at]
                told = f"{name}, {', '.join(names)}"
                try:
                    found = run_placement(apart, case_files()[name], placement, turn)
                except TrialError as error:
                    print(f"{told}: {error}", flush=True)  # it is left to another call
                    continue
                kept[_cell(name, at, turn)] = {**found, "commit": find_commit(), "busy_before": busy}
                print(f"{told}: 95 % within {found['p95_s']} s, {found['said_s']:.1f} s by the model; at most "
                      f"{found['most_rps']:.0f} records/s, {found['said_rps']:.0f} by the model; {len(left) - number} "
                      f"left, {time.monotonic() - began:.0f} s each", flush=True)  # fmt: skip
                save(figures(kept, placements))
    return figures(kept, placements)


def compared(file: Path) -> dict[str, Placement]:
    """Return the placements of a case, by name."""
    return compared_placements(load_topology(file.stem, file.parent), DRAWN, seed=0)


def distinct(placements: dict[str, Placement]) -> list[tuple[list[str], Placement]]:
    """Return each placement once, with its names."""
    found: dict[Placement, list[str]] = {}
    for name, one in placements.items():
        found.setdefault(one, []).append(name)
    return [(names, one) for one, names in found.items()]


def _turn(placements: Placements, turn: int) -> list[tuple[str, int, int]]:
    """A session of every placement; none is always first, and none is always beside the same one."""
    found = [(name, at, turn) for name, of_case in placements.items() for at in range(len(of_case))]
    random.Random(turn).shuffle(found)
    return found


def _cell(name: str, at: int, turn: int) -> str:
    return f"{name}-{at}-{turn}"


def _is_of(session: Mapping[str, Any], placement: Placement) -> bool:
    """Whether a session is of this placement: rules that plan another one make it old."""
    return bool(session["placement"] == json.loads(json.dumps(asdict(placement))))


def figures(kept: Kept, placements: Placements) -> dict[str, Any]:
    """Summarise the turns that are whole, or the first: one that was begun would judge by unequal numbers."""
    whole = [all(_cell(*cell) in kept for cell in _turn(placements, turn)) for turn in range(TURNS)]
    turns = whole.index(False) if False in whole else TURNS
    cases: dict[str, list[PlacementRuns]] = {}
    missing = 0
    for name, found in placements.items():
        for at, (names, _) in enumerate(found):
            cells = [_cell(name, at, turn) for turn in range(max(turns, 1))]
            sessions = [kept[cell] for cell in cells if cell in kept]
            missing += len(cells) - len(sessions)
            if sessions:
                cases.setdefault(name, []).append(PlacementRuns(names, sessions))
    commits = sorted({one["commit"] or "unknown" for one in kept.values()})
    return {**summarise(cases, missing), "turns": turns, "commits": commits, "kept": kept}
