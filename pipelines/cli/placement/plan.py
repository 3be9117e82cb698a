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
    from pipelines.placement.replan import PlannedJob


def plan(
    topology: Annotated[str, typer.Argument(help="A topology's name, or its file.")] = "",
    load: Annotated[float, typer.Option(min=0.001, help="Factor on the sources' rates, e.g. 1.5.")] = 1.0,
    measured: Annotated[
        bool, typer.Option("--measured", help="For the rates and the work that were measured of the running job.")
    ] = False,
    apply: Annotated[
        bool, typer.Option("--apply", help="Run the job so until ctrl-C; the queries of one that runs are moved.")
    ] = False,
    demo: Annotated[bool, typer.Option("--demo", help="Run the adverts job on two clusters, and re-plan it.")] = False,
    page: Page = None,
    as_json: JsonFile = None,
) -> None:
    """Say which operators should be queries of their own, on which cluster, with how many executors each.

    Prints the cheapest plan that keeps the topology's target by the model, why each cut is where it is, and what else
    was looked at. With `--measured` it is for what was measured of the job of that name in the last ten minutes (or ten
    triggers), as it was begun; else for what the file says now. Either keeps the queries of a job that was begun from
    that file: which operators are one query is fixed then, and where others would be better the plan says so.
    Nothing is started without `--apply`: that begins the job and runs it, as `tidecast job up` does, and moves the
    queries of one that was begun, or runs already, to where the plan has them. With `--demo` alone a job is planned,
    run on two clusters of this computer, and planned anew while its load rises: some five minutes, on services of its
    own; status 1 where it counts wrong.

    Raises:
        typer.Exit: 1, as above.
        SettingsError: there is no such topology, or something in it is wrong; `--measured` of a job that was never
            begun (status 2).
        UnplannedError: the clusters have no room for it, or for the queries of the job that was begun from it; with
            `--apply`, the job was begun from an older file, nothing was measured, or a cluster on which it is to run
            does not answer (status 2).
        JobFileError: a file of the job that was begun is damaged (status 2).
        BrokerError, StackError, ProcessError: with `--measured`, the broker does not answer; with `--apply`, it, a
            cluster or a query does not start (status 2).
    """
    from dataclasses import asdict

    from models.placement.plan.text import describe_plan

    if demo:
        if topology or load != 1.0 or as_json is not None or apply or measured:
            raise SettingsError("--demo runs a topology of its own at its own loads: give --page beside it, or none.")
        _demonstrate(page)
        return
    if not topology:
        raise SettingsError("Which topology? Name one of configs/topologies, as `tidecast plan adverts`.")
    if measured and load != 1.0:
        raise SettingsError("--measured plans for the load that was measured: leave --load away, or --measured.")
    file = topology_file(topology)
    with planned():
        found = _planned_as_measured(file) if measured else _planned_as_stated(file, load)
    read, made = found.load.topology, found.plan
    print(*describe_plan(read, made), *(f"{note}." for note in found.notes), sep="\n")
    if page is not None:
        from pipelines.placement.page.plan_page import write_plan_page

        written = write_plan_page(read, made, found.load.factor, page, found.measured, found.notes, found.running)
        print(f"page: {written}")
    if as_json is not None:
        told = {"topology": read.name, "load": found.load.told, "placement": asdict(made.placement)}
        as_json.write_text(json.dumps(told, indent=1) + "\n")
    if apply:
        _apply(file, found, measured)


def _planned_as_measured(file: Path) -> PlannedJob:
    """A job that was begun, with its own queries, for what was measured of it."""
    from pipelines.placement.replan import plan_job
    from pipelines.placement.running import job_folder

    settings = with_broker()
    job_folder(settings, file.stem).topology()  # refuses one that was never begun
    return plan_job(settings, file, None)


def _planned_as_stated(file: Path, load: float) -> PlannedJob:
    """What a file says now, with the queries of the job that was begun from it."""
    from configs.topology import load_topology
    from models.placement.plan.choose import choose_placement
    from pipelines.placement.observed import PlannedLoad
    from pipelines.placement.replan import PlannedJob
    from pipelines.placement.running import job_folder

    read, folder = load_topology(file.stem, file.parent), job_folder(settings_from_options(), file.stem)
    began = folder.began()
    changed = began and folder.has_changed(file)
    fixed = tuple(one.operators for one in folder.wanted().blocks) if began and not changed else None
    note = f"{file.name} has changed since the job {file.stem} was begun, which goes on as it was"
    made = choose_placement(read, load, fixed)
    return PlannedJob(PlannedLoad(read, load, load), made, False, [note] if changed else [])


def _apply(file: Path, found: PlannedJob, measured: bool) -> None:
    """Begin a job so, or move one that was begun; run it, unless another command does."""
    from pipelines.placement.replan import ReplanError, want_plan
    from pipelines.placement.running import job_folder
    from pipelines.stack import state

    settings = settings_from_options()
    folder, placement = job_folder(settings, file.stem), found.plan.placement
    if not found.load.known:
        raise UnplannedError(
            f"{file.stem}: nothing was measured of it, so nothing is moved. Without --measured the plan for the stated "
            "rates is applied."
        )
    if folder.began():
        if folder.has_changed(file) and not measured:
            raise UnplannedError(
                f"{file.name} has changed since this job was begun, and the plan is for what it says now. Put it back, "
                f"or move {folder.path} away to begin the job anew."
            )
        try:
            with planned():
                print(want_plan(settings, folder, found.load, placement))
        except ReplanError as error:
            raise UnplannedError(str(error)) from None
        if state.is_reserved(folder.path / "stack"):
            return
    run_job(with_broker(), file, placement, found.load.factor, found.load.topology)


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
