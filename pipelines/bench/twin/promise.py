"""`tidecast bench promise`: is a promise kept that nobody tuned for, and what does that cost; in the twin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import as_completed
from contextlib import ExitStack
from dataclasses import asdict
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from models.twin.experiment.foresight import IssuedForecasts, issue_forecasts, steps_per_forecast_step
from models.twin.experiment.scenario import Scenario, build_scenario
from models.twin.experiment.setup import Setup
from models.twin.promise.steering import judge_steering, steps_after_history
from models.twin.sim.job import TwinError
from pipelines.backtest.load import read_load
from pipelines.bench.twin.drawn import FEW_LEADS, SEEDS, believed_lead_s, half_of, label_of
from pipelines.bench.twin.lead_change import measure_change, summarise_change
from pipelines.figures.resumed import UNKNOWN, read_resumed, refuse_other
from pipelines.figures.written import find_commit
from pipelines.workers import worker_pool

WITHIN, BEYOND = 1.25, 2.0
"""Late seconds as a multiple of the budget: what counts as kept, and what never may be."""


def measure_promise(
    loads: Sequence[str], leads_s: Sequence[float], days: float, kept: Path | None = None,
    save: Callable[[dict[str, Any]], None] = lambda figures: None,
) -> dict[str, Any]:  # fmt: skip
    """Steer `mpc` by promises of 0.1, 1 and 5 %, and by the late seconds of the others' policies.

    Half of the loads share a simulation, in one of two processes. Before that, on few loads, while the lead time
    changes in mid run.

    Args:
        loads: names or paths, as `read_load` takes them.
        leads_s: lead times, seconds.
        days: of each load, from the later of day 8 and its first third on.
        kept: file of a figure of this command; loads that it has at a lead time are taken from there.
        save: called after half of the loads at one lead time with what there is by then.

    Returns:
        What `judge_together` makes of all cells; `leads`, the same by lead time (rows of a table), and `halves`, of
        either half of the loads (by a hash of their names); `beside_defaults`, executor-hours ÷ those of shipped
        policies, median of `n_defaults`; `days`; `digests`, by load; `change`, see `measure_change`; and `parts`, one
        per load and lead time: `commit`, `load`, `lead_s`, `believed_s` (what the contract states), `cells` (fields of
        `SteeredCell`, and `judged`), `defaults` (fields of `DefaultCell`), and `why` nothing was judged ("" if it was).

    Raises:
        SeriesError, TraceError: a load cannot be read.
        SettingsError: `kept` is of other days or has a load that is another one now, or does not say so.
        FigureError: it holds no figure.
        OSError: it cannot be read.
    """
    asked = list(product(leads_s, map(label_of, loads)))
    of = {"days": days, "digests": {label_of(name): read_load(name).series.digest for name in loads}}
    known = _known(kept, of)
    parts = [part for part in known.get("parts", []) if (part["lead_s"], part["load"]) in asked]
    changed = known.get("change", {}).get("parts", [])
    change = measure_change(loads, changed, lambda found: save(_figures(parts, asked, of, summarise_change(found))))
    done = {(part["lead_s"], part["load"]) for part in parts}
    with ExitStack() as stack:
        # Each has its process, which keeps the forecasts: they are the same at every lead time.
        both = [stack.enter_context(worker_pool(1)) for _ in range(2)]
        todo = [
            pool.submit(judge_loads, missing, lead_s, days)
            for lead_s in leads_s for half, pool in enumerate(both)
            if (missing := [name for name in loads[half::2] if (lead_s, label_of(name)) not in done])
        ]  # fmt: skip
        for found in as_completed(todo):
            for part in found.result():
                print("\n".join(_lines(part)), flush=True)
                parts.append(part)
            save(_figures(parts, asked, of, change))
    return _figures(parts, asked, of, change)


def _figures(
    parts: list[dict[str, Any]], asked: list[tuple[float, str]], of: dict[str, Any], change: dict[str, Any]
) -> dict[str, Any]:
    parts = sorted(parts, key=lambda part: asked.index((part["lead_s"], part["load"])))
    cells = [cell for part in parts for cell in part["cells"]]
    ratios = [one["steered_hours"] / one["hours"] for part in parts for one in part["defaults"]]
    leads_s = dict.fromkeys(lead_s for lead_s, _ in asked)
    leads = {lead_s: judge_together([cell for cell in cells if cell["lead_s"] == lead_s]) for lead_s in leads_s}
    halves = {str(half): judge_together([c for c in cells if half_of(c["load"]) == half]) for half in (1, 2)}
    return {
        **judge_together(cells), "leads": [_row(lead_s, found) for lead_s, found in leads.items()],
        "halves": halves, "beside_defaults": float(np.median(ratios)) if ratios else None, "n_defaults": len(ratios),
        **of, "change": change, "parts": parts,
    }  # fmt: skip


def _row(lead_s: float, found: dict[str, Any]) -> dict[str, Any]:
    """A row of a table in the docs."""
    return {
        "lead time, s": f"{lead_s:g}", "cells judged": found["n"], "within 1.25 ×": found["within"],
        "over 2 ×": found["beyond"], "executor-hours ÷ hindsight's": found["cost"],
    }  # fmt: skip


def judge_loads(names: Sequence[str], lead_s: float, days: float) -> list[dict[str, Any]]:
    """Judge loads at a lead time, see `measure_promise`; where one is too short there are no cells, and `why`."""
    setup, parts, scenarios = Setup(lead_s=lead_s), dict[str, dict[str, Any]](), dict[str, Scenario]()
    for name in names:
        parts[name] = {
            "commit": find_commit(), "load": label_of(name), "lead_s": lead_s,
            "believed_s": believed_lead_s(name, lead_s), "cells": [], "defaults": [], "why": "",
        }  # fmt: skip
        try:
            scenarios[name] = _scenario(name, setup, days)
        except TwinError as error:
            parts[name]["why"] = str(error)
    every = [(scenario, parts[name]["believed_s"]) for name, scenario in scenarios.items()]
    for name, (cells, defaults) in zip(scenarios, judge_steering(every) if every else [], strict=True):
        where = {"load": label_of(name), "lead_s": lead_s}
        parts[name]["cells"] = [
            {**where, **asdict(cell), "judged": cell.hindsight_hours is not None and cell.leads >= FEW_LEADS}
            for cell in cells
        ]
        parts[name]["defaults"] = [{**where, **asdict(one)} for one in defaults]
    return list(parts.values())


def _scenario(name: str, setup: Setup, days: float) -> Scenario:
    series = read_load(name).series
    steps = steps_after_history(name, series, setup, days)
    many = steps_per_forecast_step(setup.step_s(series), sum(setup.planned_s))
    said = {"blend": _issued(name, steps.start // 3, many)}
    return build_scenario(name, series, steps, setup, range(SEEDS), said)


@cache  # a long lead may take longer steps; the others have the same forecasts
def _issued(name: str, first: int, many: int) -> IssuedForecasts:
    return issue_forecasts("blend", read_load(name).series, first, many)


def judge_together(cells: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Judge cells together: only those with `judged`.

    Returns:
        `n`, their number; `within`, the share with late ≤ 1.25 × budget; `beyond`, how many over 2 ×; `cost`,
        executor-hours ÷ those with the knob chosen in hindsight, median. None where there are none.
    """
    judged = [cell for cell in cells if cell["judged"]]
    if not judged:
        return {"n": 0, "within": None, "beyond": None, "cost": None}
    late = np.array([cell["late"] / cell["budget"] for cell in judged])
    cost = np.array([cell["hours"] / cell["hindsight_hours"] for cell in judged])
    return {
        "n": len(judged), "within": float(np.mean(late <= WITHIN)), "beyond": int((late > BEYOND).sum()),
        "cost": float(np.median(cost)),
    }  # fmt: skip


def _known(kept: Path | None, of: dict[str, Any]) -> dict[str, Any]:
    """What the file has, unless of other days or of loads that are others now; each load is judged by itself."""
    known = read_resumed(kept, {"days": of["days"]})
    if kept is not None and known:
        parts = [*known.get("parts", []), *known.get("change", {}).get("parts", [])]
        measured = {part["load"] for part in parts} & set(of["digests"])
        both = known.get("digests", {}), of["digests"]
        held, asked = ({load: digests.get(load, UNKNOWN) for load in sorted(measured)} for digests in both)
        refuse_other(kept, {"digests": held}, {"digests": asked})
    return known


def _lines(part: dict[str, Any]) -> list[str]:
    where = f"{part['load']:28} {part['lead_s']:5g} s"
    return [f"{where}  not judged: {part['why']}"] if part["why"] else [f"{where}  {_line(c)}" for c in part["cells"]]


def _line(cell: dict[str, Any]) -> str:
    least = cell["hindsight_hours"]
    cost = "no setting keeps it" if least is None else f"{cell['hours'] / least:.3f} x the hours of hindsight"
    few = "" if cell["judged"] else f"  (not judged; the budget lasts {cell['leads']:.1f} leads)"
    return f"late {cell['late'] / cell['budget']:5.2f} x the budget of {cell['budget']:.1%}, {cost}{few}"
