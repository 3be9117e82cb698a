"""A job planned for the load that it has now, and a plan applied: by the DAG `plan_placement`, or by a command."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from configs.errors import FinalError
from configs.settings import Settings, load
from configs.topology import Topology, load_topology
from models.placement.plan.applications import reads_of
from models.placement.plan.as_measured import as_measured
from models.placement.plan.choose import PlanError, choose_placement
from models.placement.plan.measured import Block, Placement
from models.placement.plan.observed import measured_factor
from pipelines.placement.job_folder import JobFolder
from pipelines.placement.observed import observe_job, observe_record_bytes, observe_trips
from pipelines.placement.page.plan_page import describe_change, page_of_plan, write_plan_page
from pipelines.placement.reached import refuse_away
from pipelines.placement.running import job_folder
from pipelines.stack.state import with_stack_addresses

LAST_S = 600.0
"""Seconds up to now by which the load of a running job is told."""


class ReplanError(FinalError, RuntimeError):
    """A topology for which there is no plan, or a plan that cannot be applied any more; says why."""


def plan(form: dict[str, Any]) -> dict[str, Any]:
    """Plan a topology for a load, and write the plan's page; nothing is changed.

    Args:
        form: `topology`, its name; and maybe `load`, of the stated rates: by default a running job has the rates, and
            the work of its records, that were measured.

    Returns:
        `sentence`, what would change of the running job, and whether its file is another one since it was begun, which
        this plan does not know; `ask`, whether anything would that can be applied; `load`; `page`, path of the page;
        `was` and `placement`, where the queries are wanted, and would be.

    Raises:
        ReplanError: the clusters have no room.
        SettingsError, BrokerError: no such topology; the broker does not answer.
    """
    settings = with_stack_addresses(load())
    folder, name = job_folder(settings, form["topology"]), form["topology"]
    began = folder.began()
    measured = began and not form.get("load")
    if began:
        topology, factor, told = loaded(settings, folder, form.get("load"))
    else:
        topology = load_topology(name, settings.topologies_dir)
        factor = told = form.get("load") or 1.0
    try:
        made = choose_placement(topology, factor)
    except PlanError as error:
        raise ReplanError(f"{error}") from None
    file = settings.topologies_dir / f"{name}.yaml"
    changed = began and folder.has_changed(file)
    page = write_plan_page(topology, made, factor, page_of_plan(settings, name), measured, file.name if changed else "")
    was = folder.wanted() if began else None
    sentence, ask = compare(topology, was, made.placement, told)
    if changed:
        sentence += f". {describe_change(file.name)}"
    return {
        "sentence": sentence, "ask": ask, "load": told, "page": str(page),
        "was": None if was is None else as_json(was), "placement": as_json(made.placement),
    }  # fmt: skip


def apply(form: dict[str, Any], planned: dict[str, Any]) -> str:
    """Want a running job's queries where a plan puts them; whoever runs the job moves them. Returns what is wanted.

    Args:
        form: as for `plan`.
        planned: what that returned.

    Raises:
        ReplanError: the queries are wanted elsewhere since.
    """
    folder = job_folder(load(), form["topology"])
    told = planned["placement"]
    blocks = tuple(Block(**{**one, "operators": tuple(one["operators"])}) for one in told["blocks"])
    made = Placement(blocks, told["price"], told["latency_s"], told["kept"])

    def to(now: Placement) -> Placement:
        if planned["was"] != as_json(now):
            raise ReplanError(
                f"{form['topology']}: its queries are wanted elsewhere since it was planned. Plan it again."
            )
        return _in_order(made, now)

    folder.change(to)
    return str(planned["sentence"])


def want_plan(folder: JobFolder, file: Path, made: Placement, factor: float) -> str:
    """Want the queries of a job that was begun where a plan puts them, and return what that changes.

    Whoever runs the job moves them; one that does not run begins so.

    Args:
        folder: of the job.
        file: topology for which the plan was made.
        made: the plan.
        factor: of the stated rates, for which it was made.

    Raises:
        ReplanError: the file has changed since the job was begun, or other queries would be better.
        PlanError: a cluster to which queries would go is away.
    """
    if folder.has_changed(file):
        raise ReplanError(
            f"{file.name} has changed since this job was begun, and the plan is for what it says now. Put it back, or "
            f"move {folder.path} away to begin the job anew."
        )
    before = folder.wanted()
    sentence, able = compare(folder.topology(), before, made, factor)
    if able:
        refuse_away(folder.topology(), made, factor, before)
        folder.change(lambda now: _in_order(made, now))
    elif {one.operators for one in before.blocks} != {one.operators for one in made.blocks}:
        raise ReplanError(f"{sentence}. To begin it anew with these, stop it and move {folder.path} away.")
    return sentence


def compare(topology: Topology, was: Placement | None, made: Placement, factor: float) -> tuple[str, bool]:
    """Return in a sentence what a plan would change of a running job, and whether that can be applied while it runs.

    Args:
        topology: of the job.
        was: where its queries are wanted; None: it does not run.
        made: the plan.
        factor: of the sources' rates, for which it was made.
    """
    at = f"{topology.name} at {factor:.2g} times the stated rates: "
    if was is None:
        return f"{at}{_count(made)}, {made.price:.2f} an hour, {made.latency_s:.1f} s; it does not run", False
    if {one.operators for one in was.blocks} != {one.operators for one in made.blocks}:
        return (
            f"{at}other queries would be better ({made.price:.2f} an hour, {made.latency_s:.1f} s), but what is one "
            "query is fixed while it runs"
        ), False
    moves = [
        f"{'+'.join(new.operators)} from {_where(old)} to {_where(new)}"
        for new in made.blocks
        for old in was.blocks
        if old.operators == new.operators and (old.cluster, old.executors) != (new.cluster, new.executors)
    ]
    if not moves:
        return f"{at}it stays as it is", False
    return f"{at}{'; '.join(moves)} ({made.price:.2f} an hour after {was.price:.2f}, {made.latency_s:.1f} s)", True


def loaded(settings: Settings, folder: JobFolder, load_factor: float | None) -> tuple[Topology, float, float]:
    """Return a running job's topology, the factor of its rates that is planned for, and by how much more comes.

    Where no factor is given its queries are as they were measured, and the factor is 1.

    Raises:
        SettingsError, BrokerError: no job was begun there; the broker does not answer.
    """
    topology, placement = folder.topology(), folder.wanted()
    if load_factor:
        return topology, load_factor, load_factor
    found, _ = observe_job(settings, folder, LAST_S)
    measured = as_measured(topology, placement, found, observe_trips(folder), observe_record_bytes(settings, folder))
    return measured, 1.0, measured_factor(found, list(topology.sources), reads_of(topology, placement))


def as_json(made: Placement) -> dict[str, Any]:
    """Return a placement as it is after a way through JSON, which knows no tuples."""
    told: dict[str, Any] = json.loads(json.dumps(asdict(made)))
    return told


def _in_order(made: Placement, before: Placement) -> Placement:
    """A plan of the same queries, in the order in which they were begun."""
    by_operators = {one.operators: one for one in made.blocks}
    return replace(made, blocks=tuple(by_operators[one.operators] for one in before.blocks))


def _count(made: Placement) -> str:
    many = len(made.blocks)
    return f"{many} {'query' if many == 1 else 'queries'}"


def _where(block: Block) -> str:
    return f"{block.executors} {'executor' if block.executors == 1 else 'executors'} on {block.cluster}"
