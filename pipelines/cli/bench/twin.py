"""`tidecast bench twin`: simulated seconds per second and core, policies included."""

from __future__ import annotations

from typing import Annotated

import typer

from configs.policies import POLICIES
from pipelines.cli.given import JsonFile
from pipelines.figures.written import write

FREE = ",".join(sorted(set(POLICIES) - {"schedule", "dqn"}, key=POLICIES.index))
"""Those that need nothing learned."""


def bench(
    policies: Annotated[str, typer.Option(help="Names separated by commas.")] = FREE,
    hours: Annotated[float, typer.Option(min=0.1, help="Simulated hours per run.")] = 1.0,
    repeats: Annotated[int, typer.Option(min=1)] = 3,
    as_json: JsonFile = None,
) -> None:
    """Measure the twin with each policy in it, in processor time of one core."""
    from pipelines.bench.twin.speed import measure

    found = measure([name.strip() for name in policies.split(",")], hours, repeats)
    for name, one in found["policies"].items():
        print(f"{name:<17}{one['median']:6.1f} M s/s ({one['lowest']:.1f} to {one['highest']:.1f})")
    print(f"median {found['median']:.1f} million simulated seconds per second and core, {found['runs']} runs")
    write(as_json, found)
