"""`tidecast bench soak`: a site under live load for long, and whether anything grows."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from configs.settings import load
from pipelines.cli.options import JsonFile
from pipelines.figures.written import write_figure


def measure_long_run(
    minutes: Annotated[float, typer.Option(min=6, help="Minutes of live load.")] = 60.0, as_json: JsonFile = None
) -> None:
    """Keep a site under live load for an hour: do memory, file handles, threads or checkpoints of a part grow?

    The site of `tidecast bench chaos`, in which nothing is broken. Handles, threads and checkpoints are judged before
    its JVMs are asked to collect their garbage, memory while they are.

    Raises:
        SettingsError: the address of a service is set (status 2).
        SiteError, StackError, ProcessError, JavaError, JarsError, BrokerError, DemoError, OrchestratorError,
            RegistryError: a service does not start, or ends (status 2).
        OSError: a file cannot be written.
    """
    from pipelines.bench.soak.measure import measure_soak

    found = measure_soak(load(), minutes, partial(write_figure, as_json))
    write_figure(as_json, found)
    print(f"{found['counted']:,} of {found['produced']:,} records counted.")
    for name in ("growing", "unmeasured", "ended"):
        print(f"{name}: {', '.join(found[name]) or 'none'}")
