"""`tidecast bench headroom`: what a policy that sets the parameters of `mpc` could gain, and what it can learn to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from configs.contract import BATCH_SHARE
from models.policy.catalogue import entry
from models.policy.core.capacity import Floats, Integers
from models.twin.experiment.benchmark import forecast_trace, optimum_results
from models.twin.experiment.foresight import IssuedForecasts, steps_per_forecast_step
from models.twin.experiment.frontier import least_cost_at
from models.twin.experiment.scenario import Scenario, build_scenario, split_trace
from models.twin.experiment.setup import Setup
from models.twin.headroom.observed import (
    NEW,
    choose_observed,
    columns_without,
    learn_outcomes,
    observed_states,
)
from models.twin.headroom.parts import Actions, PartOutcomes, best_by_part, simulate_parts
from models.twin.sim.given import Looks
from pipelines.backtest.load import NamedLoad, read_load
from pipelines.bench.dqn.headroom_tables import BUDGETS, summarise_headroom
from pipelines.figures.resumed import read_resumed

SCALINGS = (1.0, 0.8)
"""True exponents of the capacity; policies believe 1, and the service time to be twice what it is."""
PART_LEADS, FOLDS = 4, 4
"""Lead times that a part lasts; folds of the loads, by the order of a hash of their names: nothing is learned of one's
own fold."""
EVERY_S = 60
"""Seconds between two looks, of the policies and of the clairvoyant plan: a tenth of a lead time or less."""
MIDDLE = 1.0
"""Price of the planner whose states are observed."""
UTILISATIONS, HOLDS, MORE = (0.9, 1.1), (0.0, 1800.0), (-1.0, 1.0, 2.0)
"""Beside what `mpc` has: 1, its contract's 300 s, and 0."""
SEEDS = (1, 2, 3)


@dataclass(frozen=True)
class MinuteSetup(Setup):
    """A setup whose policies look every `EVERY_S`."""

    @cached_property
    def looks(self) -> Looks:
        """Every minute, at the rate of the last one."""
        return Looks(EVERY_S, EVERY_S, BATCH_SHARE * self.twin_job.latency_target_s)


def list_actions(hold_s: float) -> tuple[Actions, dict[str, Integers]]:
    """Return all actions, `mpc` at its middle price first, and by family the indices of those it may choose from.

    The family "price" is `mpc` itself at every price; the others have its prices, too.
    """
    rungs = entry("mpc").values
    half = np.interp(np.arange(0, len(rungs) - 0.75, 0.5), np.arange(len(rungs)), rungs)
    rows = [(price, 1.0, hold_s, 0.0) for price in sorted(half.tolist(), key=lambda price: abs(price - MIDDLE))]
    families = {"price": np.arange(len(rows))}
    for name, at, values in (("margin", 1, UTILISATIONS), ("hold", 2, HOLDS), ("executors", 3, MORE)):
        others = [[price, 1.0, hold_s, 0.0] for price in rungs for _ in values]
        for row, value in zip(others, values * len(rungs), strict=True):
            row[at] = value
        families[name] = np.append(families["price"], len(rows) + np.arange(len(others)))
        rows += [(a, b, c, d) for a, b, c, d in others]
    families["all"] = np.arange(len(rows))
    return Actions(*np.array(rows).T), families


def measure_headroom(
    loads: Sequence[str], leads_s: Sequence[float], days: float, kept: Path | None = None,
    save: Callable[[dict[str, Any]], None] = lambda figures: None,
) -> dict[str, Any]:  # fmt: skip
    """Compare `mpc` with the clairvoyant optimum, with its actions chosen in hindsight, and with what can be learned.

    Args:
        loads: names or paths, as `read_load` takes them; at least two.
        leads_s: lead times, seconds.
        days: most days of each load, its newest.
        kept: file of a figure of this command, whose lead times are not computed again.
        save: called after each lead time with the figures of these and of all that the file has.

    Returns:
        `cells`, one per load, lead time, exponent of the capacity and budget (`judge_headroom`), what
        `summarise_headroom` makes of them, `days`, `digests` (by load), and `leads_s`.

    Raises:
        SeriesError, TraceError: a load cannot be read.
        TwinError: a load is too short, or has gaps.
        SettingsError: `kept` is of other loads or days, or does not say of which.
        FigureError: it holds no figure.
        OSError: it cannot be read.
    """
    named = [read_load(name) for name in loads]
    # Actions are learned from all loads together, so that a cell hangs on each of them.
    asked = {"days": days, "digests": {one.name: one.series.digest for one in named}}
    known = read_resumed(kept, asked)
    cells, done = known.get("cells", []), known.get("leads_s", [])
    said: dict[tuple[str, int], dict[str, IssuedForecasts]] = {}
    for lead_s in leads_s:
        if lead_s not in done:
            plain = MinuteSetup(lead_s=lead_s, test_days=days)
            setups = [plain, *(replace(plain, job=replace(plain.twin_job, scaling=power)) for power in SCALINGS[1:])]
            cells += judge_headroom([[_scenario(one, setup, said) for one in named] for setup in setups])
            done.append(lead_s)
        save(_figures(cells, done, asked))
    return _figures(cells, done, asked)


def _figures(cells: list[dict[str, Any]], done: list[float], asked: dict[str, Any]) -> dict[str, Any]:
    return {**summarise_headroom(cells), **asked, "leads_s": done, "cells": cells}


def _scenario(one: NamedLoad, setup: Setup, said: dict[tuple[str, int], dict[str, IssuedForecasts]]) -> Scenario:
    key = one.name, steps_per_forecast_step(setup.step_s(one.series), sum(setup.planned_s))
    if key not in said:
        said[key] = forecast_trace(one.name, one.series, setup, ("blend",))
    _, test = split_trace(one.name, one.series, setup)
    return build_scenario(one.name, one.series, test, setup, range(1), said[key])


def judge_headroom(groups: Sequence[Sequence[Scenario]]) -> list[dict[str, Any]]:
    """Judge scenarios with the same lead time, a group per exponent of the capacity; a cell per scenario and budget.

    Returns:
        By cell: where it is; executor-hours of `mpc` and `optimum`, None where the budget is not kept; and ratios to
        the executor-hours of `mpc`: `constant` and `by_part`, of the actions that were best in hindsight, by family,
        and `learned`, of actions chosen by what is observed, as learned from the loads of other folds.
    """
    setup = groups[0][0].setup
    part_s = PART_LEADS * setup.lead_s
    actions, families = list_actions(setup.contract.planning.scale_down_delay_s)
    every = np.arange(len(actions.more))
    scenarios = [one for group in groups for one in group]
    alone: list[PartOutcomes] = []
    for group in groups:
        many = [max(1, round((one.seconds - one.warm_s) / part_s)) for one in group]
        alone += simulate_parts(group, actions, [np.tile(every, (parts, 1)) for parts in many], part_s)
    found = _learned_tables(scenarios, alone, actions, families["price"], part_s)
    chosen = [("price", 3), ("all", 3), ("all", 12)]
    for tables, parts in zip(found, alone, strict=True):
        for name, together in chosen:
            tables[f"{name}, {PART_LEADS * together} leads"] = best_by_part(parts, families[name], together)
    cells, size = [], len(groups[0])
    for at, (group, power) in enumerate(zip(groups, SCALINGS, strict=False)):
        mine = slice(at * size, (at + 1) * size)
        joined = [np.concatenate(list(tables.values()), axis=1) for tables in found[mine]]
        timed = simulate_parts(group, actions, joined, part_s)
        for scenario, parts, split in zip(group, alone[mine], timed, strict=True):
            ends = np.cumsum([table.shape[1] for table in found[0].values()])
            runs = dict(zip(found[0], np.split(np.arange(ends[-1]), ends[:-1]), strict=True))
            cells += _cells(scenario, power, (parts, families), (split, runs))
    return cells


def _learned_tables(
    scenarios: Sequence[Scenario], alone: Sequence[PartOutcomes], actions: Actions, prices: Integers, part_s: float
) -> list[dict[str, Integers]]:
    """By scenario, the actions that a choice by observation takes, by what it looks at, learned from other loads."""
    states = [observed_states(parts, one, part_s) for one, parts in zip(scenarios, alone, strict=True)]
    ordered = sorted({one.name for one in scenarios}, key=lambda name: sha256(name.encode()).digest())
    fold = np.array([ordered.index(one.name) % FOLDS for one in scenarios])
    rungs = actions.violation_cost
    near = [_allowed(rungs, own) for own in prices]
    looked_at = {f"seed {seed}": (columns_without(), seed) for seed in SEEDS}
    looked_at |= {f"without {kind}": (columns_without(kind), SEEDS[0]) for kind in NEW}
    looked_at |= {"without all three": (columns_without(*NEW), SEEDS[0])}
    found: list[dict[str, Integers]] = [{} for _ in scenarios]
    for name, (columns, seed) in looked_at.items():
        for mine in np.unique(fold):
            others = np.flatnonzero(fold != mine).tolist()
            given = [states[i] for i in others], [alone[i] for i in others]
            learned = learn_outcomes(*given, columns, rungs[prices], seed)
            for i in np.flatnonzero(fold == mine).tolist():
                found[i][name] = choose_observed(learned, states[i], columns, near)
    return found


def _allowed(rungs: Floats, own: int) -> Integers:
    """Return the indices of the actions whose price is at most a rung of the planner's ladder from that of `own`."""
    ladder = entry("mpc").values
    place = np.interp(rungs, ladder, np.arange(len(ladder)))
    return np.flatnonzero(np.abs(place - place[own]) <= 1 + 1e-9)


def _cells(
    scenario: Scenario, power: float, alone: tuple[PartOutcomes, dict[str, Integers]],
    timed: tuple[PartOutcomes, dict[str, Integers]],
) -> list[dict[str, Any]]:  # fmt: skip
    made = []
    for budget, optimum in zip(BUDGETS, optimum_hours(scenario), strict=True):
        fixed = {name: _hours(scenario, alone[0], runs, budget) for name, runs in alone[1].items()}
        other = {name: _hours(scenario, timed[0], runs, budget) for name, runs in timed[1].items()}
        mpc = fixed.pop("price")
        fixed = {name: np.fmin(hours, mpc) for name, hours in fixed.items()}  # lines between more points may lie higher
        family = {name: name.split(",")[0] for name in other if "leads" in name}
        by_part = {name: np.fmin(other[name], fixed.get(kind, mpc)) for name, kind in family.items()}
        made.append({
            "load": scenario.name, "lead_s": scenario.setup.lead_s, "power": power, "budget": budget,
            "mpc": _finite(mpc), "optimum": _finite(optimum), "above": _finite(mpc / optimum),
            "constant": {name: _finite(hours / mpc) for name, hours in fixed.items()},
            "by_part": {name: _finite(hours / mpc) for name, hours in by_part.items()},
            "learned": {name: _finite(hours / mpc) for name, hours in other.items() if name not in family},
        })  # fmt: skip
        print(_line(made[-1]), flush=True)
    return made


def _hours(scenario: Scenario, parts: PartOutcomes, runs: Integers, budget: float) -> float:
    counted_s = scenario.seconds - scenario.warm_s
    late, paid = parts.late[:, runs].sum(axis=0) / counted_s, parts.paid[:, runs].sum(axis=0) / 3600
    return least_cost_at(late, paid, budget)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def optimum_hours(scenario: Scenario) -> Floats:
    """Return (budgets,) executor-hours of the clairvoyant plan after the warm-up, NaN where it breaks the budget.

    It knows load, capacity, and the draws of start-ups and batches.
    """
    found = optimum_results(scenario, BUDGETS)
    return np.where(found.violation <= np.array(BUDGETS)[:, None], found.hours, np.nan)[:, 0]


def _line(cell: dict[str, Any]) -> str:
    where = f"{cell['load']:24} {cell['lead_s']:5g} s  ^{cell['power']:g}  {cell['budget']:.1%}"
    if cell["above"] is None:
        return f"{where}  not kept"
    found = {**cell["by_part"], **cell["learned"]}
    said = ", ".join(f"{name} {found[name] or np.nan:.3f}" for name in found if "all" in name or "seed" in name)
    return f"{where}  {cell['above']:.3f} x the optimum; constant {cell['constant']['all']:.3f}; {said}"
