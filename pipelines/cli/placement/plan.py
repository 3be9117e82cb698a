"""`tidecast plan`: what runs together, where, with how many executors, how fast it will be and what it will cost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from configs.errors import SettingsError
from pipelines.cli.options import JsonFile, Page, settings_from_options
from pipelines.cli.placement.placed import UnplannedError, planned, run_job, topology_file, with_broker

if TYPE_CHECKING:
    from configs.topology import Topology
    from models.placement.plan.blocks import Blocks
    from models.placement.plan.measured import Placement


def plan(
    topology: Annotated[str, typer.Argument(help="A topology's name, or its file.")] = "",
    load: Annotated[float, typer.Option(min=0.001, help="Factor on the sources' rates, e.g. 1.5.")] = 1.0,
    apply: Annotated[
        bool, typer.Option("--apply", help="Run the job so until ctrl-C; the queries of one that runs are moved.")
    ] = False,
    demo: Annotated[bool, typer.Option("--demo", help="Run the adverts job on two clusters, and re-plan it.")] = False,
    page: Page = None,
    as_json: JsonFile = None,
) -> None:
    """Say which operators should be queries of their own, on which cluster, with how many executors each.

    Prints the cheapest plan that keeps the topology's target by the model, why each cut is where it is, and what else
    was looked at. Nothing is started without `--apply`: that begins the job and runs it, as `tidecast job up` does, and
    moves the queries of one that was begun, or runs already, to where a plan of these queries has them: which operators
    are one query is fixed then. With `--demo` alone a job is planned, run on two clusters of this computer, and planned
    anew while its load rises: some five minutes, on services of its own; status 1 where it counts wrong.

    Raises:
        typer.Exit: 1, as above.
        SettingsError: there is no such topology, or something in it is wrong (status 2).
        UnplannedError: the clusters have no room for it, or the job was begun from an older file; with `--apply`, a
            cluster on which it is to run does not answer (status 2).
        BrokerError, StackError, ProcessError: with `--apply`, the broker, a cluster or a query does not start (status
            2).
    """
    from dataclasses import asdict

    from configs.topology import load_topology
    from models.placement.plan.choose import choose_placement
    from models.placement.plan.text import describe_plan

    if demo:
        if topology or load != 1.0 or as_json is not None or apply:
            raise SettingsError("--demo runs a topology of its own at its own loads: give --page beside it, or none.")
        _demonstrate(page)
        return
    if not topology:
        raise SettingsError("Which topology? Name one of configs/topologies, as `tidecast plan adverts`.")
    file = topology_file(topology)
    read = load_topology(file.stem, file.parent)
    with planned():
        made = choose_placement(read, load, _running_queries(file) if apply else None)
    print(*describe_plan(read, made), sep="\n")
    if page is not None:
        from pipelines.placement.page.plan_page import write_plan_page

        print(f"page: {write_plan_page(read, made, load, page)}")
    if as_json is not None:
        told = {"topology": read.name, "load": load, "placement": asdict(made.placement)}
        as_json.write_text(json.dumps(told, indent=1) + "\n")
    if apply:
        _apply(file, read, made.placement, load)


def _running_queries(file: Path) -> Blocks | None:
    """Operators of each query of the job that was begun from a file; None: none was, or the file is another one now."""
    from pipelines.placement.running import job_folder

    folder = job_folder(settings_from_options(), file.stem)
    if not folder.began() or folder.has_changed(file):
        return None
    return tuple(one.operators for one in folder.wanted().blocks)


def _apply(file: Path, topology: Topology, placement: Placement, factor: float) -> None:
    """Begin a job so, or move one that was begun; run it, unless another command does."""
    from pipelines.placement.replan import ReplanError, want_plan
    from pipelines.placement.running import job_folder
    from pipelines.stack import state

    settings = settings_from_options()
    folder = job_folder(settings, file.stem)
    if folder.began():
        try:
            with planned():
                print(want_plan(settings, folder, file, placement, factor))
        except ReplanError as error:
            raise UnplannedError(str(error)) from None
        if state.is_reserved(folder.path / "stack"):
            return
    run_job(with_broker(), file, placement, factor, topology)


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
