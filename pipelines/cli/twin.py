"""`tidecast twin`: the simulator of a job, fitted to what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pipelines.cli.options import JsonFile, checked_job, command_group, print_progress
from pipelines.figures.written import write_figure

app = command_group("Fit the twin of a job, and check it against what really happened.")


@app.command()
def fit(
    runs: Annotated[
        list[str] | None, typer.Argument(help="Folders of runs, or their names under var/runs; all by default.")
    ] = None,
    job: Annotated[str, typer.Option(help="Whose twin it is.", callback=checked_job)] = "word_count",
    lake: Annotated[bool, typer.Option("--lake", help="Fit to the lake instead, and compare runs with that.")] = False,
    as_json: JsonFile = None,
) -> None:
    """Fit a job's simulator to finished runs, check it on each by a fit to the others, and store it in var/twins.

    Prints the fitted values with 95 % intervals and, per run, the error of lag, latency and executors (share of the
    measured range) and the seconds over the latency target, measured and simulated. Replaces `var/twins/<job>.json`.
    With `--lake` runs are compared with the fit to the lake, which may hold them, so that this is no such check.

    Raises:
        RunError, EventLogError: a run that was named cannot be read; others are passed over (status 2).
        TwinError: too little was measured, there is no run, or one's targets are out of the job's bounds (status 2).
        LakeError, SettingsError: with `--lake`: nothing was ingested, or the job has no valid contract (status 2).
        JavaError, JarsError: with `--lake`: Spark cannot start (status 2).
        KeyError, ValueError: a run's `run.json` names no trace; its contract or trigger is invalid.
        OSError: a file cannot be written.
    """
    from configs.settings import load
    from pipelines.backtest.fit import judge
    from pipelines.backtest.job_file import fit_to_json, write_fit

    settings = load()
    var = settings.var_dir
    finished = _runs(var / "runs", runs, job)
    if lake:
        fitted = _from_lake(settings, job)
        compared = [judge.compare_with_twin(fitted, run) for run in finished]
    else:
        fitted = judge.fit_runs(finished)
        compared = judge.cross_validate(finished) if len(finished) > 1 else []
    print(judge.format_fit(fitted))
    print(judge.format_comparisons(compared, held_out=not lake))
    print(f"stored: {write_fit(fitted, job, var / 'twins')}")
    write_figure(as_json, {**fit_to_json(fitted), **judge.comparison_figures(compared, held_out=not lake)})


@app.command("recordings")
def check_recordings(
    folder: Annotated[Path, typer.Argument(help="A copy of dos-group/demeter: runs and load files.")],
    as_json: JsonFile = None,
) -> None:
    """Check the simulator of an engine that restarts at every change against published recordings.

    It is fitted to one half of each recording and checked on the other, both ways. Prints the share of seconds with
    latency over 2 s, measured and simulated (mean ± standard deviation of 10 runs), and their ratio.

    Raises:
        RunError: the folder holds no such runs, or a run's load is missing (status 2).
        TwinError: half a recording measured too little, or has more than 24 workers (status 2).
        ZeroDivisionError: in a half no second was over 2 s.
        OSError, KeyError, ValueError: a CSV file cannot be read or lacks a column; OSError also: the JSON file.
    """
    from pipelines.backtest.fit.recordings import cross_check_halves, format_cross_checks, read_recordings

    figures = {name: cross_check_halves(recording) for name, recording in read_recordings(folder)}
    print(format_cross_checks(figures))
    write_figure(as_json, {"halves": figures})


def _from_lake(settings: Any, job: str) -> Any:
    from configs.contract import load_contract
    from models.twin.calibration.fit import fit_job
    from pipelines.backtest.fit.from_lake import read_measurements
    from pipelines.lake.folder import lake_folder

    return fit_job(*read_measurements(lake_folder(settings), job, load_contract(job, settings.contracts_dir)))


def _runs(root: Path, names: list[str] | None, job: str) -> list[Any]:
    """The finished runs of a job; those named must be readable, others are passed over with a word."""
    from pipelines.report.fit_input import read_measured_run
    from pipelines.report.recorded.eventlog import EventLogError
    from pipelines.report.recorded.lines import RunError

    folders = [Path(n) if Path(n).is_dir() else root / n for n in names or sorted(p.name for p in root.glob("*-*-*"))]
    readable = []
    for folder in folders:
        try:
            run = read_measured_run(folder)
        except (RunError, EventLogError) as error:
            if names:
                raise
            print_progress(f"{folder.name}: passed over: {error}")
            continue
        if run.job == job and len(run.batches.rows):
            readable.append(run)
    return readable
