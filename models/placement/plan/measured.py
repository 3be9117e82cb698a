"""What queries on clusters come to: cores, price, and latency along the slowest path, by the micro-batch model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from configs.topology import Topology
from models.contract.queueing import micro_batch
from models.placement.fusion.parts import GIGABYTE
from models.placement.partition.count import UTILISATION
from models.placement.plan.blocks import Blocks, block_of
from models.placement.plan.wiring import Wiring, way_s, wire
from models.placement.rates import Rates, edges_of

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
    _wired: dict[Blocks, Wiring] = field(default_factory=dict, init=False, compare=False, repr=False)
    _took_s: dict[tuple[float, float, int], float] = field(default_factory=dict, init=False, compare=False, repr=False)

    def wiring(self, blocks: Blocks) -> Wiring:
        """Return what of blocks is the same wherever they are; it is kept."""
        if blocks not in self._wired:
            self._wired[blocks] = wire(self.topology, self.rates, blocks)
        return self._wired[blocks]

    def service_rps(self, blocks: Blocks, number: int, cores: int) -> float:
        """Return how many of the records that a block reads so many cores can work on in a second."""
        place, load = block_of(blocks), self.wiring(blocks).loads[number]
        read = {edge.tail for edge in edges_of(self.topology) if place.get(edge.head) == number != place.get(edge.tail)}
        offered = sum(self.rates.sent[name] for name in read)
        return cores * offered / load if load > 0 else float(cores)

    def with_executors(self, blocks: Blocks, clusters: Sequence[str]) -> Placement | None:
        """Return blocks on given clusters with executors by their work, and more while a result is too late.

        Of further executors the one that takes most off what results are late, for its price. None where the clusters
        or the quota have no room for the executors that the work needs, or the partitions no task for them.
        """
        executors = [
            fewest_executors(load, self.topology.clusters[own].executor_cores)
            for load, own in zip(self.wiring(blocks).loads, clusters, strict=True)
        ]  # fmt: skip
        if not self._has_room(blocks, clusters, executors):
            return None
        latencies_s, ways_s = self._latencies_s(blocks, clusters, executors), self._ways_s(blocks, clusters)
        free = {name: self.topology.clusters[name].cores for name in clusters}
        for name, many in zip(clusters, executors, strict=True):
            free[name] -= many * self.topology.clusters[name].executor_cores + self.topology.driver_cores
        left = self._left(clusters, executors)
        late_s = self._late_s(blocks, ways_s, latencies_s)
        while late_s > 0:
            tried = []
            for number, name in enumerate(clusters):
                unit, more = self.topology.clusters[name].executor_cores, executors[number] + 1
                if min(free[name], left) >= unit and more * unit <= max(self.topology.partitions, unit):
                    sooner = list(latencies_s)
                    sooner[number] = self._latency_s(blocks, number, more * unit)
                    gain_s = late_s - self._late_s(blocks, ways_s, sooner)
                    price = unit * self.topology.clusters[name].price
                    tried.append((gain_s > LEAST_GAIN_S, gain_s / max(price, LEAST_PRICE), -number, sooner))
            if not tried or not max(tried)[0]:
                break
            _, _, place, latencies_s = max(tried)
            executors[-place] += 1
            free[clusters[-place]] -= self.topology.clusters[clusters[-place]].executor_cores
            left = self._left(clusters, executors)
            late_s = self._late_s(blocks, ways_s, latencies_s)
        return self.placed(blocks, clusters, executors)

    def given(self, blocks: Blocks, clusters: Sequence[str], executors: Sequence[int]) -> Placement | None:
        """Return what blocks come to as they are stated; None where clusters or quota have no room for them so."""
        return self.placed(blocks, clusters, executors) if self._has_room(blocks, clusters, executors) else None

    def placed(self, blocks: Blocks, clusters: Sequence[str], executors: Sequence[int]) -> Placement:
        """Return what blocks come to as they are stated, also where clusters or quota have no room for them so."""
        topology, latencies_s = self.topology, self._latencies_s(blocks, clusters, executors)
        latest_s = max(self._until(blocks, self._ways_s(blocks, clusters), latencies_s))
        made = map(Block, blocks, clusters, executors, self.wiring(blocks).loads, latencies_s)
        price = sum(
            topology.clusters[name].price * (many * topology.clusters[name].executor_cores + topology.driver_cores)
            for name, many in zip(clusters, executors, strict=True)
        )  # fmt: skip
        return Placement(tuple(made), round(price, 9), latest_s, latest_s <= topology.target_s)

    def _has_room(self, blocks: Blocks, clusters: Sequence[str], executors: Sequence[int]) -> bool:
        """Whether clusters have cores and memory for all that lies on them, the quota cores, and queries tasks."""
        if self._left(clusters, executors) < 0:
            return False
        cores, held = dict.fromkeys(clusters, 0), dict.fromkeys(clusters, 0.0)
        for name, many, more in zip(clusters, executors, self.wiring(blocks).held, strict=True):
            own = many * self.topology.clusters[name].executor_cores
            if own > max(self.topology.partitions, self.topology.clusters[name].executor_cores):
                return False
            cores[name] += own + self.topology.driver_cores
            held[name] += more
        there = self.topology.clusters
        return all(
            cores[name] <= there[name].cores and held[name] <= there[name].memory_gb * GIGABYTE for name in cores
        )  # fmt: skip

    def _left(self, clusters: Sequence[str], executors: Sequence[int]) -> float:
        """Cores that the quota leaves."""
        quota = self.topology.quota_cores
        taken = sum(
            self.topology.clusters[name].executor_cores * many for name, many in zip(clusters, executors, strict=True)
        )
        return math.inf if quota is None else quota - taken

    def _late_s(self, blocks: Blocks, ways_s: Sequence[Sequence[float]], latencies_s: Sequence[float]) -> float:
        """By how much the results of all queries are late, seconds."""
        return sum(max(at - self.topology.target_s, 0.0) for at in self._until(blocks, ways_s, latencies_s))

    def _latencies_s(self, blocks: Blocks, clusters: Sequence[str], executors: Sequence[int]) -> list[float]:
        return [
            self._latency_s(blocks, number, many * self.topology.clusters[name].executor_cores)
            for number, (name, many) in enumerate(zip(clusters, executors, strict=True))
        ]

    def _latency_s(self, blocks: Blocks, number: int, cores: int) -> float:
        """What a query takes on so many cores, from when its records can be read to its results."""
        load, offered = self.wiring(blocks).loads[number], self.wiring(blocks).offered[number]
        key = load, offered, cores
        if key not in self._took_s:
            topology, service_rps = self.topology, cores * offered / load if offered else 1.0
            batch = micro_batch(offered, service_rps, topology.overhead_s, topology.trigger_s)
            self._took_s[key] = batch.quantile_s(topology.quantile)
        return self._took_s[key]

    def _ways_s(self, blocks: Blocks, clusters: Sequence[str]) -> list[list[float]]:
        """How long what each query reads is on its way, in the order of its writers."""
        broker = self.topology.broker
        return [
            [way_s(self.topology, clusters[one] if one >= 0 else broker, own) for one in writers]
            for writers, own in zip(self.wiring(blocks).writers, clusters, strict=True)
        ]

    def _until(
        self, blocks: Blocks, ways_s: Sequence[Sequence[float]], latencies_s: Sequence[float]
    ) -> list[float]:  # fmt: skip
        """When the results of each query are there, seconds after records were produced."""
        until = [0.0] * len(blocks)
        for number, (writers, ways) in enumerate(zip(self.wiring(blocks).writers, ways_s, strict=True)):
            arrived = max(
                (until[one] + way if one >= 0 else way for one, way in zip(writers, ways, strict=True)), default=0.0
            )
            until[number] = latencies_s[number] + arrived
        return until


def fewest_executors(load: float, executor_cores: int) -> int:
    """Return the executors that a query needs at least, so that no more than UTILISATION of its cores are busy.

    Args:
        load: cores that its work keeps busy.
        executor_cores: of each.
    """
    return max(1, math.ceil(load / (UTILISATION * executor_cores) - 1e-9))


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
