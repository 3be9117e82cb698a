"""A placement with one of its queries on another cluster, and a plan beside the autoscaler."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from configs.topology import Topology
from models.placement.plan.blocks import Blocks
from models.placement.plan.choose import PlanError
from models.placement.plan.measured import Measure, Placement
from models.placement.rates import rates_of


def place_block(
    topology: Topology, placement: Placement, operators: Sequence[str], cluster: str, executors: int
) -> Placement:
    """Return a placement in which a query is on a cluster with so many executors, also where there is no room for it.

    On a cluster that the job does not have it keeps the figures that it had: nothing tells others.

    Args:
        topology: of the job.
        placement: of its operators.
        operators: of the query.
        cluster: where it is then.
        executors: that it has then.
    """
    changed = _with(placement, operators, cluster, executors)
    if not {one.cluster for one in changed.blocks} <= topology.clusters.keys():
        return changed
    return Measure(topology, rates_of(topology)).placed(*_parts(changed))


def take_back(
    topology: Topology, placement: Placement, operators: Sequence[str], tried: tuple[str, int], home: tuple[str, int]
) -> Placement:
    """Return a placement in which a query is where it worked before; the same one if it is wanted elsewhere by now.

    Args:
        topology: of the job.
        placement: of its operators, as is wanted now.
        operators: of the query.
        tried: cluster, and executors, with which it was tried in vain.
        home: cluster, and executors, with which it worked.
    """
    own = next((one for one in placement.blocks if one.operators == tuple(operators)), None)
    if own is None or (own.cluster, own.executors) != tried:
        return placement
    return place_block(topology, placement, operators, *home)


def keep_executors(
    measure: Measure, made: Placement, was: Placement, scaled: Collection[tuple[str, ...]]
) -> Placement:  # fmt: skip
    """Return a plan in which queries that are scaled have, where they stay, the executors that they were placed with.

    How many they have the autoscaler decides; what the plan comes to is told for these.

    Args:
        measure: of the load for which the plan was made.
        made: the plan.
        was: where the queries are wanted now.
        scaled: operators of each query that the autoscaler scales where it is wanted now.
    """
    before = {(one.operators, one.cluster): one.executors for one in was.blocks if one.operators in scaled}
    executors = [before.get((one.operators, one.cluster), one.executors) for one in made.blocks]
    if executors == [one.executors for one in made.blocks]:
        return made
    blocks, clusters, _ = _parts(made)
    return measure.placed(blocks, clusters, executors)


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
    changed = _with(placement, own.operators, cluster, own.executors)
    known = {one.cluster for one in changed.blocks} <= topology.clusters.keys()
    made = Measure(topology, rates_of(topology)).given(*_parts(changed)) if known else None
    if made is None and topology.quota_cores is not None:
        cores = {name: one.executor_cores for name, one in topology.clusters.items()}
        others = sum(one.executors * cores[one.cluster] for one in placement.blocks if one is not own)
        if (taken := others + own.executors * cores[cluster]) > topology.quota_cores:
            raise PlanError(
                f"quota_cores={topology.quota_cores}: {own.executors} executors on {cluster} have {cores[cluster]} "
                f"cores each, and all queries had {taken} then. Begin the job with a larger quota to move it there."
            )
    there = topology.clusters[cluster]
    if made is None and own.executors * there.executor_cores > max(topology.partitions, there.executor_cores):
        raise PlanError(
            f"partitions={topology.partitions}: {own.executors} executors on {cluster} have {there.executor_cores} "
            f"cores each, which is more than {'+'.join(own.operators)} has tasks for. `tidecast plan {topology.name} "
            "--apply` puts it there with as many as it needs, if that pays."
        )
    if made is None:
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


def _parts(placement: Placement) -> tuple[Blocks, list[str], list[int]]:
    """What a placement is measured by: operators, cluster and executors of each query."""
    blocks = placement.blocks
    return tuple(one.operators for one in blocks), [one.cluster for one in blocks], [one.executors for one in blocks]
