"""`tidecast bench placement --parts real`: all placements of all cases, each session kept, on a broker of its own."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
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

DRAWN, TURNS, LOOK_S = 3, 1, 5.0
"""Drawn placements of each case, sessions of each, and for how long the cores are watched before one, seconds."""


def measure_real(settings: Settings, save: Callable[[dict[str, Any]], None] = lambda found: None) -> dict[str, Any]:
    """Run every placement of every case, those of which a session is kept apart; about three minutes each.

    Sessions are kept in `var/bench/placement/real`; delete that folder to measure anew.

    Args:
        settings: without the address of a broker.
        save: called with the figures after each session.

    Returns:
        As `summary.summarise`, with the `commits` at which sessions were run.

    Raises:
        SettingsError: the address of a service is set.
        StackError, ProcessError, PortError, JavaError: a service or a cluster does not start. A session in which a
            query does not begin, or begins again, is said and left out.
        BrokerError: the broker does not answer.
        OSError: a session cannot be written.
    """
    own = isolated_settings(settings, "bench")
    own = own.model_copy(update={"var": own.var_dir / "placement"})
    folder = own.var_dir / "real"
    folder.mkdir(parents=True, exist_ok=True)
    placements = {name: distinct(compared(file)) for name, file in case_files().items()}
    order = [
        (turn, name, at) for turn in range(TURNS) for name, found in placements.items() for at in range(len(found))
    ]
    random.Random(0).shuffle(order)  # none is always first, and none is always beside the same one
    left = [cell for cell in order if _read(folder, *cell, placements[cell[1]][cell[2]][1]) is None]
    if left:
        with Stack(own, {"broker"}) as stack:
            for number, (turn, name, at) in enumerate(left, 1):
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
                _keep(folder, turn, name, at, {**found, "commit": find_commit(), "busy_before": busy})
                print(f"{told}: 95 % within {found['p95_s']} s, {found['said_s']:.1f} s by the model; at most "
                      f"{found['most_rps']:.0f} records/s, {found['said_rps']:.0f} by the model; {len(left) - number} "
                      f"left, {time.monotonic() - began:.0f} s each", flush=True)  # fmt: skip
                save(_figures(folder, placements))
    return _figures(folder, placements)


def compared(file: Path) -> dict[str, Placement]:
    """Return the placements of a case, by name."""
    return compared_placements(load_topology(file.stem, file.parent), DRAWN, seed=0)


def distinct(placements: dict[str, Placement]) -> list[tuple[list[str], Placement]]:
    """Return each placement once, with its names."""
    found: dict[Placement, list[str]] = {}
    for name, one in placements.items():
        found.setdefault(one, []).append(name)
    return [(names, one) for one, names in found.items()]


def _kept(folder: Path, turn: int, name: str, at: int) -> Path:
    return folder / f"{name}-{at}-{turn}.json"


def _keep(folder: Path, turn: int, name: str, at: int, found: dict[str, Any]) -> None:
    coming = _kept(folder, turn, name, at).with_suffix(".coming")
    coming.write_text(json.dumps(found))
    coming.replace(_kept(folder, turn, name, at))


def _read(folder: Path, turn: int, name: str, at: int, placement: Placement) -> dict[str, Any] | None:
    """A session that is kept; None where there is none, or it was of another placement or release."""
    file = _kept(folder, turn, name, at)
    found: dict[str, Any] | None = json.loads(file.read_text()) if file.is_file() else None
    if found is None or "followed_s" not in found or found["placement"] != json.loads(json.dumps(asdict(placement))):
        return None
    return found


def _figures(folder: Path, placements: dict[str, list[tuple[list[str], Placement]]]) -> dict[str, Any]:
    cases: dict[str, list[PlacementRuns]] = {}
    commits, missing = set[str](), 0
    for name, found in placements.items():
        for at, (names, placement) in enumerate(found):
            kept = [_read(folder, turn, name, at, placement) for turn in range(TURNS)]
            sessions = [one for one in kept if one is not None]
            missing += TURNS - len(sessions)
            if sessions:
                cases.setdefault(name, []).append(PlacementRuns(names, sessions))
                commits |= {one["commit"] or "unknown" for one in sessions}
    return {**summarise(cases, missing), "commits": sorted(commits)}
