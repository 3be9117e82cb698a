"""The contracts of a job's queries: files as those of any other job, by which the autoscaler scales each query."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from configs.contract import LEAST_BUDGET, Contract, load_contract
from configs.errors import SettingsError
from configs.planning import Executors
from configs.settings import Settings
from configs.topology import Topology
from models.placement.plan.applications import BlockApplication, applications_of
from models.placement.plan.measured import Placement
from models.placement.plan.shares import allowed_clusters, most_executors, path_shares
from pipelines.placement.job_folder import JobFolder
from pipelines.placement.scaled.written import is_as_written, signed
from pipelines.whole_file import write_text

WRITTEN = "# Written by Tidecast; the target follows the job's plan until this file is edited: "
"""Begins a contract that was written here."""


def write_contracts(settings: Settings, folder: JobFolder) -> list[Path]:
    """Write a contract for each query of a job that has none, and return their paths; those that are there stay.

    A query's target is its share of the job's (`path_shares`), as long as nobody edits the file (`update_targets`).
    Its most executors are those that the largest cluster
    has room for on which it may run: where it is on a smaller one, more are a reason to move it.

    Args:
        settings: with the folder of the contracts.
        folder: of the job, which was begun.

    Raises:
        SettingsError: no job was begun there, or a query may run on clusters whose executors have different cores.
        OSError: a file cannot be written.
    """
    topology, placement = folder.topology(), folder.wanted()
    targets, made = _targets(topology, placement), list[Path]()
    missing = [
        (number, block)
        for number, block in enumerate(applications_of(topology, placement))
        if not contract_file(settings, block.name).exists()
    ]
    for _, block in missing:
        _refuse_unlike(topology, block)
    settings.contracts_dir.mkdir(parents=True, exist_ok=True)
    for number, block in missing:
        file = contract_file(settings, block.name)
        executors = {"min": 1, "max": max(block.executors, _room(topology, placement, number)),
                     "cores": topology.clusters[block.cluster].executor_cores}  # fmt: skip
        told = {
            "job": block.name, "latency_target_s": targets[number],
            "executors": executors, "error_budget": max(round(1 - topology.quantile, 6), LEAST_BUDGET),
            "planning": {"overhead_s": topology.overhead_s},
        }  # fmt: skip
        write_text(file, _text(topology, block, told))
        load_contract(block.name, settings.contracts_dir)
        made.append(file)
    return made


def _refuse_unlike(topology: Topology, block: BlockApplication) -> None:
    """Refuse a query that may run on clusters whose executors differ: a contract counts in executors of one size."""
    cores = {name: topology.clusters[name].executor_cores for name in allowed_clusters(topology, block.operators)}
    if len({*cores.values()}) > 1:
        told = ", ".join(f"{name}: {many}" for name, many in cores.items())
        raise SettingsError(
            f"{topology.name}.yaml: executor_cores: {block.name} may run where executors differ ({told} cores), and a "
            f"contract has executors of one size. Begin the job anew with one executor_cores for these clusters, or "
            f"with operators.{block.operators[0]}.cluster stated."
        )


def refuse_unscaled(settings: Settings, topology: Topology, now: Placement, then: Placement) -> None:
    """Refuse a placement in which a query would be scaled no more, as its contract has executors of another size.

    One that is not scaled where it is wanted now may go anywhere.

    Args:
        settings: with the folder of the contracts.
        topology: of the job.
        now: where its queries are wanted.
        then: where they are to be wanted, each with the same operators.

    Raises:
        SettingsError: with the contract, both sizes, and what helps.
    """
    to = {block.operators: block for block in then.blocks}
    known = [block for block in applications_of(topology, now) if block.cluster in topology.clusters]
    for block in known:
        contract, scaled = contract_of(settings, topology, block, lambda line: None)
        there = to[block.operators].cluster
        if scaled and (cores := topology.clusters[there].executor_cores) != contract.executors.cores:
            raise SettingsError(
                f"{block.name} would not be scaled on {there}, where executor_cores={cores}: "
                f"{contract_file(settings, block.name)} has executors.cores={contract.executors.cores}. Move that file "
                f"away first, and it keeps its executors there; with executors.cores={cores} it is scaled again once "
                "it begins again."
            )


def update_targets(settings: Settings, folder: JobFolder) -> Iterator[str]:
    """Share a job's target out anew where its queries are wanted now; yields a line for each contract that changes.

    Only contracts change whose text is as it was written here; the autoscaler takes them over as it runs.

    Args:
        settings: with the folder of the contracts.
        folder: of the job, which was begun.

    Raises:
        SettingsError: no job was begun there.
        OSError: a file cannot be read or written.
    """
    topology, placement = folder.topology(), folder.wanted()
    for block, target_s in zip(applications_of(topology, placement), _targets(topology, placement), strict=True):
        file = contract_file(settings, block.name)
        text = file.read_text(errors="replace") if file.is_file() else ""
        if not is_as_written(text, WRITTEN):
            continue
        told = yaml.safe_load(text)
        if (before_s := told["latency_target_s"]) != target_s:
            changed = _text(topology, block, {**told, "latency_target_s": target_s})
            if file.read_text(errors="replace") == text:  # nobody has written to it meanwhile
                write_text(file, changed)
                yield f"{block.name}: {target_s:g} s of {topology.target_s:g}, after {before_s:g}"


def _targets(topology: Topology, placement: Placement) -> list[float]:
    return [max(round(one.seconds, 2), topology.overhead_s) for one in path_shares(topology, placement)]


def _text(topology: Topology, block: BlockApplication, told: dict[str, Any]) -> str:
    what = f"# {' + '.join(block.operators)} of {topology.name}: its share of {topology.target_s:g} s.\n"
    return signed(WRITTEN, what + str(yaml.safe_dump(told, sort_keys=False)))


def contract_file(settings: Settings, query: str) -> Path:
    """Return the path of a query's contract, which need not exist."""
    return settings.contracts_dir / f"{query}.yaml"


def contract_of(
    settings: Settings, topology: Topology, block: BlockApplication, say: Callable[[str], None]
) -> tuple[Contract, bool]:
    """Return a query's contract, and whether the autoscaler is to scale it: where it has a contract of its own.

    Else, and where that is wrong, or of executors of another size than its cluster's, which is said, it has as many
    executors as it was placed with: rooms, plans and off-loads are counted in the cluster's executors.

    Args:
        settings: with the folder of the contracts.
        topology: of the job.
        block: the query.
        say: called with what a person is told.
    """
    cores = topology.clusters[block.cluster].executor_cores
    if contract_file(settings, block.name).is_file():
        try:
            own = load_contract(block.name, settings.contracts_dir)
            if own.executors.cores == cores:
                return own, True
            why = f"executors.cores={own.executors.cores}, but executor_cores={cores} of {block.cluster}."
        except SettingsError as error:
            why = f"{error}"
        say(f"{block.name}: not scaled until its contract is corrected and it begins again. {why}")
    fixed = Executors(min=block.executors, max=block.executors, cores=cores)
    return Contract(job=block.name, latency_target_s=topology.target_s, executors=fixed), False


def most_cores(settings: Settings, topology: Topology, placement: Placement, number: int) -> int | None:
    """Return the cores that a query may come to at most, on any cluster; None: no contract of its own says so.

    Args:
        settings: with the folder of the contracts.
        topology: of the job.
        placement: of its operators.
        number: of the query.
    """
    block = applications_of(topology, placement)[number]
    contract, scaled = contract_of(settings, topology, block, lambda line: None)  # its application says what is wrong
    bounds = contract.executors
    return max(min(bounds.max, _room(topology, placement, number)), bounds.min) * bounds.cores if scaled else None


def _room(topology: Topology, placement: Placement, number: int) -> int:
    """Executors for which the largest cluster has room on which a query may run, of those whose executors are alike."""
    block, clusters = placement.blocks[number], topology.clusters
    cores = clusters[block.cluster].executor_cores
    alike = [one for one in allowed_clusters(topology, block.operators) if clusters[one].executor_cores == cores]
    return max(most_executors(topology, placement, number, one) for one in alike)


def starting_contract(contract: Contract, placed: int, room: int) -> Contract:
    """Return the contract by which a query's application is started: from the executors that it was placed with.

    Args:
        contract: of the query.
        placed: executors.
        room: executors that its cluster has for it, beside other queries.
    """
    bounds = contract.executors
    most = max(min(bounds.max, room), bounds.min)
    least = min(max(placed, bounds.min), most)
    return contract.model_copy(update={"executors": bounds.model_copy(update={"min": least, "max": most})})
