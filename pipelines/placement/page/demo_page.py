"""The page of the demonstration: the job before and after its second plan, as planned and as measured."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Protocol

from configs.topology import Topology
from models.placement.plan.choose import why_cut
from models.placement.plan.measured import Measure, Placement
from models.placement.plan.observed import ObservedBlock
from models.placement.rates import rates_of
from pipelines.html.document import Tile, document, section, tile_row
from pipelines.html.numbers import number
from pipelines.placement.page.as_run import as_run
from pipelines.placement.page.plan_page import cuts_section


class DemoPhase(Protocol):
    """The job at one load."""

    @property
    def factor(self) -> float:
        """Of the stated rate."""

    @property
    def placement(self) -> Placement:
        """Of its queries."""

    @property
    def observed(self) -> list[ObservedBlock]:
        """Each query, as planned and as measured."""

    @property
    def path_s(self) -> float | None:
        """Latency along the slowest path, as measured."""


def render_demo(
    topology: Topology, before: DemoPhase, after: DemoPhase, change: str, moved_s: float, events: int, wrong: int,
    windows: int, said: Sequence[str],
) -> str:  # fmt: skip
    """Return the page as HTML that opens without a network.

    Args:
        topology: of the job.
        before: at the stated rate.
        after: at the higher one, where the second plan put it.
        change: what that plan changed.
        moved_s: until its queries worked there.
        events: that were sent.
        wrong: windows with other counts than the events come to.
        windows: in all.
        said: what a person was told meanwhile.
    """
    exact = f"All {windows:,} windows hold what {events:,} events come to."
    counted = exact if not wrong else f"{wrong:,} of {windows:,} windows do not hold what {events:,} events come to."
    verdict = f"{change}. Moved in {moved_s:.0f} s while records came. {counted}"
    body = [
        f"<h1>{escape(topology.name)}: planned, run on two clusters, and planned anew</h1>",
        f'<p class="verdict">{escape(verdict)}</p>',
        tile_row(_tiles(topology, before, after, wrong, windows)),
        *(_phase(topology, *one) for one in (("Before", before), ("After", after))),
        section("What happened", "", '<pre style="white-space:pre-wrap">' + escape("\n".join(said)) + "</pre>"),
    ]
    return document(f"Tidecast: {topology.name} on two clusters", "\n".join(body), {})


def _phase(topology: Topology, name: str, phase: DemoPhase) -> str:
    load = "the stated rate" if phase.factor == 1 else f"{phase.factor:g} times the stated rate"
    note = f"At {load}. A frame is a query with its executors; thick lines are topics between queries."
    drawn = as_run(topology, name, note, phase.placement, phase.factor, phase.observed)
    cuts = why_cut(Measure(topology, rates_of(topology, phase.factor)), phase.placement)
    return drawn + cuts_section(cuts, f"{name}: why it is cut there") if cuts else drawn


def _tiles(topology: Topology, before: DemoPhase, after: DemoPhase, wrong: int, windows: int) -> list[Tile]:
    found = [
        Tile(f"Latency {name}", number(phase.path_s, 1), "s",
             f"planned {number(phase.placement.latency_s, 1)} s; {topology.target_s:g} s are promised",
             None if phase.path_s is None else phase.path_s <= topology.target_s)
        for name, phase in (("before", before), ("after", after))
    ]  # fmt: skip
    price = f"{number(before.placement.price, 2)} before"
    return [
        *found,
        Tile("Price after", number(after.placement.price, 2), "an hour", price),
        Tile("Windows counted right", number(windows - wrong), f"of {windows:,}", "exactly once, moved meanwhile",
             not wrong),
    ]  # fmt: skip
