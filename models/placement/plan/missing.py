"""What is missing where a topology has no plan, and the nearest for which there is one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from configs.topology import Topology
from models.placement.fusion.parts import GIGABYTE
from models.placement.partition.count import UTILISATION
from models.placement.plan.measured import Placement
from models.placement.rates import cores_of, memory_of, rates_of

Best = Callable[[Topology, float], Placement | None]
"""The best placement of a topology at a factor of its sources' rates; None: the clusters have no room."""
SHARES = tuple(number / 10 for number in range(9, 0, -1))
"""Of a load that has no room, for which room is looked for."""
TRIED = 4
"""Pins, and clusters whose pins, are taken away by turns: a large job takes long to be planned."""


def what_is_missing(topology: Topology, factor: float, best: Best, fixed: bool = False) -> str:
    """Return why a topology has no plan: quota, pins, partitions, or cores and memory, and what would do instead.

    Args:
        topology: of the job.
        factor: of the sources' rates, for which there is no room.
        best: plans another topology, or another load.
        fixed: whether its queries are those of a job that was begun.
    """
    of_one = next(filter(None, (of(topology, factor, best) for of in (_of_quota, _of_pins, _of_partitions))), None)
    why = of_one or _of_all(topology, factor)
    able = next((share for share in SHARES if best(topology, share * factor)), None)
    less = f"there is room for {able:.0%} of the load" if able else "there is none for a tenth of the load either"
    whose = "its queries, which are fixed while it runs, have no room" if fixed else "no set of queries has room"
    return f"{topology.name}: {whose}. {why}; as it is {less}."


def _of_pins(topology: Topology, factor: float, best: Best) -> str | None:
    """The pins without which there is room: one if that will do, else those to one cluster, else all."""
    cores = cores_of(topology, rates_of(topology, factor))
    pinned = sorted((name for name, one in topology.operators.items() if one.cluster), key=lambda name: -cores[name])
    by_cluster: dict[str, list[str]] = {}
    for name in pinned:
        by_cluster.setdefault(str(topology.operators[name].cluster), []).append(name)
    sets = [*((name,) for name in pinned[:TRIED]), *map(tuple, [*by_cluster.values()][:TRIED]), tuple(pinned)]
    for names in dict.fromkeys(sets) if pinned else ():
        if (made := best(_without_pins(topology, names), factor)) is not None:
            told = [
                _pinned(topology, cores, cluster, own)
                for cluster, own in by_cluster.items() if {*own} & {*names}
            ]  # fmt: skip
            pins = " and ".join(f"operators.{name}.cluster" for name in names)
            return f"{' '.join(told)} Add to it, or take {pins} away: there is room then ({summary(made)})"
    return None


def _pinned(topology: Topology, cores: Mapping[str, float], cluster: str, pinned: Sequence[str]) -> str:
    there = topology.clusters[cluster]
    busy, held = sum(cores[name] for name in pinned), memory_of(topology, pinned) / GIGABYTE
    keep, hold = ("keeps", "holds") if len(pinned) == 1 else ("keep", "hold")
    return (
        f"Pinned to {cluster}, which has {there.cores} cores and {there.memory_gb:g} GB: {', '.join(pinned)}, which"
        f" {keep} {busy:.1f} cores busy ({UTILISATION:.0%} of a query's are to be), and {hold} {held:.1f} GB."
    )


def _of_quota(topology: Topology, factor: float, best: Best) -> str | None:
    """The least quota for which there is room, where that is all that is missing."""
    if (quota := topology.quota_cores) is None:
        return None
    there = sum(one.cores for one in topology.clusters.values())
    found = _fewest(quota, there, lambda many: best(topology.model_copy(update={"quota_cores": many}), factor))
    if found is None:
        return None
    enough, made = found
    return (
        f"quota_cores={quota}: all queries together may have these cores, each one executor at least and so many that "
        f"{UTILISATION:.0%} of them are busy. State quota_cores: {enough} at least: there is room then "
        f"({summary(made)})"
    )


def _fewest(few: int, enough: int, best: Callable[[int], Placement | None]) -> tuple[int, Placement] | None:
    """The least number above `few`, up to `enough`, for which there is a placement, and that; None: for none."""
    made = best(enough) if enough > few else None
    if made is None:
        return None
    while enough - few > 1:
        middle = (few + enough) // 2
        if (found := best(middle)) is not None:
            enough, made = middle, found
        else:
            few = middle
    return enough, made


def _of_partitions(topology: Topology, factor: float, best: Best) -> str | None:
    """The least partitions for which there is room, where that is all that is missing."""
    few, enough = topology.partitions, max(one.cores for one in topology.clusters.values())
    found = _fewest(few, enough, lambda many: best(topology.model_copy(update={"partitions": many}), factor))
    if found is None:
        return None
    enough, made = found
    return (
        f"partitions={topology.partitions}: more cores than these do nothing for a query, and one needs more. State "
        f"partitions: {enough} at least, where its topics have as many: there is room then ({summary(made)})"
    )


def _of_all(topology: Topology, factor: float) -> str:
    cores = cores_of(topology, rates_of(topology, factor))
    busy, heavy = sum(cores.values()), max(cores, key=lambda name: cores[name])
    there = sum(one.cores for one in topology.clusters.values())
    room = sum(one.memory_gb for one in topology.clusters.values())
    held = memory_of(topology, topology.operators) / GIGABYTE
    pins = ", or take pins away" if any(one.cluster for one in topology.operators.values()) else ""
    return (
        f"Its work keeps {busy:.1f} cores busy, {cores[heavy]:.1f} of them {heavy}'s, where a query is to use"
        f" {UTILISATION:.0%} of its own, of which {topology.partitions} at most do anything for it, and holds"
        f" {held:.1f} GB; the clusters have {there} cores and {room:g} GB, in parts. Add to them, split {heavy}{pins}"
    )


def summary(made: Placement) -> str:
    """Return a placement in a few words: queries, clusters, price, latency."""
    many, on = len(made.blocks), dict.fromkeys(block.cluster for block in made.blocks)
    queries = "1 query" if many == 1 else f"{many} queries"
    return f"{queries} on {' and '.join(on)}, {made.price:.2f} an hour, {made.latency_s:.1f} s"


def without_clusters(topology: Topology, names: Collection[str]) -> Topology | None:
    """Return a topology without some clusters for its queries; None: operators are pinned there, or there is no other.

    Args:
        topology: of the job.
        names: of the clusters; that of the broker stays, without cores.
    """
    if any(one.cluster in names for one in topology.operators.values()) or not topology.clusters.keys() - {*names}:
        return None
    clusters = {
        name: one.model_copy(update={"cores": 0}) if name in names else one
        for name, one in topology.clusters.items()
        if name not in names or name == topology.broker
    }
    return topology.model_copy(update={"clusters": clusters})


def _without_pins(topology: Topology, names: Collection[str]) -> Topology:
    operators = {
        name: own.model_copy(update={"cluster": None}) if name in names else own
        for name, own in topology.operators.items()
    }
    return topology.model_copy(update={"operators": operators})
