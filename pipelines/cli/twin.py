"""`tidecast twin`: the simulator of a job, fitted to what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pipelines.cli.given import JsonFile, noun, tell
from pipelines.figures.written import write

app = noun("Fit the twin of a job, and check it against what really happened.")


@app.command()
def fit(
    runs: Annotated[
        list[str] | None, typer.Argument(help="Folders of runs, or their names under var/runs; all by default.")
    ] = None,
    job: Annotated[str, typer.Option(help="Whose twin it is.")] = "word_count",
    lake: Annotated[bool, typer.Option("--lake", help="Fit to the lake instead; the runs are only checked.")] = False,
    as_json: JsonFile = None,
) -> None:
    """Fit a job's simulator to finished runs, check it on each by a fit to the others, and store it in var/twins."""
    from configs.settings import load
    from pipelines.backtest.fit import judge
    from pipelines.backtest.job_file import described, stored

    settings = load()
    var = settings.var_dir
    finished = _runs(var / "runs", runs, job)
    if lake:
        found = _from_lake(settings, job)
        compared = [judge.beside(found, run) for run in finished]
    else:
        found = judge.fitted(finished)
        compared = judge.compared(finished) if len(finished) > 1 else []
    print(judge.of_fit(found))
    print(judge.of_runs(compared) if compared else "one run: no other to check it on")
    print(f"stored: {stored(found, job, var / 'twins')}")
    write(as_json, {**described(found), "runs": compared})


@app.command()
def recordings(
    folder: Annotated[Path, typer.Argument(help="A copy of dos-group/demeter: runs and load files.")],
    as_json: JsonFile = None,
) -> None:
    """Check the simulator of an engine that restarts at every change against published recordings."""
    from pipelines.backtest.fit.recordings import halves, of_recordings
    from pipelines.backtest.fit.recordings import recordings as read

    found = {name: halves(seen) for name, seen in read(folder)}
    print(of_recordings(found))
    write(as_json, {"halves": found})


def _from_lake(settings: Any, job: str) -> Any:
    from configs.contract import load_contract
    from models.twin.calibration.fit import fit as fit_to
    from pipelines.backtest.fit.from_lake import read

    return fit_to(*read(settings.lake_dir, job, load_contract(job, settings.contracts_dir)))


def _runs(root: Path, names: list[str] | None, job: str) -> list[Any]:
    """The finished runs of a job; those named must be readable, others are passed over with a word."""
    from pipelines.backtest.fit.measured import measured_run
    from pipelines.report.recorded.eventlog import EventLogError
    from pipelines.report.recorded.lines import RunError

    folders = [Path(n) if Path(n).is_dir() else root / n for n in names or sorted(p.name for p in root.glob("*-*-*"))]
    found = []
    for folder in folders:
        try:
            run = measured_run(folder)
        except (RunError, EventLogError) as error:
            if names:
                raise
            tell(f"{folder.name}: passed over: {error}")
            continue
        if run.job == job and len(run.batches.rows):
            found.append(run)
    return found
