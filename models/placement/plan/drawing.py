"""Where the parts of a placed job are drawn: clusters below each other, records from left to right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from configs.topology import Topology
from models.placement.plan.measured import Block, Placement
from models.placement.rates import operators_in_order

OUTSIDE = ""
"""ClusterLane of the sources."""


class DrawnAt(NamedTuple):
    """A place: columns from left to right, rows of a lane from the top."""

    column: int
    row: int


class DrawnBlock(NamedTuple):
    """A query: its rows in its lane, and where its operators stand."""

    block: Block
    first_row: int
    rows: int
    cells: Mapping[str, DrawnAt]

    @property
    def columns(self) -> tuple[int, int]:
        """First and last column."""
        taken = [cell.column for cell in self.cells.values()]
        return min(taken), max(taken)


class ClusterLane(NamedTuple):
    """A cluster with its queries below each other; `cells` are those of all that stands in it."""

    cluster: str
    blocks: tuple[DrawnBlock, ...]
    cells: Mapping[str, DrawnAt]

    @property
    def rows(self) -> int:
        """How many there are."""
        return 1 + max((cell.row for cell in self.cells.values()), default=0)


def draw(topology: Topology, placement: Placement) -> list[ClusterLane]:
    """Return the lanes: the sources', and one for each cluster, also for one that has no query.

    An operator stands one column right of the last of those whose records it takes.

    Args:
        topology: of the job.
        placement: of its operators.
    """
    column = dict.fromkeys(topology.sources, 0)
    for name in operators_in_order(topology):
        column[name] = 1 + max(column[other] for other in topology.operators[name].of)
    lanes = [ClusterLane(OUTSIDE, (), _cells(topology.sources, column, 0))]
    for cluster in topology.clusters:
        drawn, row = list[DrawnBlock](), 0
        for block in placement.blocks:
            if block.cluster == cluster:
                cells = _cells(block.operators, column, row)
                rows = 1 + max(cell.row for cell in cells.values()) - row
                drawn.append(DrawnBlock(block, row, rows, cells))
                row += rows
        lanes.append(ClusterLane(cluster, tuple(drawn), {name: at for one in drawn for name, at in one.cells.items()}))
    return lanes


def _cells(names: Iterable[str], column: Mapping[str, int], first_row: int) -> dict[str, DrawnAt]:
    """Places of names from a row on: those of one column below each other."""
    taken: dict[int, int] = {}
    found = {}
    for name in names:
        at = column[name]
        found[name] = DrawnAt(at, first_row + taken.get(at, 0))
        taken[at] = taken.get(at, 0) + 1
    return found
