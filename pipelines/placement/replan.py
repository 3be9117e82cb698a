"""A job planned for the load that it has now, and a plan applied: by the DAG `plan_placement`, or by a command."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from configs.errors import FinalError, SettingsError
from configs.settings import Settings, load
from configs.topology import load_topology
from models.placement.plan.applications import applications_of, reads_of, record_work
from models.placement.plan.as_measured import as_measured, measured_factor
from models.placement.plan.choose import PlacementPlan, PlanError, choose_placement
from models.placement.plan.followed import followed_quantile_s
from models.placement.plan.measured import Block, Measure, Placement
from models.placement.plan.missing import summary
from models.placement.plan.moved import keep_executors
from models.placement.plan.observed import observe_block
from models.placement.plan.text import describe_untold_work
from models.placement.rates import rates_of
from pipelines.placement.job_folder import JobFolder
from pipelines.placement.observed import (
    PlannedLoad,
    observe_job,
    observe_record_bytes,
    observe_trips,
    planned_when,
    span_in_words,
    span_of,
)
from pipelines.placement.page.plan_page import RunningJob, compare, describe_change, page_of_plan, write_plan_page
from pipelines.placement.reached import refuse_away
from pipelines.placement.running import job_folder
from pipelines.placement.scaled.contracts import refuse_unscaled
from pipelines.stack import state
from pipelines.stack.state import with_stack_addresses

SCALED = "Scaled queries keep the executors that they were placed with where they stay: the autoscaler decides these"


class ReplanError(FinalError, RuntimeError):
    """A topology for which there is no plan, or a plan that cannot be applied any more; says why."""


class PlannedJob(NamedTuple):
    """A job that was planned.

    Attributes:
        load: for which.
        plan: of a job that was begun as it would be applied.
        measured: whether the load is what was measured.
        notes: sentences about it, without their full stops.
        running: the job as it is now; None: it was never begun.
    """

    load: PlannedLoad
    plan: PlacementPlan
    measured: bool
    notes: Sequence[str] = ()
    running: RunningJob | None = None


def plan(form: dict[str, Any]) -> dict[str, Any]:
    """Plan a topology for a load, and write the plan's page; nothing is changed.

    Args:
        form: `topology`, its name; and maybe `load`, of the stated rates: by default a running job has the rates, and
            the work of its records, that were measured.

    Returns:
        `sentence`, what would change of the running job, when it was planned, whether anything was measured and it runs
        at all, and whether its file is another one since it was begun, which this plan does not know; `ask`, whether
        anything would that can be applied, and is not for want of measurements; `load`; `known`, whether that was given
        or measured; `backlog`, whether what waits counts, where anything was; `page`, path of the page; `was` and
        `placement`, where the queries are wanted, and would be; `work`, as `record_work`, where it was measured.

    Raises:
        ReplanError: the clusters have no room, for a job that was begun for its own queries.
        SettingsError, BrokerError: no such topology; the broker does not answer.
    """
    settings, name = with_stack_addresses(load()), form["topology"]
    try:
        found = plan_job(settings, settings.topologies_dir / f"{name}.yaml", form.get("load"))
    except PlanError as error:
        raise ReplanError(f"{error}") from None
    (topology, factor, told, known, *_, backlog), made, measured, notes, running = found
    page = write_plan_page(topology, made, factor, page_of_plan(settings, name), measured, notes, running)
    was = None if running is None else running.placement
    work = record_work(job_folder(settings, name).topology(), topology, made.placement) if measured else {}
    sentence, ask = compare(topology, was, made.placement, told)
    return {
        "sentence": ". ".join([sentence, *notes]), "ask": ask and known, "load": told, "known": known,
        "backlog": backlog, "page": str(page), "was": None if was is None else as_json(was),
        "placement": as_json(made.placement), "work": {own: [*one] for own, one in work.items()},
    }  # fmt: skip


def plan_job(settings: Settings, file: Path, load_factor: float | None) -> PlannedJob:
    """Plan a job for a load: one that was begun with its own queries, as it was begun.

    Args:
        settings: with a broker, where the job was begun and no load is given.
        file: its topology.
        load_factor: of the stated rates; None: of one that was begun as measured, else 1.

    Raises:
        PlanError: the clusters have no room, for what comes alone neither.
        SettingsError, BrokerError: no such topology; the broker does not answer.
    """
    folder, name = job_folder(settings, file.stem), file.stem
    was = folder.wanted() if folder.began() else None
    if was:
        load_now, *alone = loads_of(settings, folder, load_factor)
    else:
        load_now, alone = PlannedLoad(load_topology(name, file.parent), load_factor or 1.0, load_factor or 1.0), []
    measured = was is not None and load_now.known and not load_factor
    fixed = tuple(one.operators for one in was.blocks) if was else None
    notes = [planned_when(load_now.topology, measured)]
    try:
        made = choose_placement(load_now.topology, load_now.factor, fixed)
    except PlanError:
        if not alone:
            raise
        (load_now,) = alone
        made = choose_placement(load_now.topology, load_now.factor, fixed)
        notes.append("There is no room to work off what waits, too: planned for what comes alone")
    topology, factor, _, known, *_ = load_now
    if not known:
        notes.append(f"Nothing was measured in the last {span_in_words(topology)}: planned for the stated rates")
    notes += describe_untold_work(load_now.observed)
    if was and not measured and not state.is_reserved(folder.path / "stack"):
        notes.append(f"No `tidecast job up {name}` runs on this computer")
    if was and folder.has_changed(file):
        notes.append(describe_change(file.name))
    if made.better:
        what = f"Other queries would be better ({summary(made.better)})"
        notes.append(f"{what}, but which operators are one query is fixed while the job runs")
    if not was:
        return PlannedJob(load_now, made, measured, notes)
    placement = _beside_autoscaler(folder, load_now, was, made.placement)
    if placement != made.placement:
        notes.append(SCALED)
        followed_s = followed_quantile_s(Measure(topology, rates_of(topology, factor)), placement)
        made = replace(made, placement=placement, followed_s=followed_s)  # what is applied
    return PlannedJob(load_now, made, measured, notes, RunningJob(was, load_now.observed, load_now.path_s))


def apply(form: dict[str, Any], planned: dict[str, Any]) -> str:
    """Want a running job's queries where a plan puts them; whoever runs the job moves them. Returns what is wanted.

    Args:
        form: as for `plan`.
        planned: what that returned.

    Raises:
        ReplanError: the queries are wanted elsewhere since, a cluster on which they are to run does not answer, or one
            would be scaled no more.
    """
    settings = load()
    folder = job_folder(settings, form["topology"])
    told = planned["placement"]
    blocks = tuple(Block(**{**one, "operators": tuple(one["operators"])}) for one in told["blocks"])
    made = Placement(blocks, told["price"], told["latency_s"], told["kept"])
    to, before = partial(_instead_of, planned["was"], made, form["topology"]), folder.wanted()
    try:
        refuse_away(folder.topology(), to(before), wanted=before)  # whoever approved it has had twelve hours
        refuse_unscaled(settings, folder.topology(), before, made)
    except (PlanError, SettingsError) as error:
        raise ReplanError(f"{error}") from None
    folder.change(to, planned.get("work"))  # of a question that an older release has asked: as before
    return str(planned["sentence"])


def want_plan(settings: Settings, folder: JobFolder, load_now: PlannedLoad, made: Placement) -> str:
    """Want the queries of a job that was begun, runs it or not, where a plan puts them; returns what that changes.

    Args:
        settings: with the folder of the contracts.
        folder: of the job.
        load_now: for which the plan was made.
        made: the plan of its queries.

    Raises:
        ReplanError: the queries are wanted elsewhere meanwhile.
        PlanError, SettingsError: a cluster to which queries would go is away, or one would be scaled no more.
    """
    before, (topology, factor, told, *_) = folder.wanted(), load_now
    found, made = made, _beside_autoscaler(folder, load_now, before, made)
    sentence, able = compare(topology, before, made, told)
    if found != made:
        sentence += f". {SCALED}"
    if able:
        refuse_away(topology, made, factor, before)
        refuse_unscaled(settings, topology, before, made)
        work = record_work(folder.topology(), topology, made) if load_now.observed else None  # stated load: as before
        folder.change(partial(_instead_of, as_json(before), made, topology.name), work)
    return sentence


def _beside_autoscaler(folder: JobFolder, load_now: PlannedLoad, was: Placement, made: Placement) -> Placement:
    """A plan without other executors of the queries that the autoscaler scales where they run now."""
    topology, factor, *_ = load_now
    epochs = {block.operators: folder.newest(block.name) for block in applications_of(topology, was)}
    scaled = {operators for operators, epoch in epochs.items() if epoch is not None and epoch.is_scaled()}
    return keep_executors(Measure(topology, rates_of(topology, factor)), made, was, scaled)


def loads_of(settings: Settings, folder: JobFolder, load_factor: float | None) -> list[PlannedLoad]:
    """Return for what a running job is planned; and behind it, where anything waits for its queries, that without it.

    Where no factor is given its queries are as they were measured, and the factor is 1; where none was, all is as
    stated.

    Raises:
        SettingsError, BrokerError: no job was begun there; the broker does not answer.
    """
    topology, placement = folder.topology(), folder.wanted()
    if load_factor:
        unseen = [observe_block(topology, placement, at, []) for at in range(len(placement.blocks))]
        return [PlannedLoad(topology, load_factor, load_factor, observed=unseen)]
    found, path_s = observe_job(settings, folder, span_of(topology))
    if all(one.offered_rps is None for one in found):
        return [PlannedLoad(topology, 1.0, 1.0, known=False, observed=found)]
    come, stated = [one._replace(come_rps=one.arrival_rps) for one in found], any(rates_of(topology).sent.values())
    reads, trips, sizes = reads_of(topology, placement), observe_trips(folder), observe_record_bytes(settings, folder)
    return [
        PlannedLoad(
            as_measured(topology, placement, each, trips, sizes, folder.work()), 1.0,
            measured_factor(each, list(topology.sources), reads) if stated else None, observed=each, path_s=path_s,
            backlog=each is found,
        )
        for each in ([found] if come == found else [found, come])
    ]  # fmt: skip


def as_json(made: Placement) -> dict[str, Any]:
    """Return a placement as it is after a way through JSON, which knows no tuples."""
    return dict(json.loads(json.dumps(asdict(made))))


def _instead_of(was: dict[str, Any], made: Placement, job: str, now: Placement) -> Placement:
    """A plan in the order in which the queries were begun, if these are wanted now as when it was made (`as_json`)."""
    if was != as_json(now) and {*now.blocks} != {*made.blocks}:  # the latter: a task tried again
        raise ReplanError(f"{job}: its queries are wanted elsewhere since it was planned. Plan it again.")
    by_operators = {one.operators: one for one in made.blocks}
    return replace(made, blocks=tuple(by_operators[one.operators] for one in now.blocks))
