"""`tidecast bench chaos`: every part of a running site killed, paused, started again and robbed of its state."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from configs.settings import load
from pipelines.cli.options import JsonFile, choose_names
from pipelines.figures.form import read_figure
from pipelines.figures.written import write_figure


def measure_faults_of_parts(
    cells: Annotated[str, typer.Option(help="PART-FAULT, with commas between; all by default.")] = "",
    runs: Annotated[int, typer.Option(min=1, help="Sessions of each cell.")] = 3,
    as_json: JsonFile = None,
) -> None:
    """Break a part of a running site, and look: is every record counted once, and is the promise's account right?

    Parts: broker (one of three), driver, executor, autoscaler, serving, scheduler. Faults: kill, pause, restart,
    corrupt. Beyond that table: driver-cut; driver-full, autoscaler-full, serving-full, as root; driver-clock,
    autoscaler-clock, serving-clock, site-clock, with libfaketime. A session takes some three minutes; those that the
    file of `--json` has are not run again.

    Raises:
        SettingsError: no such cell; or the address of a service is set (status 2).
        SiteError, StackError, ProcessError, JavaError, JarsError, BrokerError, DemoError: the first start fails (status
            2).
        FigureError: the file of `--json` is there and is no figure (status 2).
        OSError: a file cannot be written.
    """
    from pipelines.bench.chaos.cells import CELLS
    from pipelines.bench.chaos.measure import measure_chaos

    names = choose_names("--cells", cells, CELLS)
    earlier = read_figure(as_json).data if as_json is not None and as_json.exists() else {}
    found = measure_chaos(load(), names, runs, earlier, partial(write_figure, as_json))
    print(
        f"{found['passed']} of {found['cells']} cells passed; {found['ran']} were run. "
        f"Beyond the table {found['further_passed']} of {found['further_ran']} that were run."
    )
