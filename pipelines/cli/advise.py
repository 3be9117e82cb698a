"""`tidecast advise`: what would help a job most, and what acting would have come to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from configs.errors import SettingsError
from configs.settings import load
from pipelines.cli.options import JsonFile, Page, checked_job
from pipelines.figures.written import write_figure


def advise(
    job: Annotated[
        str | None, typer.Argument(help="A job that the lake knows, with a contract.", callback=checked_job)
    ] = None,
    run: Annotated[
        Path | None, typer.Option("--run", help="A run's folder, or its name under var/runs, instead of the lake.")
    ] = None,
    as_json: JsonFile = None,
    page: Page = None,
) -> None:
    """Say in about five lines what would help a job most, by its own twin and load.

    Changes are tried on its newest six hours: another ceiling, another trigger, more partitions; where its agent
    measured a cause also memory, sink, overhead by phase, and a skewed key. With `--page` a page also says what acting
    would have saved or cost over all that was recorded, up to a week.

    Raises:
        SettingsError: neither job nor run is named, no such run, or the job has no contract or a wrong one, or
            no job can have its name (status 2).
        RunError: a file of the run is missing or broken (status 2).
        LakeError: nothing was ever ingested (status 2).
        TwinError: no batch, or too little, was recorded of the job (status 2).
        JavaError, JarsError: Spark cannot start, which reads the lake (status 2).
        OSError: the page or the JSON file cannot be written.
    """
    from models.twin.advice.advise import choose_advice
    from pipelines.advise.read import measure_in_lake, measure_in_run
    from pipelines.advise.text import advice_to_json, format_advice
    from pipelines.cli.demo import named_run

    if run is not None:
        name, seen = measure_in_run(named_run(run))
        if job not in (None, name):
            raise SettingsError(f"{run}: a run of {name!r}, not of {job!r}. Leave the job out, or name another run.")
    elif job is not None:
        name, seen = job, measure_in_lake(load(), job)
    else:
        raise SettingsError("no job is named: `tidecast advise JOB` reads the lake, `--run RUN` a finished run.")
    advice = choose_advice(seen.twin, seen.contract, seen.recent, seen.facts, seen.tasks)
    text = format_advice(name, seen, advice)
    print(text)
    found = advice_to_json(name, seen, advice)
    if page is not None:
        from pipelines.advise.acting import acting_to_json, compare_acting
        from pipelines.advise.page import write_acting_page

        acting = compare_acting(seen)
        found |= acting_to_json(acting)
        print(f"page: {write_acting_page(name, seen, acting, text, page)}")
    write_figure(as_json, found)
