"""`tidecast bench promise`: what a change of the lead time in mid run does to what was learned and to the promise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from hashlib import sha256
from typing import Any

import numpy as np

from configs.bounds import DAY_S
from models.forecast.core.series import Series
from models.twin.experiment.foresight import issue_forecasts, steps_per_forecast_step
from models.twin.experiment.scenario import build_scenario
from models.twin.experiment.setup import Setup
from models.twin.promise.change import WITHIN, judge_change
from models.twin.promise.steering import BUDGETS, steps_after_history
from models.twin.sim.job import TwinError
from pipelines.backtest.load import read_load
from pipelines.bench.twin.drawn import FEW_LEADS, SEEDS, believed_lead_s, label_of

BEFORE_S, AFTER_S = 10.0, 60.0
LOADS = 4
"""Loads that are long enough, the first by a hash of their names."""
DAYS, CHANGED_DAYS = 4.0, 1.0
"""Days of each, from the later of day 8 and its first third on; the change comes after so many of them."""


def measure_change(
    loads: Sequence[str], known: Sequence[dict[str, Any]], save: Callable[[list[dict[str, Any]]], None]
) -> dict[str, Any]:
    """Steer `mpc` by promises of 0.1, 1 and 5 % while executors begin to take 60 s to start instead of 10.

    Args:
        loads: names or paths, as `read_load` takes them, of which `LOADS` are judged.
        known: parts that need not be measured again.
        save: called with the parts after each of them.

    Returns:
        What `summarise_change` makes of the parts, one per load: `load`, `believed_s` (what its contract states),
        `learned` (fields of `LearnedChange`), `accounts` (of `ChangedAccount`, and `judged`), and `why` nothing was
        judged ("" if it was).

    Raises:
        SeriesError, TraceError: a load cannot be read.
    """
    parts: list[dict[str, Any]] = []
    have = {part["load"]: part for part in known}
    for name in sorted(loads, key=lambda name: sha256(f"change {label_of(name)}".encode()).digest()):
        if sum(not part["why"] for part in parts) == LOADS:
            break
        parts.append(have.get(label_of(name)) or judge_changed_load(name, read_load(name).series))
        print(_line(parts[-1]), flush=True)
        save(parts)
    return summarise_change(parts)


def judge_changed_load(name: str, series: Series) -> dict[str, Any]:
    """Judge one load, see `measure_change`."""
    setup, believed_s = Setup(lead_s=BEFORE_S), believed_lead_s(name, BEFORE_S)
    part: dict[str, Any] = {"load": label_of(name), "believed_s": believed_s, "learned": [], "accounts": [], "why": ""}
    try:
        steps = steps_after_history(name, series, setup, DAYS)
        if (held := len(steps) * setup.step_s(series) / DAY_S) < 0.99 * DAYS:
            raise TwinError(f"{name}: {held:.1f} days are left to judge; {DAYS:g} are needed")
        many = steps_per_forecast_step(setup.step_s(series), AFTER_S + setup.hold_s)
        said = {"blend": issue_forecasts("blend", series, steps.start // 3, many)}
        scenario = build_scenario(name, series, steps, setup, range(SEEDS), said)
    except TwinError as error:
        return {**part, "why": str(error)}
    at_s = round(CHANGED_DAYS * DAY_S)
    learned, accounts = judge_change(scenario, believed_s, AFTER_S, at_s, BUDGETS)
    return {
        **part, "learned": [asdict(one) for one in learned],
        "accounts": [{**asdict(one), "judged": one.leads >= FEW_LEADS} for one in accounts],
    }  # fmt: skip


def summarise_change(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Judge parts together.

    Returns:
        `parts`; `runs`; `starts` and `starts_worst`, start-ups after which the new lead time was near, the median over
        the runs and the most (None where a run never came near); `near`, the share of the runs near after eight;
        `accounts`, those judged; `back`, the share on their line from a day after the change on; `back_h`, hours until
        it was, median (None where half were not); and `rows`, one per load and promise, of a table.
    """
    learned = [one for part in parts for one in part["learned"]]
    judged = [one for part in parts for one in part["accounts"] if one["judged"]]
    starts = [np.inf if one["starts"] is None else one["starts"] for one in learned]
    hours = [np.inf if one["back_h"] is None else one["back_h"] for one in judged]
    near = [abs(one["median"] - 1) <= 0.2 and abs(one["planned"] - 1) <= 0.3 for one in learned]
    return {
        "parts": parts, "from_s": BEFORE_S, "to_s": AFTER_S, "runs": len(learned),
        "starts": _finite(np.median, starts), "starts_worst": _finite(np.max, starts),
        "near": float(np.mean(near)) if near else None, "accounts": len(judged),
        "back": float(np.mean([one["later"] <= WITHIN * one["budget"] for one in judged])) if judged else None,
        "back_h": _finite(np.median, hours), "rows": [_row(part, one) for part in parts for one in part["accounts"]],
    }  # fmt: skip


def _finite(of: Callable[[Any], Any], values: Sequence[float]) -> float | None:
    found = float(of(values)) if values else np.inf
    return found if np.isfinite(found) else None


def _row(part: dict[str, Any], one: dict[str, Any]) -> dict[str, Any]:
    """A row of a table in the docs: late seconds as multiples of the budget, start-ups of the slowest draw."""
    starts = [run["starts"] for run in part["learned"] if run["budget"] == one["budget"]]
    late = {name: one[name] / one["budget"] for name in ("before", "first_day", "later")}
    return {
        "load": part["load"], "promise": f"{one['budget']:.1%}",
        "start-ups until known": None if None in starts else max(starts, default=None),
        "late ÷ budget, day before": late["before"],
        "day after": late["first_day"], "two days from then": late["later"], "hours until back": one["back_h"],
        "judged": "yes" if one["judged"] else "no",
    }  # fmt: skip


def _line(part: dict[str, Any]) -> str:
    if part["why"]:
        return f"{part['load']:28} 10 to 60 s  not judged: {part['why']}"
    starts = ", ".join("never" if one["starts"] is None else str(one["starts"]) for one in part["learned"])
    later = ", ".join(f"{one['later'] / one['budget']:.2f}" for one in part["accounts"])
    return f"{part['load']:28} 10 to 60 s  near after {starts} start-ups; from a day on late {later} x the budget"
