"""`tidecast plan`: what runs together, where, with how many executors, how fast it will be and what it will cost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from configs.errors import CorrectableError, SettingsError
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
    topology: Annotated[str, typer.Argument(help="A topology's name, or its file.")] = "",
    load: Annotated[float, typer.Option(min=0.001, help="Of the sources' rates, as 1.5 for half as much again.")] = 1.0,
    demo: Annotated[bool, typer.Option("--demo", help="Run the adverts job on two clusters, and re-plan it.")] = False,
    page: Page = None,
    as_json: JsonFile = None,
) -> None:
    """Say which operators should be queries of their own, on which cluster, with how many executors each.

    Prints the cheapest plan that keeps the topology's target by the model, why each cut is where it is, and what else
    was looked at; nothing is started. With `--demo` alone a job is planned, run on two clusters of this computer, and
    planned anew while its load rises: some five minutes, on services of its own; status 1 where it counts wrong.

    Raises:
        typer.Exit: 1, as above.
        SettingsError: there is no such topology, or something in it is wrong (status 2).
        UnplannedError: the clusters have no room for it (status 2).
    """
    from dataclasses import asdict

    from configs.topology import load_topology
    from models.placement.plan.choose import choose_placement
    from models.placement.plan.text import describe_plan

    if demo:
        if topology or load != 1.0 or as_json is not None:
            raise SettingsError("--demo runs a topology of its own at its own loads: give --page beside it, or none.")
        _demonstrate(page)
        return
    if not topology:
        raise SettingsError("Which topology? Name one of configs/topologies, as `tidecast plan adverts`.")
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


def _demonstrate(page: Path | None) -> None:
    from pipelines.placement.demo.run import page_of, run_demo
    from pipelines.placement.page.demo_page import render_demo

    settings = settings_from_options()
    with planned():
        folder, done = run_demo(settings)
    path = page or page_of(settings)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        render_demo(
            folder.topology(), done.before, done.after, done.change, done.moved_s, done.events, done.wrong,
            done.windows, done.said,
        ),
        encoding="utf-8",
    )  # fmt: skip
    right = done.windows - done.wrong
    print(f"{done.events:,} events, {right:,} of {done.windows:,} windows right; moved in {done.moved_s:.0f} s")
    print(f"page: {path}")
    if done.wrong:
        raise typer.Exit(1)
