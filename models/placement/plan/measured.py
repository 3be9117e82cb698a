"""What queries on clusters come to: cores, price, and latency along the slowest path, by the micro-batch model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from configs.topology import Topology
from models.contract.queueing import micro_batch
from models.placement.partition.count import UTILISATION
from models.placement.plan.candidates import Blocks, block_of
from models.placement.plan.wiring import Wiring, way_s, wire
from models.placement.rates import GIGABYTE, Rates, edges_of

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
        have no room for the executors that the work needs, or the partitions no task for them.
        """
        executors = [
            max(1, math.ceil(load / (UTILISATION * self.topology.clusters[own].executor_cores) - 1e-9))
            for load, own in zip(self.wiring(blocks).loads, clusters, strict=True)
        ]  # fmt: skip
        if not self._has_room(blocks, clusters, executors):
            return None
        late_s = self._late_s(blocks, clusters, executors)
        while late_s > 0:
            tried = []
            for number, own in enumerate(clusters):
                more = [many + (at == number) for at, many in enumerate(executors)]
                if self._has_room(blocks, clusters, more):
                    gain_s = late_s - self._late_s(blocks, clusters, more)
                    price = self.topology.clusters[own].executor_cores * self.topology.clusters[own].price
                    tried.append((gain_s > LEAST_GAIN_S, gain_s / max(price, LEAST_PRICE), -number, more))
            if not tried or not max(tried)[0]:
                break
            executors = max(tried)[3]
            late_s = self._late_s(blocks, clusters, executors)
        return self._placed(blocks, clusters, executors)

    def given(self, blocks: Blocks, clusters: Sequence[str], executors: Sequence[int]) -> Placement | None:
        """Return what blocks come to as they are stated; None where the clusters have no room for them so."""
        return self._placed(blocks, clusters, executors) if self._has_room(blocks, clusters, executors) else None

    def _has_room(self, blocks: Blocks, clusters: Sequence[str], executors: Sequence[int]) -> bool:
        """Whether each cluster has cores and memory for all that lies on it, and each query tasks for its cores."""
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

    def _late_s(self, blocks: Blocks, clusters: Sequence[str], executors: Sequence[int]) -> float:
        """By how much the results of all queries are late, seconds."""
        until = self._until(blocks, clusters, self._latencies_s(blocks, clusters, executors))
        return sum(max(at - self.topology.target_s, 0.0) for at in until)

    def _placed(self, blocks: Blocks, clusters: Sequence[str], executors: Sequence[int]) -> Placement:
        topology, latencies_s = self.topology, self._latencies_s(blocks, clusters, executors)
        latest_s = max(self._until(blocks, clusters, latencies_s))
        made = map(Block, blocks, clusters, executors, self.wiring(blocks).loads, latencies_s)
        price = sum(
            topology.clusters[name].price * (many * topology.clusters[name].executor_cores + topology.driver_cores)
            for name, many in zip(clusters, executors, strict=True)
        )  # fmt: skip
        return Placement(tuple(made), round(price, 9), latest_s, latest_s <= topology.target_s)

    def _latencies_s(self, blocks: Blocks, clusters: Sequence[str], executors: Sequence[int]) -> list[float]:
        """What each query takes, from when its records can be read to its results."""
        wired, there = self.wiring(blocks), self.topology.clusters
        return [
            self._latency_s(load, offered, many * there[name].executor_cores)
            for load, offered, many, name in zip(wired.loads, wired.offered, executors, clusters, strict=True)
        ]  # fmt: skip

    def _latency_s(self, load: float, offered: float, cores: int) -> float:
        key = load, offered, cores
        if key not in self._took_s:
            topology, service_rps = self.topology, cores * offered / load if offered else 1.0
            batch = micro_batch(offered, service_rps, topology.overhead_s, topology.trigger_s)
            self._took_s[key] = batch.quantile_s(topology.quantile)
        return self._took_s[key]

    def _until(self, blocks: Blocks, clusters: Sequence[str], latencies_s: Sequence[float]) -> list[float]:
        """When the results of each query are there, seconds after records were produced."""
        until = [0.0] * len(blocks)
        for number, (writers, own) in enumerate(zip(self.wiring(blocks).writers, clusters, strict=True)):
            arrived = [
                until[one] + way_s(self.topology, clusters[one], own) if one >= 0
                else way_s(self.topology, self.topology.broker, own)
                for one in writers
            ]  # fmt: skip
            until[number] = latencies_s[number] + max(arrived, default=0.0)
        return until


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
