"""Queries of a job on clusters, as placements that are learned: executors come and go, and a query moves as a whole."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from models.placement.graph import Integers
from models.placement.instances.initial import NoRoomError
from models.placement.instances.job import Counts
from models.placement.learned.actions import InstanceMove, index_of, move_at
from models.placement.learned.evaluator import LONGEST_MS, FollowedEvaluator
from models.placement.learned.reward import PlacementOutcome, RewardWeights
from models.placement.plan.followed import followed_quantile_s
from models.placement.plan.measured import Block, Measure, Placement
from models.placement.plan.shares import allowed_clusters, most_executors

TRIES = 200


@dataclass(frozen=True)
class QuerySpace:
    """Executors of queries, those of each on one cluster.

    A query is put on another cluster by adding an executor to it there: it goes with all that it has, as far as there
    is room.

    Attributes:
        measure: of the job at one load; which placements there are does not depend on that.
        blocks: operators of each query, upstream first.
    """

    measure: Measure
    blocks: tuple[tuple[str, ...], ...]
    _known: dict[bytes, Integers] = field(default_factory=dict, init=False, compare=False, repr=False)

    @property
    def clusters(self) -> list[str]:
        """Names of the nodes."""
        return [*self.measure.topology.clusters]

    @property
    def shape(self) -> tuple[int, int]:
        """Queries and clusters."""
        return len(self.blocks), len(self.clusters)

    @property
    def slots(self) -> Integers:
        """(n,) executors that each cluster has cores for."""
        return np.array([max(one.cores // one.executor_cores, 1) for one in self.measure.topology.clusters.values()])

    @property
    def executor_cores(self) -> Integers:
        """(n,) cores of an executor on each cluster."""
        return np.array([one.executor_cores for one in self.measure.topology.clusters.values()])

    def farthest(self, counts: Counts) -> Integers:
        """Return (2 m n,) by how many executors each move may go; to another cluster it is one."""
        key = counts.tobytes()
        if key not in self._known:
            found = np.zeros(2 * counts.size, np.int64)
            made = self._made(counts)
            for number, name, node in self._places():
                here, room = int(counts[number, node]), self._room(made, number, name)
                add, take = (index_of(InstanceMove(number, node, taken), counts.shape[1]) for taken in (False, True))
                found[add] = room - here if here else min(room, 1)
                found[take] = max(here - 1, 0)
            self._known[key] = np.maximum(found, 0)
        return self._known[key]

    def after(self, counts: Counts, index: int, length: int) -> Counts:
        """Return the placement after a move; to another cluster a query goes with all there is room for."""
        move, after = move_at(index, counts.shape[1]), counts.copy()
        if move.taken or counts[move.operator, move.node]:
            after[move.operator, move.node] += -length if move.taken else length
            return after
        room = self._room(self._made(counts), move.operator, self.clusters[move.node])
        after[move.operator] = 0
        after[move.operator, move.node] = min(int(counts[move.operator].sum()), room)
        return after

    def draw(self, random: np.random.Generator) -> Counts:
        """Return each query on a cluster where it may be, drawn, with a number of executors that there is room for.

        Raises:
            NoRoomError: in so many draws none had any.
        """
        for _ in range(TRIES):
            counts = np.zeros(self.shape, np.int64)
            for number, block in enumerate(self.blocks):
                name = str(random.choice(allowed_clusters(self.measure.topology, block)))
                counts[number, self.clusters.index(name)] = 1
            if self.placement(counts) is None:
                continue
            for number in random.permutation(len(self.blocks)):
                node = int(counts[number].argmax())
                room = self._room(self._made(counts), int(number), self.clusters[node])
                counts[number, node] = random.integers(1, room + 1)
            return counts
        raise NoRoomError(f"{len(self.blocks)} queries: no room for them was found in {TRIES} draws")

    def every(self, most: int) -> list[Counts]:
        """Return all placements with room; none where more than `most` would have to be looked at."""
        allowed = [[name for one, name, _ in self._places() if one == number] for number in range(len(self.blocks))]
        slots = dict(zip(self.clusters, self.slots.tolist(), strict=True))
        each = [[(name, many) for name in names for many in range(1, slots[name] + 1)] for names in allowed]
        if math.prod(map(len, each)) > most:
            return []
        found = []
        for stated in product(*each):
            names, executors = zip(*stated, strict=True)
            if (made := self.measure.given(self.blocks, names, executors)) is not None:
                found.append(self.counts(made))
        return found

    def counts(self, placement: Placement) -> Counts:
        """Return a placement of these queries as counts."""
        found = np.zeros(self.shape, np.int64)
        for number, block in enumerate(placement.blocks):
            found[number, self.clusters.index(block.cluster)] = block.executors
        return found

    def placement(self, counts: Counts) -> Placement | None:
        """Return what counts come to; None where the clusters have no room for them."""
        names, executors = self._stated(counts)
        return self.measure.given(self.blocks, names, executors)

    def _stated(self, counts: Counts) -> tuple[Sequence[str], Sequence[int]]:
        return [self.clusters[int(row.argmax())] for row in counts], counts.max(axis=1).tolist()

    def _places(self) -> Iterator[tuple[int, str, int]]:
        """Each query with each cluster on which it may be, and that one's number."""
        for number, block in enumerate(self.blocks):
            for name in allowed_clusters(self.measure.topology, block):
                yield number, name, self.clusters.index(name)

    def _room(self, made: Placement, number: int, name: str) -> int:
        """The most executors of a query on a cluster, beside the others there."""
        return most_executors(self.measure.topology, made, number, name, lambda at: made.blocks[at].executors)

    def _made(self, counts: Counts) -> Placement:
        """Counts as a placement, of which neither load nor latency is known."""
        stated = zip(self.blocks, *self._stated(counts), strict=True)
        return Placement(tuple(Block(*one, 0.0, 0.0) for one in stated), 0.0, 0.0, True)


@dataclass(frozen=True)
class QueryEvaluator(FollowedEvaluator):
    """The twin of many queries, followed batch by batch at one load.

    Attributes:
        space: placements of the job.
    """

    space: QuerySpace

    def follow(self, counts: Counts) -> PlacementOutcome:
        """Return what counts with room come to: the quantile of the slowest path, and each query's load."""
        made = self.space.placement(counts)
        assert made is not None
        clusters = self.space.measure.topology.clusters
        load = [one.load / (one.executors * clusters[one.cluster].executor_cores) for one in made.blocks]
        latency_s = followed_quantile_s(self.space.measure, made)
        return PlacementOutcome(min(latency_s * 1000, LONGEST_MS), np.array(load))


def weights_of(space: QuerySpace) -> RewardWeights:
    """Return how latency and load of a job's queries are weighed: longer by the target is half as bad as any.

    Pa-Stream paper, eq. 19, whose 1 ms would tell seconds apart no more. With a tenth of the target, networks come to
    less of what there is to gain (0.90 in place of 0.96 in the tests).
    """
    return RewardWeights(scale_ms=1000 * space.measure.topology.target_s)
