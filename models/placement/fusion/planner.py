"""Which operators are one query: the cheapest of the groups that may be, from each operator alone on."""

from __future__ import annotations

from collections.abc import Sequence

from models.placement.fusion.parts import (
    GIGABYTE,
    FusionTask,
    cut_of,
    fusion_cost,
    fusion_slope,
    illegal_because,
    joined,
    neighbouring,
)

STEPS, STEP = 200, 0.1
"""Steps of the relaxed descent, and the share that the steepest edge moves in one."""
ROUNDS = 3
"""Rounds of the local search."""


def fuse(task: FusionTask) -> list[int]:
    """Return the (stages,) group of each operator, numbered by their first operators.

    Relaxed descent tells which edges are best inside, groups are joined by benefit over risk while that lowers the
    cost, and single operators are moved to a neighbouring group while that lowers the cost.

    Args:
        task: operators and edges.
    """
    relaxed = relax(task)
    group = _join(task, relaxed)
    for _ in range(ROUNDS):
        before, group = group, _move(task, group)
        if group == before:
            break
    return group


def relax(task: FusionTask) -> list[float]:
    """Return the (links,) share of each edge through a topic after a projected descent from one half."""
    cut = [0.5] * len(task.links)
    for _ in range(STEPS):
        slope = fusion_slope(task, cut)
        steepest = max(map(abs, slope), default=0.0)
        if not steepest:
            break
        cut = [min(max(share - STEP * one / steepest, 0.0), 1.0) for share, one in zip(cut, slope, strict=True)]
    return cut


def _join(task: FusionTask, relaxed: Sequence[float]) -> list[int]:
    group = list(range(len(task.stages)))
    cost = fusion_cost(task, cut_of(task, group))
    while True:
        able = []
        for pair in neighbouring(task, group):
            made = joined(group, *pair)
            drop = cost - fusion_cost(task, cut_of(task, made))
            if drop > 0:
                able.append((_worth(task, group, pair, relaxed, drop), [-one for one in pair], made))
        best = next((made for _, _, made in sorted(able, reverse=True) if not illegal_because(task, made)), None)
        if best is None:
            return group
        group, cost = best, fusion_cost(task, cut_of(task, best))


def _worth(
    task: FusionTask, group: Sequence[int], pair: tuple[int, int], relaxed: Sequence[float], drop: float
) -> float:  # fmt: skip
    """Benefit of joining two groups, weighted by how far the relaxed edges between them are inside, over its risk."""
    between = [
        share
        for link, share in zip(task.links, relaxed, strict=True)
        if {group[link.tail], group[link.head]} == {*pair}
    ]
    state = [sum(task.stages[place].state_bytes for place, one in enumerate(group) if one == number) for number in pair]
    risk = 1 + all(one > 0 for one in state) + sum(state) / GIGABYTE
    return drop * (1 - min(between)) / risk


def _move(task: FusionTask, group: list[int]) -> list[int]:
    """Groups after each operator in turn has moved to the first neighbouring group with which that is cheaper."""
    cost = fusion_cost(task, cut_of(task, group))
    for place in range(len(group)):
        near = {group[link.tail] for link in task.links if link.head == place}
        near |= {group[link.head] for link in task.links if link.tail == place}
        for target in sorted(near - {group[place]}):
            made = _renumbered([target if at == place else one for at, one in enumerate(group)])
            told = fusion_cost(task, cut_of(task, made))
            if told < cost and not illegal_because(task, made):
                group, cost = made, told
                break
    return group


def _renumbered(group: Sequence[int]) -> list[int]:
    """Groups numbered by the first operator of each."""
    first: dict[int, int] = {}
    for place, one in enumerate(group):
        first.setdefault(one, place)
    return [first[one] for one in group]
