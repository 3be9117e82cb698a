"""`tidecast backtest`: what every policy would have cost on a load, and what a forecast is worth there."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Annotated, Any

import typer

from configs.policies import POLICIES
from pipelines.cli.options import (
    JsonFile,
    Page,
    Step,
    TimeColumn,
    Timezone,
    ValueColumn,
    print_progress,
    progress_bar,
    resumed_from,
    split_names,
)
from pipelines.figures.written import write_figure

MAP = "map"


def backtest(
    traces: Annotated[
        list[str],
        typer.Argument(
            metavar="TRACE...", help="CSV files, names of shipped series (google); `map` before them, or alone."
        ),
    ],
    policies: Annotated[str, typer.Option(help=f"Names separated by commas, or all: {', '.join(POLICIES)}.")] = "all",
    lead_s: Annotated[
        float | None,
        typer.Option(help="Seconds from an executor's request to its registration; 60 by default, the map takes five."),
    ] = None,
    job: Annotated[Path | None, typer.Option(help="JSON of a fitted job, by `tidecast twin fit`.")] = None,
    as_is: Annotated[bool, typer.Option("--as-is", help="The trace is in records/s of the job: no scaling.")] = False,
    executors: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many the 99.9 % quantile is scaled to need; half of the job's most, else 20, by default.",
        ),
    ] = None,
    agent: Annotated[Path | None, typer.Option(help="JSON of a trained DQN policy, for the policy dqn.")] = None,
    engine: Annotated[str, typer.Option(help="spark, or restart for one that restarts at every change.")] = "spark",
    target_s: Annotated[
        float | None, typer.Option(min=0.1, help="Latency target; the fitted job's, else 10 s, by default.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Draws of arrivals and delays.")] = 4,
    knobs: Annotated[int, typer.Option(min=2, help="Values tried of each policy's knob.")] = 8,
    quick: Annotated[bool, typer.Option("--quick", help="Less of each trace, fewer seeds and values.")] = False,
    step: Step = None,
    time_column: TimeColumn = None,
    value_column: ValueColumn = None,
    timezone: Timezone = "UTC",
    processes: Annotated[int, typer.Option(min=1, help="Processes to compute in.")] = 2,
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep the map's lead times that the --json file holds.")
    ] = False,
    as_json: JsonFile = None,
    page: Page = None,
) -> None:
    """Replay loads in a simulated job and print what every policy costs there.

    The cost is executor-hours with 0.1, 1 and 5 % of seconds over the latency target; a policy's knob (its one tuned
    parameter) trades one for the other. `backtest map [TRACE...]` replays at several lead times and prints what a
    forecast is worth at each. Progress goes to stderr: of one backtest as a bar, on a terminal only.

    Raises:
        SettingsError: a policy is unknown or cannot be built, the map has two traces of one name, or `agent` cannot be
            read (status 2).
        SeriesError, TraceError: no such file or series, or a fault in it (status 2).
        TwinError: `job` cannot be read or does not fit the options; a trace is too short, has gaps or cannot be scaled
            (status 2).
        typer.BadParameter: an unknown `engine` (status 2).
        OSError: the JSON file or the page cannot be written.
    """
    from dataclasses import replace

    from models.twin.experiment.benchmark import Effort
    from pipelines.backtest.load import list_map_loads, read_load

    if engine not in ("spark", "restart"):
        raise typer.BadParameter(f"{engine!r}: spark or restart is expected", param_hint="--engine")
    setup = _setup(job, lead_s, target_s, executors=executors, restarts=engine == "restart", as_is=as_is)
    effort = Effort(knobs, seeds)
    if quick:
        setup, effort = replace(setup, test_days=1.0, tune_days=0.5), Effort(min(knobs, 5), min(seeds, 2))
    names = split_names(policies)
    learned = {"dqn": _agent(agent)} if agent else {}
    map_wanted = traces[0] == MAP
    named = traces[1:] or list_map_loads() if map_wanted else traces
    loads = [read_load(text, step, (time_column, value_column), timezone) for text in named]
    if map_wanted:
        from models.twin.experiment.value import LEADS_S
        from pipelines.backtest.value_map.compute import compute_value_map
        from pipelines.backtest.value_map.page import write_map_page
        from pipelines.backtest.value_map.text import format_map

        leads_s, kept = LEADS_S if lead_s is None else (lead_s,), resumed_from(as_json, resume)
        value = compute_value_map(
            loads, setup, names, effort, processes, print_progress, learned, leads_s, as_json, kept is not None
        )
        print(format_map(value))
        write_figure(as_json, value)
        if page is not None:
            print(f"page: {write_map_page(value, page)}")
    else:
        from pipelines.backtest import page as pages
        from pipelines.backtest import report, text

        with progress_bar("backtest") as report_share:
            costs = report.backtest(loads, setup, names, effort, learned, processes, report_share)
        print("\n\n".join(map(text.format_backtest, costs)))
        write_figure(as_json, costs[0] if len(costs) == 1 else {"traces": costs})
        if page is not None:
            print(f"page: {pages.write_page(costs, page)}")


def _setup(job: Path | None, lead_s: float | None, target_s: float | None, **options: Any) -> Any:
    """How policies are run: lead time and latency target as given, else those of the fitted job, else the defaults."""
    from dataclasses import replace

    from models.twin.experiment.setup import Setup
    from pipelines.backtest.job_file import read_job

    fitted = read_job(job) if job else None
    if fitted is not None and lead_s is None:
        lead_s = statistics.median(fitted.startup_s)  # the setup keeps the measured delays at their median
    if fitted is not None and target_s is not None:
        fitted = replace(fitted, latency_target_s=target_s)
    given: dict[str, Any] = {"lead_s": lead_s, "latency_target_s": target_s}
    return Setup(job=fitted, **options, **{name: value for name, value in given.items() if value is not None})


def _agent(path: Path) -> Any:
    from configs.errors import SettingsError
    from models.dqn.agent.model import revive
    from models.dqn.agent.policy import maker

    try:
        return maker(revive(json.loads(path.read_text())))
    except (OSError, ValueError) as error:
        raise SettingsError(
            f"{path}: no agent can be read: {error}. Name the JSON file of an agent that retrain_agent registered."
        ) from None
