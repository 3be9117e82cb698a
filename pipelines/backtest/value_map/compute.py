"""The value map over several traces, in several processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import Any

from configs.errors import SettingsError
from models.policy.catalogue import select_names
from models.twin.experiment.benchmark import BenchmarkCase, Effort, forecast_trace, optimum_results, run_benchmark
from models.twin.experiment.contenders import OURS, REACTIVE, forecasters_of, select_contenders
from models.twin.experiment.foresight import IssuedForecasts, steps_per_forecast_step
from models.twin.experiment.results import OPTIMUM, to_json_values
from models.twin.experiment.scenario import split_trace
from models.twin.experiment.setup import Setup
from models.twin.experiment.value import (
    LEADS_S,
    OPTIMUM_AT,
    OPTIMUM_LEAD_S,
    VIOLATIONS,
    compare_at_usual_settings,
    compare_policies,
    compare_without_forecaster,
    summarise,
)
from pipelines.backtest.load import NamedLoad
from pipelines.backtest.value_map.parts import describe_inputs, read_parts
from pipelines.backtest.value_map.tables import by_default, by_lead_time
from pipelines.figures.written import write_figure
from pipelines.workers import worker_pool


def compute_value_map(
    traces: Sequence[NamedLoad], setup: Setup, names: Iterable[str], effort: Effort, processes: int,
    report_progress: Callable[[str], None], learned: dict[str, Any] | None = None, leads_s: Iterable[float] = LEADS_S,
    file: Path | None = None, resume: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Compute what a forecast is worth per trace, lead time and allowed violation, by replays under all policies.

    Violation is the share of seconds over the latency target. Blocks for minutes to hours; workers end with it.

    Args:
        traces: loads, of different names; at least one.
        setup: of every replay; its lead time is replaced.
        names: of policies, one of ours among them; the best reactive one is sought among them.
        effort: numbers of values of each policy's tuned parameter and of seeds.
        processes: workers, at least 1.
        report_progress: called with a line of text when the forecasts are made and after each lead time.
        learned: DQN policies or timetables, by policy.
        leads_s: lead times in seconds, at least one.
        file: the figure is written there after each lead time, over what it held; None writes nothing.
        resume: take the lead times that the file holds from an earlier run, and compute only the others.

    Returns:
        The inputs (`traces` (names), `leads_s`, `violations`, `test_days`, `seeds`, `knobs` (values of the parameter),
        `reactive`, `ours`, and `setup` and `digests` of `describe_inputs`), `policies` that took part, `left_out`
        (reasons by name), `as_shipped` (see `compare_at_usual_settings`), over all cells `summary` (see `summarise`)
        and `forecast_adds` (see `compare_without_forecaster`), and `cells`, one per trace, lead time and allowed
        violation: `trace`, `lead_s`, `violation`, `best_reactive` (name or None), `hours` (executor-hours by policy),
        `gap` (share of the best reactive hours that the true future saves), and by policy of ours `ratio` (÷ the best
        reactive hours) and `captured` (share of the gap); also the tables of `tables`, `by_lead_time` and `by_default`.
        NaN and infinities are None.

    Raises:
        SettingsError: an unknown policy, one asked for by name that cannot be built, two traces of one name, or a file
            to resume from that holds another map.
        FigureError, KeyError, OSError: that file holds no map, or cannot be read or written.
        TwinError, SeriesError: a trace is too short, has gaps, negative or infinite rates, or cannot be scaled to the
            job.
        ValueError, IndexError: no lead time or no process; IndexError at the end, if none of our policies took part.
        BrokenProcessPool: a worker died.
    """
    policies, leads = tuple(names), tuple(leads_s)
    select_names(policies)
    called = [one.name for one in traces]
    if twice := {name for name in called if called.count(name) > 1}:
        raise SettingsError(
            f"two traces are called {min(twice)}; the map tells them apart by name: leave one out, or rename a file."
        )
    for one in traces:
        split_trace(one.name, one.series, replace(setup, lead_s=max(leads)))
    found, left_out = select_contenders(policies, setup.contract, learned or {})
    inputs = to_json_values({
        "traces": called, "violations": VIOLATIONS, "test_days": setup.test_days, "seeds": effort.seeds,
        "knobs": effort.knobs, "reactive": REACTIVE, "ours": OURS, "policies": [one.name for one in found],
        "left_out": left_out, **describe_inputs(traces, setup, learned or {}),
    })  # fmt: skip
    parts = read_parts(file, inputs) if resume and file is not None else {}
    setups = [replace(setup, lead_s=lead) for lead in leads if lead not in parts]
    with worker_pool(processes, _alone) as pool:
        issued = _listened(pool, traces, setups, forecasters_of(found))
        report_progress(f"forecasts of {len(traces)} traces are made")
        # All traces of a lead time at once: the more runs share a simulation, the less each of them costs.
        cases = [
            [BenchmarkCase(one.name, one.series, at_trace) for one, at_trace in zip(traces, at_lead, strict=True)]
            for at_lead in issued
        ]
        alike = (repeat(one) for one in (policies, replace(effort, oracle=False), learned or {}))
        for at, part in zip(setups, pool.map(map_lead_time, setups, cases, *alike), strict=True):
            parts[at.lead_s] = part
            report_progress(f"{at.lead_s:g} s: {len(traces)} traces ({len(parts)} of {len(leads)})")
            write_figure(file, _summed_up(inputs, parts))
    return _summed_up(inputs, parts)


def _summed_up(inputs: dict[str, Any], parts: dict[float, dict[str, Any]]) -> dict[str, Any]:
    """The map over the lead times of `parts`, as JSON values."""
    cells = [cell for _, part in sorted(parts.items()) for cell in part["cells"]]
    defaults = [one for _, part in sorted(parts.items()) for one in part["as_shipped"]]
    found = inputs | to_json_values({
        "leads_s": sorted(parts), "summary": summarise(cells, defaults),
        "forecast_adds": compare_without_forecaster(cells), "cells": cells, "as_shipped": defaults,
    })  # fmt: skip
    ours = list(found["summary"])
    tables = {"by_lead_time": by_lead_time(found["cells"], ours), "by_default": by_default(found["summary"], ours)}
    return {**found, **tables}


def map_lead_time(
    setup: Setup, cases: list[BenchmarkCase], names: tuple[str, ...], effort: Effort, learned: dict[str, Any]
) -> dict[str, Any]:
    """Replay traces under policies at one lead time, and return their part of the value map.

    Args:
        setup: with the lead time.
        cases: traces with their forecasts.
        names: of policies.
        effort: numbers of values of each policy's tuned parameter and of seeds.
        learned: DQN policies or timetables, by policy.

    Returns:
        `cells` and `as_shipped` (lists of dicts) as in `compute_value_map`; numbers may be NaN.

    Raises:
        SettingsError: an unknown policy, or one asked for by name that cannot be built.
        TwinError: a trace is too short, has gaps or negative rates, or cannot be scaled to the job.
        KeyError: a case lacks the forecasts that a policy receives.
    """
    selected, _ = select_contenders(names, setup.contract, learned)
    results = run_benchmark(cases, setup, selected, effort)
    if setup.lead_s == OPTIMUM_LEAD_S:
        for one in results:
            one.results[OPTIMUM] = optimum_results(one.scenario, (OPTIMUM_AT,))
    return {
        "cells": [cell for one in results for cell in compare_policies(one)],
        "as_shipped": [default for one in results for default in compare_at_usual_settings(one)],
    }


def _listened(
    pool: Executor, traces: Sequence[NamedLoad], setups: Sequence[Setup], forecasters: Sequence[str]
) -> list[list[dict[str, IssuedForecasts]]]:
    """What forecasters said of every trace, by setup; made once where lead times need the same steps."""
    running: dict[tuple[str, int], Future[dict[str, IssuedForecasts]]] = {}
    asked = []
    for at in setups:
        for one in traces:
            key = one.name, steps_per_forecast_step(at.step_s(one.series), sum(at.planned_s))
            if key not in running:
                running[key] = pool.submit(forecast_trace, one.name, one.series, at, forecasters)
            asked.append(running[key])
    said = [future.result() for future in asked]
    return [said[i : i + len(traces)] for i in range(0, len(said), len(traces))]


def _alone() -> None:
    """One thread per process: there are as many processes as cores."""
    os.environ["OMP_NUM_THREADS"] = "1"
