"""`tidecast autoscale`: the autoscaler query until stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from configs.policies import POLICIES
from pipelines.cli.given import here


def autoscale(
    checkpoint: Annotated[
        Path | None, typer.Option(help="Where the query keeps its state; by default `autoscaler` under `var`.")
    ] = None,
    policy: Annotated[str | None, typer.Option(help=f"One of {', '.join(POLICIES)}.")] = None,
) -> None:
    """Run the autoscaler query until stopped."""
    from pipelines.scale.autoscaler import run

    settings = here(autoscaler={"policy": policy})
    run(settings, (checkpoint or settings.var_dir / "autoscaler").absolute())
