"""`tidecast run`, `compare` and `report`: the main job on the real stack, policies in turn, and reports of runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from configs.errors import SettingsError
from configs.policies import POLICIES
from configs.settings import load
from pipelines.cli.options import JsonFile, settings_from_options
from pipelines.figures.written import write_figure


def run(
    trace: Annotated[str | None, typer.Option(help="A name in pipelines/traces/data, or a CSV file.")] = None,
    speed: Annotated[float | None, typer.Option(help="Trace seconds per wall second.")] = None,
    hours: Annotated[float | None, typer.Option(help="Trace hours replayed live.")] = None,
    live_start: Annotated[str | None, typer.Option(help="Trace time at which the live load begins.")] = None,
    policy: Annotated[str | None, typer.Option(help=f"One of {', '.join(POLICIES)}.")] = None,
    serving: Annotated[
        str | None, typer.Option(help="stream (a topic), or fast (a store on disk that decisions read).")
    ] = None,
    as_json: JsonFile = None,
) -> None:
    """Run the main job: history, training, serving, a live load on real executors, and a second training.

    Status 1 where a record was lost or counted twice, the backfill left wrong results, no scale-up by the forecast was
    confirmed (under a policy that uses one), live metrics or models are missing, or a process was left running; the
    run's folder under `var/runs` has its report, `summary.json` and topics all the same. Its services are on the
    loopback, their state in `var/demo`; all is stopped at the end. Blocks for minutes.

    Raises:
        typer.Exit: 1, as above.
        SettingsError, TraceError: a wrong option, setting, contract or trace; nothing was started (status 2).
        StackError, PortError, JavaError, DemoError, OrchestratorError, BrokerError, RegistryError: a service does not
            start or fails, or a stage does not get through (status 2).
        RunError, EventLogError: a file of the run is missing or broken (status 2).
        OSError: the JSON file cannot be written.
    """
    settings = settings_from_options(
        replay={"trace": trace, "speed": speed, "live_hours": hours, "live_start": live_start},
        autoscaler={"policy": policy},
        serving={"path": serving},
    )
    from pipelines.demo.run import run_demo
    from pipelines.report.headline import summary_text

    summary, page, failures = run_demo(settings)
    print(summary_text(summary))
    print(f"report: {page}")
    write_figure(as_json, summary)
    if failures:
        logs = settings.var_dir / "demo" / "log"
        print(f"the run is not complete: {'; '.join(failures)}. See the report and {logs}.", file=sys.stderr)
        raise typer.Exit(1)


def compare(
    policies: Annotated[
        list[str],
        typer.Argument(help="Policies in the order of their turns, e.g. mpc reactive static:6 (always six executors)."),
    ],
    turns: Annotated[int, typer.Option(min=1, help="How many times each policy runs.")] = 3,
    hours: Annotated[float | None, typer.Option(help="Trace hours per run.")] = None,
    busy_cores: Annotated[int, typer.Option(min=0, help="Cores that something else keeps busy meanwhile.")] = 0,
    since: Annotated[
        str, typer.Option(help="Go on with a comparison: its runs from this one on, a name in var/runs, are kept.")
    ] = "",
    as_json: JsonFile = None,
) -> None:
    """Run policies live in turn on the same trace; print every run and the medians, and write a page.

    Each goes by the job's contract as it is. Medians are of late seconds and executor-seconds. Runs take minutes each
    and stay in `var/runs`.

    Raises:
        SettingsError, TraceError: a wrong option, setting, contract or trace (status 2).
        StackError, PortError, JavaError, DemoError, OrchestratorError, BrokerError, RegistryError: a service does not
            start or fails, or a run does not get through (status 2).
        RunError, EventLogError, OSError: a file of a run is missing or broken, or one cannot be written.
    """
    from pipelines.demo.compare import compare_policies

    settings = settings_from_options(replay={"live_hours": hours})
    result = compare_policies(settings, policies, turns, busy_cores, since)
    print(result["text"])
    write_figure(as_json, {key: result[key] for key in ("runs", "medians")})


def report(
    run_dir: Annotated[Path, typer.Argument(help="A run's folder, or its name under var/runs.")],
    compare_with: Annotated[Path | None, typer.Option("--compare", help="Another run to set beside it.")] = None,
) -> None:
    """Compute `summary.json` and `report.html` of a finished run again, and print the summary and the page's path.

    Raises:
        SettingsError: no such run; the message lists those there are (status 2).
        RunError, EventLogError: a file of a run is missing or broken (status 2).
        OSError: one of the two cannot be written.
    """
    from pipelines.report.headline import summary_text
    from pipelines.report.page import render_report

    here, other = named_run(run_dir), named_run(compare_with) if compare_with else None
    summary, page = render_report(here, other)
    print(summary_text(summary))
    print(f"report: {page}")


def named_run(path: Path) -> Path:
    """Return a run's folder, which is given as such or by its name under var/runs.

    Raises:
        SettingsError: no such run; the message lists those there are.
    """
    if path.is_dir():
        return path
    named = load().var_dir / "runs" / path
    if named.is_dir():
        return named
    known = sorted(p.name for p in named.parent.glob("*") if p.is_dir())
    raise SettingsError(f"{path}: no such run. Runs in {named.parent}: {', '.join(known) or 'none yet'}.")
