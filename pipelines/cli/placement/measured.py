"""A running job's queries as measured, in lines for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from configs.topology import Topology
from models.placement.plan.as_measured import counted_of
from models.placement.plan.observed import ObservedBlock
from pipelines.html.columns import aligned
from pipelines.html.numbers import number
from pipelines.placement.job_folder import JobFolder
from pipelines.placement.observed import observe_trips


def describe_observed(
    folder: JobFolder, found: list[ObservedBlock], path_s: float | None, sizes: Mapping[str, float]
) -> Iterator[str]:
    """Yield the lines that set a job's queries as measured beside its plan; `sizes`: as `observe_record_bytes`."""
    placement = folder.wanted()
    heads = (
        "query", "cluster", "executors", "records/s", "that come", "planned", "cores busy", "planned", "latency s",
        "planned",
    )  # fmt: skip
    rows = [
        ("+".join(one.block.operators), one.block.cluster, str(one.block.executors), number(one.rps, 1),
         number(one.come_rps, 1), number(one.said_rps, 1), number(one.cores, 2), number(one.block.load, 2),
         number(one.latency_s, 1), number(one.block.latency_s, 1))
        for one in found
    ]  # fmt: skip
    yield from aligned([heads, *rows], left=(0, 1))
    topology = folder.topology()
    yield from _describe_operators(topology, found)
    for cluster, trip_ms in observe_trips(folder).items():
        stated_ms = topology.round_trip_ms(cluster, topology.broker)
        yield f"from {cluster} to the broker and back: {trip_ms:.1f} ms, stated {stated_ms:.1f} ms between clusters"
    for name, size in sizes.items():
        stated = (topology.sources.get(name) or topology.operators[name]).bytes
        yield f"a record of {name}: {size:.0f} bytes, stated {stated:g}"
    told = "not measured yet" if path_s is None else f"{path_s:.1f} s"
    yield f"along the slowest path: {told}, planned {placement.latency_s:.1f} s"


def _describe_operators(topology: Topology, found: list[ObservedBlock]) -> Iterator[str]:
    """What each operator takes and makes, where its query counts that: a line each, under their heads."""
    heads = ("operator", "takes records/s", "makes", "of one", "stated")
    rows = [
        (name, number(taken, 1), number(made, 1), number(made / taken if taken else None, 3),
         number(topology.operators[name].selectivity, 3))
        for one in found for name, (taken, made) in counted_of(topology, one).items()
    ]  # fmt: skip
    if rows:
        yield from aligned([heads, *rows], left=(0,))
