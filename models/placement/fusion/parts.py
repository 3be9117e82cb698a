"""Operators and edges with what an edge costs inside a query and through a topic, and which of them may be one query.

Unified batch-stream runtime paper, section on operator fusion, eq. 4.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import combinations

import numpy as np

from models.placement.graph import GraphError

GIGABYTE = 1e9


@dataclass(frozen=True)
class QueryStage:
    """An operator.

    Attributes:
        work_s: core-seconds of a record.
        rps: records/s that reach it.
        pin: cluster that it has to run on; "" for any.
        trigger: that its query has to have; "" for any.
        unit: recovery unit; operators of different ones have checkpoints of their own.
        commit: commit unit of an exactly-once sink; "" for none.
        timer: whether it owns event-time timers.
        state_bytes: of its state; 0: none.
        size: of its code, for the term of large kernels.
        name: for messages; "" for its number.
    """

    work_s: float
    rps: float
    pin: str = ""
    trigger: str = ""
    unit: str = ""
    commit: str = ""
    timer: bool = False
    state_bytes: float = 0.0
    size: float = 1.0
    name: str = ""


@dataclass(frozen=True)
class Link:
    """An edge between two operators.

    Attributes:
        tail: number of the operator that sends.
        head: of the one that receives.
        rps: records/s along it.
        serialise_s: core-seconds of a record through a topic, to write and to read it (c_ser).
        schedule_s: likewise, for the batches of a further query (c_sched).
        inline_s: core-seconds of a record inside a query (c_inline).
        buffer_bytes: that a topic between them holds.
        fusible: whether both may be in one query.
    """

    tail: int
    head: int
    rps: float
    serialise_s: float
    schedule_s: float
    inline_s: float
    buffer_bytes: float = 0.0
    fusible: bool = True


@dataclass(frozen=True)
class FusionTask:
    """Operators that are to be fused, and what is counted beside their edges.

    Attributes:
        stages: operators.
        links: edges; they make no cycle.
        memory_weight: core-s/s of a buffered byte.
        kernel_weight: core-s/s of the square of a block's size above `kernel_size`; 0 until it was profiled.
        kernel_size: code size from which a block costs more.
    """

    stages: tuple[QueryStage, ...]
    links: tuple[Link, ...]
    memory_weight: float = 0.0
    kernel_weight: float = 0.0
    kernel_size: float = 12.0

    def __post_init__(self) -> None:
        """Refuse edges between unknown operators.

        Raises:
            GraphError: as said.
        """
        for link in self.links:
            if not (0 <= link.tail < len(self.stages) and 0 <= link.head < len(self.stages)) or link.tail == link.head:
                raise GraphError(
                    f"edge {link.tail} to {link.head}: two of the {len(self.stages)} operators are expected"
                )


_ONE_OF = {
    "pin": "to run on different clusters", "trigger": "different triggers", "unit": "different recovery units",
    "commit": "sinks that commit apart",
}  # fmt: skip
"""Fields of which the operators of a query have one value, and what several of them are."""


def fusion_cost(task: FusionTask, cut: Sequence[float]) -> float:
    """Return core-seconds per second with a share of each edge through a topic (eq. 4.1).

    Args:
        task: operators and edges.
        cut: (links,) 0 inside a query, 1 through a topic.
    """
    own = sum(one.work_s * one.rps for one in task.stages)
    for link, share in zip(task.links, cut, strict=True):
        own += share * (link.rps * (link.serialise_s + link.schedule_s) + task.memory_weight * link.buffer_bytes)
        own += (1 - share) * link.rps * link.inline_s
    if not task.kernel_weight:
        return own
    whole = all(share in (0, 1) for share in cut)
    sizes = _block_sizes(task, cut) if whole else _relaxed_sizes(task, cut)
    return own + task.kernel_weight * sum(max(size - task.kernel_size, 0.0) ** 2 for size in sizes)


def fusion_slope(task: FusionTask, cut: Sequence[float]) -> list[float]:
    """Return the (links,) change of the relaxed cost with each edge's share through a topic."""
    sizes = _relaxed_sizes(task, cut)
    over = [2 * task.kernel_weight * max(size - task.kernel_size, 0.0) for size in sizes]
    return [
        link.rps * (link.serialise_s + link.schedule_s - link.inline_s) + task.memory_weight * link.buffer_bytes
        - over[link.tail] * task.stages[link.head].size - over[link.head] * task.stages[link.tail].size
        for link in task.links
    ]  # fmt: skip


def groups_of(task: FusionTask, cut: Sequence[float]) -> list[int]:
    """Return the (stages,) group of each operator where the edges with a share of 0 join theirs."""
    group = list(range(len(task.stages)))
    for link, share in zip(task.links, cut, strict=True):
        if share == 0 and group[link.tail] != group[link.head]:
            gone, stays = max(group[link.tail], group[link.head]), min(group[link.tail], group[link.head])
            group = [stays if one == gone else one for one in group]
    return group


def cut_of(task: FusionTask, group: Sequence[int]) -> list[int]:
    """Return the (links,) cut of groups: 0 within one, 1 between two."""
    return [int(group[link.tail] != group[link.head]) for link in task.links]


def illegal_because(task: FusionTask, group: Sequence[int]) -> str:
    """Return why groups may not be queries of their own, "" where they may.

    Each is convex, with one cluster, trigger and recovery unit, one owner of timers, and no exactly-once sink beside
    another commit unit; edges between them make no cycle.
    """
    names = [one.name or str(place) for place, one in enumerate(task.stages)]
    for link in task.links:
        if group[link.tail] == group[link.head] and not link.fusible:
            return f"what {names[link.tail]} sends to {names[link.head]} has to be on a topic"
    groups: dict[int, list[int]] = {}
    for place, one in enumerate(group):
        groups.setdefault(one, []).append(place)
    for members in groups.values():
        for field, words in _ONE_OF.items():
            stated = {getattr(task.stages[place], field): place for place in reversed(members)}
            if field != "unit":
                stated.pop("", None)
            if len(stated) > 1:
                one, other = sorted(stated.values())[:2]
                return f"{names[one]} and {names[other]} have {words}"
        timers = [place for place in members if task.stages[place].timer]
        if len(timers) > 1:
            return f"{names[timers[0]]} and {names[timers[1]]} both own event-time timers"
    return "" if _is_acyclic(task, group) else "queries would wait for each other in a circle"


def _is_acyclic(task: FusionTask, group: Sequence[int]) -> bool:
    """Whether the edges between groups make no cycle; each group is then convex, too."""
    needs: dict[int, set[int]] = {}
    for link in task.links:
        if group[link.tail] != group[link.head]:
            needs.setdefault(group[link.head], set()).add(group[link.tail])
    try:
        TopologicalSorter(needs).prepare()
    except CycleError:
        return False
    return True


def _block_sizes(task: FusionTask, cut: Sequence[float]) -> list[float]:
    group = groups_of(task, cut)
    sizes = np.bincount(group, [one.size for one in task.stages])
    return [float(sizes[number]) for number in sorted(set(group))]


def _relaxed_sizes(task: FusionTask, cut: Sequence[float]) -> list[float]:
    sizes = [one.size for one in task.stages]
    for link, share in zip(task.links, cut, strict=True):
        sizes[link.tail] += (1 - share) * task.stages[link.head].size
        sizes[link.head] += (1 - share) * task.stages[link.tail].size
    return sizes


def joined(group: Sequence[int], one: int, other: int) -> list[int]:
    """Return groups of which two are one."""
    return [min(one, other) if number in (one, other) else number for number in group]


def neighbouring(task: FusionTask, group: Sequence[int]) -> list[tuple[int, int]]:
    """Return pairs of groups that an edge joins, each once."""
    pairs = {tuple(sorted((group[link.tail], group[link.head]))) for link in task.links}
    return sorted(pair for pair in combinations(sorted(set(group)), 2) if pair in pairs)
