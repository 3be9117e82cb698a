"""The contracts of a job's queries: files as those of any other job, by which the autoscaler scales each query."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import yaml

from configs.contract import LEAST_BUDGET, Contract, load_contract
from configs.errors import SettingsError
from configs.planning import Executors
from configs.settings import Settings
from configs.topology import Topology
from models.placement.plan.applications import BlockApplication, applications_of
from models.placement.plan.shares import allowed_clusters, most_executors, path_shares
from pipelines.placement.job_folder import JobFolder


def write_contracts(settings: Settings, folder: JobFolder) -> list[Path]:
    """Write a contract for each query of a job that has none, and return their paths; those that are there stay.

    A query's target is its share of the job's (`path_shares`). Its most executors are those that the largest cluster
    has room for on which it may run: where it is on a smaller one, more are a reason to move it.

    Args:
        settings: with the folder of the contracts.
        folder: of the job, which was begun.

    Raises:
        SettingsError: no job was begun there.
        OSError: a file cannot be written.
    """
    topology, placement = folder.topology(), folder.wanted()
    shares, made = path_shares(topology, placement), list[Path]()
    settings.contracts_dir.mkdir(parents=True, exist_ok=True)
    for number, block in enumerate(applications_of(topology, placement)):
        file = contract_file(settings, block.name)
        if not file.exists():
            rooms = [
                most_executors(topology, placement, number, one) for one in allowed_clusters(topology, block.operators)
            ]  # fmt: skip
            executors = {"min": 1, "max": max(block.executors, *rooms),
                         "cores": topology.clusters[block.cluster].executor_cores}  # fmt: skip
            told = {
                "job": block.name, "latency_target_s": max(round(shares[number].seconds, 2), topology.overhead_s),
                "executors": executors, "error_budget": max(round(1 - topology.quantile, 6), LEAST_BUDGET),
                "planning": {"overhead_s": topology.overhead_s},
            }  # fmt: skip
            what = f"# {' + '.join(block.operators)} of {topology.name}: its share of {topology.target_s:g} s.\n"
            file.write_text(what + yaml.safe_dump(told, sort_keys=False))
            load_contract(block.name, settings.contracts_dir)
            made.append(file)
    return made


def contract_file(settings: Settings, query: str) -> Path:
    """Return the path of a query's contract, which need not exist."""
    return settings.contracts_dir / f"{query}.yaml"


def contract_of(
    settings: Settings, topology: Topology, block: BlockApplication, say: Callable[[str], None]
) -> tuple[Contract, bool]:
    """Return a query's contract, and whether the autoscaler is to scale it: where it has a contract of its own.

    Else, and where that is wrong, which is said, it has as many executors as it was placed with.

    Args:
        settings: with the folder of the contracts.
        topology: of the job.
        block: the query.
        say: called with what a person is told.
    """
    if contract_file(settings, block.name).is_file():
        try:
            return load_contract(block.name, settings.contracts_dir), True
        except SettingsError as error:
            say(f"{block.name}: not scaled until its contract is corrected and it begins again. {error}")
    cores = topology.clusters[block.cluster].executor_cores
    fixed = Executors(min=block.executors, max=block.executors, cores=cores)
    return Contract(job=block.name, latency_target_s=topology.target_s, executors=fixed), False


def begun_with(contract: Contract, placed: int, room: int) -> Contract:
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
