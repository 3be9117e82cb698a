"""`tidecast bench team`: what a team does with a job, on jobs whose answer is known."""

from __future__ import annotations

from typing import Annotated

import typer

from pipelines.cli.options import JsonFile, choose_names, print_progress, settings_from_options
from pipelines.figures.written import write_figure

PARTS = ("init",)


def measure_team(
    parts: Annotated[str, typer.Option(help=f"Of {', '.join(PARTS)}, with commas between; all by default.")] = "",
    as_json: JsonFile = None,
) -> None:
    """Measure what a team does with a job: `init` proposes a contract for each shipped job, from a simulated lake.

    Prints a line per job; takes a minute or two.

    Raises:
        SettingsError: there is no such part (status 2).
        TwinError: nothing can be proposed for a job (status 2).
        OSError: the JSON file cannot be written.
    """
    from pipelines.bench.team.init import measure_proposals

    choose_names("--parts", parts, PARTS)
    found = measure_proposals(settings_from_options(), print_progress)
    for one in found["jobs"]:
        print(
            f"{one['job']:<16}{one['kept_s']:g} s kept with {one['were']}; proposed {one['target_s']:g} s with "
            f"{one['executors'][0]} to {one['executors'][1]}: {one['late']:.2%} late, then {one['next_late']:.2%}"
        )
    write_figure(as_json, {"init": found})
