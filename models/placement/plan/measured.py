"""What queries on clusters come to: cores, price, and latency along the slowest path, by the micro-batch model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from configs.topology import Topology
from models.contract.queueing import micro_batch
from models.placement.partition.count import UTILISATION
from models.placement.plan.candidates import Blocks, block_of
from models.placement.rates import Edge, Rates, cores_of, edges_of, memory_of, operators_in_order

CATCH_UP = 5.0
"""Triggers for which the records of a micro-batch keep its executors busy at most: what waits is worked off so."""
LEAST_GAIN_S = 1e-3
"""Seconds that a further executor has to take off what results are late."""
LEAST_PRICE = 1e-9
"""Of a core that costs nothing: gains are compared by price."""


@dataclass(frozen=True)
class Block:
    """A query.

    Attributes:
        operators: in their order.
        cluster: where it runs.
        executors: of it.
        load: cores that its work keeps busy, with what it reads from topics and writes to them.
        latency_s: quantile of its records' latency, from when they can be read to its results.
    """

    operators: tuple[str, ...]
    cluster: str
    executors: int
    load: float
    latency_s: float


@dataclass(frozen=True)
class Placement:
    """Queries on clusters.

    Attributes:
        blocks: queries, upstream first: the order in which they are started.
        price: of their cores for an hour.
        latency_s: quantile of the slowest path's latency: the sum of its queries' and of the ways between clusters,
            which is more than the quantile of their sum.
        kept: whether that is within the target.
    """

    blocks: tuple[Block, ...]
    price: float
    latency_s: float
    kept: bool


@dataclass(frozen=True)
class Measure:
    """How placements of one load are measured.

    Attributes:
        topology: of the job.
        rates: of the load.
    """

    topology: Topology
    rates: Rates

    def loads(self, blocks: Blocks) -> list[float]:
        """Return the cores that each block keeps busy: its work, what it reads from topics and writes, inner edges.

        A query that writes several topics runs what is before them once for each.
        """
        place, work, hop = block_of(blocks), cores_of(self.topology, self.rates), self.topology.hop
        runs = runs_of(self.topology, blocks)
        found, written = [sum(runs[name] * work[name] for name in block) for block in blocks], set[str]()
        for tail, head in edges_of(self.topology):
            rps, one, other = self.rates.sent[tail], place.get(tail), place.get(head)
            if one == other and one is not None:
                found[one] += runs[head] * rps * hop.inline_ms / 1000
                continue
            if other is not None:
                found[other] += runs[head] * rps * hop.read_ms / 1000
            if one is not None and tail not in written:  # whoever else takes its records reads the same topic
                found[one] += rps * hop.write_ms / 1000
                written.add(tail)
        return found

    def service_rps(self, blocks: Blocks, number: int, cores: int) -> float:
        """Return how many of the records that a block reads so many cores can work on in a second."""
        place, load = block_of(blocks), self.loads(blocks)[number]
        read = {edge.tail for edge in edges_of(self.topology) if place.get(edge.head) == number != place.get(edge.tail)}
        offered = sum(self.rates.sent[name] for name in read)
        return cores * offered / load if load > 0 else float(cores)

    def with_executors(self, blocks: Blocks, clusters: Sequence[str]) -> Placement | None:
        """Return blocks on given clusters with executors by their work, and more while a result is too late.

        Of further executors the one that takes most off what results are late, for its price. None where the clusters
        have no room for the executors that the work needs, or the partitions no task for them.
        """
        loads = self.loads(blocks)
        executors = [
            max(1, math.ceil(load / (UTILISATION * self.topology.clusters[own].executor_cores) - 1e-9))
            for load, own in zip(loads, clusters, strict=True)
        ]  # fmt: skip
        if not self._has_room(blocks, clusters, executors):
            return None
        while True:
            made, late_s = self._measured(blocks, loads, clusters, executors)
            if made.kept:
                return made
            tried = []
            for number, own in enumerate(clusters):
                more = [many + (at == number) for at, many in enumerate(executors)]
                if self._has_room(blocks, clusters, more):
                    gain_s = late_s - self._measured(blocks, loads, clusters, more)[1]
                    price = self.topology.clusters[own].executor_cores * self.topology.clusters[own].price
                    tried.append((gain_s > LEAST_GAIN_S, gain_s / max(price, LEAST_PRICE), -number, more))
            if not tried or not max(tried)[0]:
                return made
            executors = max(tried)[3]

    def given(self, blocks: Blocks, clusters: Sequence[str], executors: Sequence[int]) -> Placement | None:
        """Return what blocks come to as they are stated; None where the clusters have no room for them so."""
        if not self._has_room(blocks, clusters, executors):
            return None
        return self._measured(blocks, self.loads(blocks), clusters, executors)[0]

    def _has_room(self, blocks: Blocks, clusters: Sequence[str], executors: Sequence[int]) -> bool:
        """Whether each cluster has cores and memory for all that lies on it, and each query tasks for its cores."""
        for name, one in self.topology.clusters.items():
            here = [number for number, own in enumerate(clusters) if own == name]
            held = sum(memory_of(self.topology, blocks[number]) for number in here)
            cores = [executors[number] * one.executor_cores for number in here]
            if sum(cores) + len(here) * self.topology.driver_cores > one.cores or held > one.memory_gb * 1e9:
                return False
            if any(many > max(self.topology.partitions, one.executor_cores) for many in cores):
                return False
        return True

    def _measured(
        self, blocks: Blocks, loads: Sequence[float], clusters: Sequence[str], executors: Sequence[int]
    ) -> tuple[Placement, float]:  # fmt: skip
        """What blocks come to, and by how much results are late in all, seconds."""
        topology, place = self.topology, block_of(blocks)
        made, until = [], [0.0] * len(blocks)
        for number, block in enumerate(blocks):
            own = topology.clusters[clusters[number]]
            through = [
                edge for edge in edges_of(topology) if place.get(edge.head) == number != place.get(edge.tail)
            ]  # fmt: skip
            offered = sum(self.rates.sent[edge.tail] for edge in through)
            cores = executors[number] * own.executor_cores
            service_rps = cores * offered / loads[number] if offered else 1.0
            batch = micro_batch(offered, service_rps, topology.overhead_s, topology.trigger_s)
            latency_s = batch.quantile_s(topology.quantile)
            made.append(Block(block, clusters[number], executors[number], loads[number], latency_s))
            arrived = [self._arrived_s(edge, place, clusters, until, clusters[number]) for edge in through]
            until[number] = latency_s + max(arrived, default=0.0)
        price = sum(
            topology.clusters[one.cluster].price
            * (one.executors * topology.clusters[one.cluster].executor_cores + topology.driver_cores)
            for one in made
        )  # fmt: skip
        late_s = sum(max(at - topology.target_s, 0.0) for at in until)
        return Placement(tuple(made), round(price, 9), max(until), max(until) <= topology.target_s), late_s

    def _arrived_s(
        self, edge: Edge, place: Mapping[str, int], clusters: Sequence[str], until: Sequence[float], cluster: str
    ) -> float:  # fmt: skip
        """When records of an edge can be read on a cluster, seconds after they were produced."""
        number = place.get(edge.tail)
        away, since = (self.topology.broker, 0.0) if number is None else (clusters[number], until[number])
        return since + way_s(self.topology, away, cluster)


def way_s(topology: Topology, one: str, other: str) -> float:
    """Return how long a record is on its way from one cluster to the broker and from there to another, seconds."""
    broker = topology.broker
    return (topology.round_trip_ms(one, broker) + topology.round_trip_ms(broker, other)) / 2000


def runs_of(topology: Topology, blocks: Blocks) -> dict[str, int]:
    """Return how often each operator is run in its query: once for each topic that is written of what it makes.

    Spark runs each branch of a query from its source on; nothing between them is kept.

    Args:
        topology: of the job.
        blocks: operators of each query.
    """
    place, edges = block_of(blocks), list(edges_of(topology))
    reached: dict[str, set[str]] = {}
    for name in reversed(operators_in_order(topology)):
        heads = [edge.head for edge in edges if edge.tail == name]
        own = {name} if any(place.get(head) != place[name] for head in heads) else set()
        reached[name] = own.union(*(reached[head] for head in heads if place.get(head) == place[name]))
    return {name: max(len(topics), 1) for name, topics in reached.items()}


def greatest_factor(topology: Topology, placement: Placement) -> float:
    """Return by how much more than its load a placement can take: until its first query falls behind for good.

    That query runs full batches, back to back.

    Args:
        topology: of the job.
        placement: of its operators.
    """
    busy_s = CATCH_UP * topology.trigger_s
    cores = [one.executors * topology.clusters[one.cluster].executor_cores for one in placement.blocks]
    able = min(many / max(one.load, 1e-9) for one, many in zip(placement.blocks, cores, strict=True))
    return able * busy_s / full_batch_s(topology)


def full_batch_s(topology: Topology) -> float:
    """Return how long a query's fullest batch takes, seconds."""
    return topology.overhead_s + CATCH_UP * topology.trigger_s
