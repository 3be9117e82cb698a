"""`tidecast plan`: what runs together, where, with how many executors, how fast it will be and what it will cost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from configs.errors import CorrectableError
from pipelines.cli.options import JsonFile, Page, settings_from_options


class UnplannedError(CorrectableError):
    """A topology for which there is no plan; the message says what is missing."""


def topology_file(topology: str) -> Path:
    """Return the file of a topology that is named, or whose file is."""
    file = Path(topology)
    return file if file.suffix == ".yaml" else settings_from_options().topologies_dir / f"{topology}.yaml"


@contextmanager
def planned() -> Iterator[None]:
    """Tell a person in a line what there is no plan for.

    Raises:
        UnplannedError: instead of a `PlanError`.
    """
    from models.placement.plan.choose import PlanError

    try:
        yield
    except PlanError as error:
        raise UnplannedError(str(error)) from None


def plan(
    topology: Annotated[str, typer.Argument(help="A topology's name, or its file.")],
    load: Annotated[float, typer.Option(min=0.001, help="Of the sources' rates, as 1.5 for half as much again.")] = 1.0,
    page: Page = None,
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
    from models.placement.plan.choose import choose_placement
    from models.placement.plan.text import describe_plan

    file = topology_file(topology)
    read = load_topology(file.stem, file.parent)
    with planned():
        made = choose_placement(read, load)
    print(*describe_plan(read, made), sep="\n")
    if page is not None:
        from pipelines.placement.page.plan_page import write_plan_page

        print(f"page: {write_plan_page(read, made, load, page)}")
    if as_json is not None:
        told = {"topology": read.name, "load": load, "placement": asdict(made.placement)}
        as_json.write_text(json.dumps(told, indent=1) + "\n")
