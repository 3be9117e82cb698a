"""Logical plans: named operators in an acyclic graph, and what a plan means for whole relations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

from models.relation.operators import Operator
from models.relation.records import Relation, RelationError
from models.relation.watermark import Source


@dataclass(frozen=True)
class Node:
    """An operator at its place in a plan.

    Attributes:
        name: as other nodes name it.
        operator: what is done.
        inputs: sources or nodes, in the operator's order; one may come twice, as in a join with itself.
    """

    name: str
    operator: Operator
    inputs: tuple[str, ...]


@dataclass(frozen=True)
class LogicalPlan:
    """Sources, and nodes in any order. Every node's result can be read; those that no node reads are the plan's.

    Raises:
        RelationError: a name stands twice or is unknown, a node has too few or too many inputs, or there is a cycle.
    """

    sources: tuple[Source, ...]
    nodes: tuple[Node, ...]

    def __post_init__(self) -> None:
        names = [*(source.name for source in self.sources), *(node.name for node in self.nodes)]
        if twice := sorted(name for name, count in Counter(names).items() if count > 1):
            raise RelationError(f"names that stand twice in a plan, {twice}: give each source and node its own")
        for node in self.nodes:
            if unknown := sorted({*node.inputs} - {*names}):
                raise RelationError(f"inputs {unknown} of node {node.name!r} are unknown: known are {sorted(names)}")
            arity = node.operator.arity
            if not node.inputs or (arity is not None and len(node.inputs) != arity):
                raise RelationError(
                    f"{len(node.inputs)} inputs of node {node.name!r}: {type(node.operator).__name__} takes"
                    f" {arity or 'one or more'}"
                )
        try:
            TopologicalSorter({node.name: node.inputs for node in self.nodes}).prepare()
        except CycleError as error:
            raise RelationError(f"cycle {' -> '.join(error.args[1])} in a plan: take away one of its inputs") from None

    @cached_property
    def order(self) -> tuple[Node, ...]:
        """All nodes, each after its inputs."""
        nodes = {node.name: node for node in self.nodes}
        names = TopologicalSorter({name: node.inputs for name, node in nodes.items()}).static_order()
        return tuple(nodes[name] for name in names if name in nodes)


def run_batch(plan: LogicalPlan, relations: Mapping[str, Relation]) -> dict[str, Relation]:
    """Return the result of every node on whole relations: what all changes have to end in, however they come.

    Args:
        plan: what is computed.
        relations: one per source, by name.

    Raises:
        RelationError: a source has no relation, or a relation no source.
    """
    names = {source.name for source in plan.sources}
    if names != {*relations}:
        raise RelationError(f"relations {sorted(relations)} for the sources {sorted(names)}: give one for each source")
    results = dict(relations)
    for node in plan.order:
        results[node.name] = node.operator.apply(*(results[name] for name in node.inputs))
    return {node.name: results[node.name] for node in plan.nodes}
