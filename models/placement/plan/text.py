"""A plan in words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from configs.topology import Topology
from models.placement.plan.choose import PlacementPlan
from models.placement.plan.measured import Placement
from models.placement.plan.observed import ObservedBlock


def describe_plan(topology: Topology, plan: PlacementPlan) -> Iterator[str]:
    """Yield the lines that answer what runs together, where, with how many executors, how fast and at what price."""
    made = plan.placement
    late = f", later than the {topology.target_s:g} s that are promised" if plan.told_s > topology.target_s else ""
    late += "" if made.kept else ", and nothing is sooner"
    yield (
        f"{topology.name}: {_count(len(made.blocks), 'query', 'queries')}, {made.price:.2f} an hour; "
        f"{100 * topology.quantile:g}% of the records within {plan.told_s:.1f} s by the model{late}"
    )
    if len(made.blocks) > 1:
        yield (
            f"  {describe_followed(plan)}; {made.latency_s:.1f} s is the sum of its queries', which is held against "
            f"the target of {topology.target_s:g} s"
        )
    for block in made.blocks:
        yield (
            f"  {' + '.join(block.operators)}: {block.cluster}, {_count(block.executors, 'executor', 'executors')}"
            f"{_sized(topology.clusters[block.cluster].executor_cores)} ({block.load:.2f} cores busy), "
            f"{block.latency_s:.1f} s"
        )
    for edge, why in plan.cuts.items():
        yield f"  a topic from {edge.tail} to {edge.head}: {why}"
    taken = {topology.broker, *(block.cluster for block in made.blocks)}
    if bare := [name for name in topology.clusters if name not in taken]:
        yield f"  neither a query nor a topic of it on {', '.join(bare)}"
    for other, why in plan.others:
        yield f"  not {_blocks(other)}: {other.price:.2f} an hour, {other.latency_s:.1f} s: {why}"


def describe_followed(plan: PlacementPlan) -> str:
    """Return what several queries come to where they are followed batch by batch; "" for one, whose sum is no other."""
    if len(plan.placement.blocks) == 1:
        return ""
    found = f"{plan.followed_s:.1f} s" if math.isfinite(plan.followed_s) else "they fall behind"
    return f"followed batch by batch: {found}"


def describe_untold_work(observed: Sequence[ObservedBlock]) -> Iterator[str]:
    """Yield a sentence, without its full stop, for each query whose batches do not tell what a record takes."""
    so_far = "its work is as in the plan before, or as stated"
    for one in observed:
        name = "+".join(one.block.operators)
        told = f"{name} had batches too few, or too alike, to tell what a record takes"
        whole = f"{1000 * (one.whole_s or 0.0):,.2f} ms of a core, its share of what every batch takes included"
        if one.rps is None and one.come_rps:
            yield f"{name} did no two batches though records came: planned for what comes; {so_far}"
        elif not one.rps or one.record_s is not None:
            continue
        elif one.whole_s is None:
            yield f"{told}: {so_far}"
        elif one.full:
            yield f"{told}, and full: planned with {whole}"
        else:
            yield f"{told}: {so_far}; at most {whole}"


def _sized(cores: int) -> str:
    return "" if cores == 1 else f" of {cores} cores"


def _blocks(made: Placement) -> str:
    return " | ".join(" + ".join(block.operators) for block in made.blocks)


def _count(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"
