"""`tidecast forecast table2`: the source paper's table beside ours."""

from __future__ import annotations

from typing import Annotated

import typer

from pipelines.cli.given import JsonFile, tell

Quick = Annotated[bool, typer.Option("--quick", help="The 5-minute cells only.")]
Seed = Annotated[int, typer.Option(min=0, help="Of noise, weights and the order of training rows.")]
Resume = Annotated[bool, typer.Option("--resume", help="Keep the rows that the --json file already holds.")]


def table2(quick: Quick = False, seed: Seed = 1, resume: Resume = False, as_json: JsonFile = None) -> None:
    """Run the source paper's table again: its models and the naive ones on two sources at 5, 2 and 1 minutes."""
    from pipelines.bench.table2.loads import STEPS
    from pipelines.bench.table2.table import run
    from pipelines.bench.table2.text import table

    steps = STEPS[:1] if quick else STEPS
    found = run(steps, seed, as_json, resume, tell=tell)
    if quick:
        print("Quick form: the 5-minute cells only, trained in full.")
    print(table(found))
