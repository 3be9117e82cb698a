"""A placement with one of its queries on another cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from configs.topology import Topology
from models.placement.plan.choose import PlanError
from models.placement.plan.measured import Measure, Placement
from models.placement.rates import rates_of


def place_block(
    topology: Topology, placement: Placement, operators: Sequence[str], cluster: str, executors: int
) -> Placement:
    """Return a placement in which a query is on a cluster with so many executors, also where there is no room for it.

    Args:
        topology: of the job.
        placement: of its operators.
        operators: of the query.
        cluster: where it is then.
        executors: that it has then.
    """
    changed = _with(placement, operators, cluster, executors)
    return _measured(topology, changed) or changed


def move_block(topology: Topology, placement: Placement, operator: str, cluster: str) -> Placement:
    """Return a placement in which the query of an operator is on another cluster, with as many executors.

    Args:
        topology: of the job.
        placement: of its operators.
        operator: any of those of the query.
        cluster: to which it goes.

    Raises:
        PlanError: there is no such operator or cluster, another cluster is stated for an operator of the query, or
            there is no room.
    """
    number = next((at for at, block in enumerate(placement.blocks) if operator in block.operators), None)
    if number is None:
        raise PlanError(f"{operator!r}: {topology.name} has no such operator. It has {', '.join(topology.operators)}.")
    if cluster not in topology.clusters:
        raise PlanError(f"{cluster!r}: {topology.name} has no such cluster. It has {', '.join(topology.clusters)}.")
    own = placement.blocks[number]
    for name in own.operators:
        if (stated := topology.operators[name].cluster) not in (None, cluster):
            raise PlanError(f"operators.{name}.cluster={stated!r}: it may not run on {cluster}. Take that away first.")
    made = _measured(topology, _with(placement, own.operators, cluster, own.executors))
    if made is None and topology.quota_cores is not None:
        cores = {name: one.executor_cores for name, one in topology.clusters.items()}
        others = sum(one.executors * cores[one.cluster] for one in placement.blocks if one is not own)
        if (taken := others + own.executors * cores[cluster]) > topology.quota_cores:
            raise PlanError(
                f"quota_cores={topology.quota_cores}: {own.executors} executors on {cluster} have {cores[cluster]} "
                f"cores each, and all queries had {taken} then. Begin the job with a larger quota to move it there."
            )
    if made is None:
        there = topology.clusters[cluster]
        taken = sum(one.executors for one in placement.blocks if one.cluster == cluster) * there.executor_cores
        raise PlanError(
            f"{cluster} has no room for {'+'.join(own.operators)}: of its {there.cores} cores {taken} are taken, and "
            f"{own.executors} executors of {there.executor_cores} are to come, with what they hold in "
            f"{there.memory_gb:g} GB. Move another query away first, or add to the cluster."
        )
    return made


def _with(placement: Placement, operators: Sequence[str], cluster: str, executors: int) -> Placement:
    return replace(placement, blocks=tuple(
        replace(one, cluster=cluster, executors=executors) if one.operators == tuple(operators) else one
        for one in placement.blocks
    ))  # fmt: skip


def _measured(topology: Topology, placement: Placement) -> Placement | None:
    blocks = tuple(block.operators for block in placement.blocks)
    clusters, executors = ([getattr(block, name) for block in placement.blocks] for name in ("cluster", "executors"))
    if not {*clusters} <= topology.clusters.keys():
        return None
    return Measure(topology, rates_of(topology)).given(blocks, clusters, executors)
