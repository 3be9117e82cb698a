"""A job's quota of cores as a pool of its queries, which the autoscaler divides and never exceeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from configs.contract import load_contract, read_contracts
from configs.errors import SettingsError
from configs.files import read_lined
from configs.planning import Executors
from configs.pool import ClusterPool, read_pools
from configs.settings import Settings
from configs.topology import Topology
from models.placement.plan.applications import applications_of
from pipelines.placement.job_folder import JobFolder
from pipelines.placement.scaled.written import is_as_written, signed
from pipelines.whole_file import write_text

WRITTEN = "# Written by Tidecast; follows the job's topology until this file is edited: "
"""Begins a pool that was written here."""


def write_quota_pool(settings: Settings, folder: JobFolder) -> list[str]:
    """Write or update the pool of a job's queries where its topology has a quota, and return lines for a person.

    The pool has the job's name. One that somebody has edited stays as it is, and has to have all the queries; one that
    is as it was written goes where the job that was begun has no quota.

    Args:
        settings: with the folders of contracts and pools.
        folder: of the job, which was begun, and of whose queries each has a contract.

    Raises:
        SettingsError: no job was begun there, a contract is wrong or missing, the quota is less than the least
            executors of the contracts come to, or a query is in another pool, or not in the one that was edited.
        OSError: a file cannot be read or written.
    """
    topology = folder.topology()
    file = settings.pools_dir / f"{topology.name}.yaml"
    text = file.read_text(errors="replace") if file.is_file() else ""
    ours = not text or is_as_written(text, WRITTEN)
    if topology.quota_cores is None:
        if not text or not ours:
            return []
        file.unlink()
        return [f"{file}: taken away, as the job has no quota_cores any more"]
    names = [block.name for block in applications_of(topology, folder.wanted())]
    contracts, _ = read_contracts(settings.contracts_dir)
    _refuse_small(folder, topology, [load_contract(name, settings.contracts_dir).executors for name in names])
    _refuse_shared(topology, names, read_pools(settings.pools_dir, contracts)[0])
    body = f"# The queries of {topology.name} together: quota_cores of its topology.\n" + yaml.safe_dump(
        {"name": topology.name, "cores": topology.quota_cores, "jobs": {name: {} for name in names}}, sort_keys=False
    )
    wanted = signed(WRITTEN, body)
    if ours and text != wanted:
        settings.pools_dir.mkdir(parents=True, exist_ok=True)
        write_text(file, wanted)
    pools, wrong = read_pools(settings.pools_dir, contracts)
    if topology.name in wrong:
        raise SettingsError(wrong[topology.name])
    if not ours:
        _refuse_missing(file, topology, names, pools[topology.name])
        return [f"{file}: has been edited, and counts as it is, with {pools[topology.name].cores} cores"]
    return [] if text == wanted else [str(file)]


def _refuse_small(folder: JobFolder, topology: Topology, bounds: Sequence[Executors]) -> None:
    least, kept = sum(one.min * one.cores for one in bounds), folder.path / f"{topology.name}.yaml"
    if topology.quota_cores is not None and topology.quota_cores < least:
        line = read_lined(kept.read_text()).line_of(("quota_cores",))
        raise SettingsError(
            f"{kept.name}, line {line}: quota_cores={topology.quota_cores}: the least executors of the job's "
            f"{len(bounds)} queries come to {least} cores by their contracts. Lower executors.min of one, or begin the "
            f"job anew with {least} or more."
        )


def _refuse_missing(file: Path, topology: Topology, names: Sequence[str], pool: ClusterPool) -> None:
    """Refuse queries that the job's pool, which somebody has written or edited, does not have: they would be free."""
    if missing := [name for name in names if name not in pool.jobs]:
        raise SettingsError(
            f"{file.name}: {', '.join(missing)} not among the jobs of this pool, which has been edited: nothing holds "
            f"quota_cores={topology.quota_cores} of all queries together. Add what is missing there, or delete the "
            f"file: then it is written anew."
        )


def _refuse_shared(topology: Topology, names: Sequence[str], pools: Mapping[str, ClusterPool]) -> None:
    """Refuse queries that are in another pool: neither of the two would count."""
    for other in pools.values():
        if other.name != topology.name and (both := [name for name in names if name in other.jobs]):
            raise SettingsError(
                f"{other.name}.yaml: {both[0]} is in this pool, and would be in that of its job's quota, too. Take it "
                f"out, or begin the job anew without quota_cores."
            )
