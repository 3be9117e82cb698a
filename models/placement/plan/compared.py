"""Placements beside which a plan is held: all operators in one query, each in its own, and drawn ones."""

from __future__ import annotations

import numpy as np

from configs.topology import Topology
from models.placement.fusion.parts import illegal_because
from models.placement.plan.blocks import Blocks, upstream_first
from models.placement.plan.choose import best_of, choose_placement, first_clusters
from models.placement.plan.measured import Measure, Placement
from models.placement.rates import fusion_task, operators_in_order, rates_of

CHOSEN, ONE, EACH = "chosen", "all in one", "each alone"
TRIES = 500
"""Draws after which no more placements are looked for."""


def compared_placements(topology: Topology, drawn: int, seed: int) -> dict[str, Placement]:
    """Return placements by name: the plan's, those of ONE and EACH where they can be, and `drawn N`, each another one.

    The plan's may be that of ONE or EACH.

    All have executors by the same rule, and all cores of the clusters to take them from; those of ONE and EACH are on
    the clusters that are best for them. A drawn one has drawn blocks on drawn clusters.

    Args:
        topology: of the job.
        drawn: how many to draw.
        seed: of the draws.

    Raises:
        PlanError: no placement has room.
    """
    measure = Measure(topology, rates_of(topology))
    found = {CHOSEN: choose_placement(topology).placement}
    order = operators_in_order(topology)
    for name, blocks in ((ONE, (tuple(order),)), (EACH, tuple((one,) for one in order))):
        made = (
            best_of(measure, upstream_first(topology, blocks), first_clusters(topology))
            if _legal(measure, blocks)
            else None
        )
        if made is not None:
            found[name] = made
    random, taken, number = np.random.default_rng(seed), set(map(_shape, found.values())), 0
    for _ in range(TRIES):
        if number == drawn:
            break
        made = _draw(measure, order, random)
        if made is not None and _shape(made) not in taken:
            number += 1
            taken.add(_shape(made))
            found[f"drawn {number}"] = made
    return found


def _shape(made: Placement) -> tuple[tuple[tuple[str, ...], str, int], ...]:
    return tuple((one.operators, one.cluster, one.executors) for one in made.blocks)


def _legal(measure: Measure, blocks: Blocks) -> bool:
    place = {name: number for number, block in enumerate(blocks) for name in block}
    labels = [place[name] for name in measure.topology.operators]
    return not illegal_because(fusion_task(measure.topology, measure.rates), labels)


def _draw(measure: Measure, order: list[str], random: np.random.Generator) -> Placement | None:
    """Drawn blocks on drawn clusters, pinned ones on theirs; None where these may not be, or have no room."""
    topology, many = measure.topology, int(random.integers(2, len(order) + 1))
    labels = random.integers(0, many, len(order))
    blocks = tuple(
        tuple(name for name, label in zip(order, labels, strict=True) if label == one)
        for one in dict.fromkeys(labels.tolist())
    )
    if not _legal(measure, blocks):
        return None
    blocks = upstream_first(topology, blocks)
    names = list(topology.clusters)
    clusters = []
    for block in blocks:
        pinned = [pin for name in block if (pin := topology.operators[name].cluster) is not None]
        clusters.append(pinned[0] if pinned else names[int(random.integers(len(names)))])
    return measure.with_executors(blocks, clusters)
