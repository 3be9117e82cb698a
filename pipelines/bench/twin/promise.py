"""`tidecast bench promise`: is a promise kept that nobody tuned for, and what does that cost; in the twin."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from models.twin.experiment.benchmark import forecast_trace
from models.twin.experiment.scenario import build_scenario, split_trace
from models.twin.experiment.setup import Setup
from models.twin.experiment.steering import judge_steering
from pipelines.backtest.load import read_load

SEEDS, FEW_LEADS = 2, 5
"""Draws of the arrivals; a budget that lasts fewer lead times is shown and not judged."""


def measure_promise(loads: Sequence[str], lead_s: float, kept: Path | None = None) -> dict[str, Any]:
    """Steer `mpc` by promises of 0.1, 1 and 5 % on the newest part of each load, two loads at a time, and print each.

    Args:
        loads: names or paths, as `read_load` takes them.
        lead_s: lead time, seconds.
        kept: file of a figure of this command; loads that it has at this lead time are taken from there.

    Returns:
        `cells` (a row per load and promise: `load`, `lead_s`, fields of `SteeredCell`, `judged`), and of the judged
        ones: `within`, share with late ≤ 1.25 × budget, `beyond`, how many over 2 ×, `n`, and `cost`, executor-hours ÷
        those with the knob chosen in hindsight, median.

    Raises:
        SeriesError, TraceError, TwinError: a load cannot be read, or is too short; those before it are printed.
        OSError, ValueError: `kept` cannot be read.
    """
    cells = [cell for cell in _known(kept) if cell["lead_s"] == lead_s and cell["load"] in loads]
    left = [name for name in loads if name not in {cell["load"] for cell in cells}]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as both:
        for found in both.map(_judged, left, [lead_s] * len(left)):
            for cell in found:
                print(_line(cell), flush=True)
            cells += found
    cells.sort(key=lambda cell: (loads.index(cell["load"]), cell["budget"]))
    return {"cells": cells, **_together([cell for cell in cells if cell["judged"]])}


def _known(kept: Path | None) -> list[dict[str, Any]]:
    if kept is None or not kept.is_file():
        return []
    cells: list[dict[str, Any]] = json.loads(kept.read_text())["data"]["cells"]
    return cells


def _judged(name: str, lead_s: float) -> list[dict[str, Any]]:
    series, setup = read_load(name).series, Setup(lead_s=lead_s)
    _, test = split_trace(name, series, setup)
    forecasts = forecast_trace(name, series, setup, ("blend",))
    scenario = build_scenario(name, series, test, setup, range(SEEDS), forecasts)
    return [
        {
            "load": name, "lead_s": lead_s, **asdict(cell),
            "judged": cell.hindsight_hours is not None and cell.leads >= FEW_LEADS,
        }
        for cell in judge_steering(scenario)
    ]  # fmt: skip


def _line(cell: dict[str, Any]) -> str:
    least = cell["hindsight_hours"]
    cost = "no setting keeps it" if least is None else f"{cell['hours'] / least:.3f} x the hours of hindsight"
    few = "" if cell["judged"] else f"  (not judged; the budget lasts {cell['leads']:.1f} leads)"
    share = f"late {cell['late'] / cell['budget']:5.2f} x the budget of {cell['budget']:.1%}"
    return f"{cell['load']:28} {share}, {cost}{few}"


def _together(judged: list[dict[str, Any]]) -> dict[str, Any]:
    if not judged:
        return {"n": 0, "within": None, "beyond": None, "cost": None}
    late = np.array([cell["late"] / cell["budget"] for cell in judged])
    cost = np.array([cell["hours"] / cell["hindsight_hours"] for cell in judged])
    return {
        "n": len(judged), "within": float(np.mean(late <= 1.25)), "beyond": int((late > 2).sum()),
        "cost": float(np.median(cost)),
    }  # fmt: skip
