"""`tidecast bench capacity` and `controller`: what the contract's controller goes by, and what it costs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from pipelines.cli.options import JsonFile, print_progress
from pipelines.figures.written import write_figure


def measure_capacity_estimates(
    runs: Annotated[list[str] | None, typer.Argument(help="Folders of runs, or their names; all by default.")] = None,
    as_json: JsonFile = None,
) -> None:
    """Compare estimates of capacity on recorded runs: error of the next 20 batches, and whether quantiles hold.

    Raises:
        RunError: no run could be read, or none has enough batches (status 2).
        SettingsError: a setting is wrong (status 2).
        OSError: the JSON file cannot be written.
    """
    from configs.settings import load
    from pipelines.bench.capacity import ESTIMATES, measure_capacity

    root = load().var_dir / "runs"
    names = runs or sorted(path.name for path in root.glob("*-*-*"))
    figures = measure_capacity([Path(n) if Path(n).is_dir() else root / n for n in names], print_progress)
    for name in ESTIMATES:
        one = figures[name]
        print(
            f"{name}: off by {one['error']:.1%} ({one['after_change'].get('error', math.nan):.1%} after a change); "
            f"rate above its 5 % quantile in {one['above_low']:.1%}, under its 95 % one in {one['below_high']:.1%}"
        )
    write_figure(as_json, figures)


def measure_controller(as_json: JsonFile = None) -> None:
    """Time a contract's controller, and run it around two queues of which it is told wrong numbers.

    Timed are 2,000 closed intervals for plans of 1, 3 and 10 operators each, and as many evaluations of a job with a
    replay, as the autoscaler makes one a second. The wrong numbers are service rates and selectivities, 15 and 30 % too
    low and too high, and a model that is frozen before the workload shifts: two hours each, three loads, a minute in
    all.

    Raises:
        OSError: the JSON file cannot be written.
    """
    from pipelines.bench.controller import measure_decisions
    from pipelines.bench.sensitivity import measure_sensitivity

    figures = {**measure_decisions(), "sensitivity": measure_sensitivity()}
    timed = {f"interval over {row['operators']} operators": row for row in figures["plans"]}
    for name, row in {**timed, "evaluation of a job with a replay": figures["evaluation"]}.items():
        times = f"p50 {row['p50_ms']:.2f} ms, p99 {row['p99_ms']:.2f} ms, most {row['most_ms']:.2f} ms"
        print(f"{name}: {times}, {row['decisions']} times")
    told = figures["sensitivity"]
    factors = [(f"{what} x {factor}", one) for what in ("rate", "selectivity") for factor, one in told[what].items()]
    for name, one in (*factors, ("model frozen before a shift", told["frozen"])):
        finish = "not done" if one["finish"] is None else f"done after {one['finish']:.2f} x the time"
        print(f"told {name}: {one['late']:.1%} of the seconds late, replay {finish}")
    write_figure(as_json, figures)
