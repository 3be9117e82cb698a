"""`tidecast plan`: what runs together, where, with how many executors, how fast it will be and what it will cost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from configs.errors import CorrectableError
from pipelines.cli.options import JsonFile, settings_from_options


class UnplannedError(CorrectableError):
    """A topology for which there is no plan; the message says what is missing."""


def plan(
    topology: Annotated[str, typer.Argument(help="A topology's name, or its file.")],
    load: Annotated[float, typer.Option(min=0.001, help="Of the sources' rates, as 1.5 for half as much again.")] = 1.0,
    as_json: JsonFile = None,
) -> None:
    """Say which operators should be queries of their own, on which cluster, with how many executors each.

    Prints the cheapest plan that keeps the topology's target by the model, why each cut is where it is, and what else
    was looked at; nothing is started.

    Raises:
        SettingsError: there is no such topology, or something in it is wrong (status 2).
        UnplannedError: the clusters have no room for it (status 2).
    """
    from dataclasses import asdict

    from configs.topology import load_topology
    from models.placement.plan.choose import PlanError, choose_placement
    from models.placement.plan.text import describe_plan

    file = Path(topology)
    if file.suffix != ".yaml":
        file = settings_from_options().topologies_dir / f"{topology}.yaml"
    read = load_topology(file.stem, file.parent)
    try:
        made = choose_placement(read, load)
    except PlanError as error:
        raise UnplannedError(str(error)) from None
    print(*describe_plan(read, made), sep="\n")
    if as_json is not None:
        told = {"topology": read.name, "load": load, "placement": asdict(made.placement)}
        as_json.write_text(json.dumps(told, indent=1) + "\n")
