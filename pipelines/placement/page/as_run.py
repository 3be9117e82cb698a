"""The part of a page with a job's queries drawn as they run, as planned and as measured."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from configs.topology import Topology
from models.placement.plan.measured import Placement
from models.placement.plan.observed import ObservedBlock
from pipelines.html.document import NUMBER, PLAIN, row, section, table
from pipelines.html.numbers import number
from pipelines.placement.page.picture import draw_job

KINDS = [PLAIN, PLAIN, *[NUMBER] * 8]
TITLES = [
    "operators", "cluster", "executors", "records/s", "that come", "planned", "cores busy", "planned", "latency, s",
    "planned",
]  # fmt: skip


def as_run(
    topology: Topology, name: str, note: str, placement: Placement, factor: float, observed: Sequence[ObservedBlock]
) -> str:
    """Return the section, as HTML.

    Args:
        topology: of the job.
        name: heading.
        note: below it.
        placement: of its queries.
        factor: of the sources' rates.
        observed: each query, as planned and as measured.
    """
    rows = [
        [escape(" + ".join(one.block.operators)), escape(one.block.cluster), str(one.block.executors),
         number(one.rps, 1), number(one.come_rps, 1), number(one.said_rps, 1), number(one.cores, 2),
         number(one.block.load, 2), number(one.latency_s, 1), number(one.block.latency_s, 1)]
        for one in observed
    ]  # fmt: skip
    drawable = {one.cluster for one in placement.blocks} <= topology.clusters.keys()
    drawn = draw_job(topology, placement, factor) if drawable else ""  # a cluster may have gone since
    return section(name, note, drawn + table(TITLES, KINDS, [row(cells, KINDS) for cells in rows]))
