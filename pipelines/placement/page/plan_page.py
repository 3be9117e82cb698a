"""The page of a plan: the job on its clusters, why it is cut there, what else there was; and what it would change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from configs.settings import Settings
from configs.topology import Topology
from models.placement.plan.choose import PlacementPlan
from models.placement.plan.measured import Block, Placement
from models.placement.plan.observed import ObservedBlock
from models.placement.plan.text import describe_followed
from models.placement.rates import Edge
from pipelines.html.document import NUMBER, PLAIN, Tile, document, row, section, table, tile_row
from pipelines.html.numbers import number, number_of
from pipelines.placement.page.as_run import as_run
from pipelines.placement.page.picture import draw_job


class RunningJob(NamedTuple):
    """A job as it runs now.

    Attributes:
        placement: where its queries are wanted.
        observed: each of them, as it was planned and as it was measured.
        path_s: latency along the slowest path, as measured; None where one of them was not.
    """

    placement: Placement
    observed: Sequence[ObservedBlock]
    path_s: float | None


def page_of_plan(settings: Settings, name: str) -> Path:
    """Return the path at which the page of a topology's newest plan is kept."""
    return settings.var_dir / "plans" / f"{name}.html"


def plan_pages(settings: Settings) -> list[Path]:
    """Return the pages of topologies that the DAG `plan_placement` has planned, by name."""
    return sorted((settings.var_dir / "plans").glob("*.html"))


def write_plan_page(
    topology: Topology, plan: PlacementPlan, factor: float, path: Path, measured: bool = False,
    notes: Sequence[str] = (), was: RunningJob | None = None,
) -> Path:  # fmt: skip
    """Write the page of a plan to `path`; folders are made if need be.

    Args:
        topology: of the job.
        plan: of its operators.
        factor: of the sources' rates, for which it was made.
        path: of the file.
        measured: whether rates and work of the topology are those of the running job.
        notes: sentences about a job that was begun, without their full stops, which are told first.
        was: the job as it runs now, which is drawn before the plan; None: it does not.

    Raises:
        OSError: the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render_plan(topology, plan, factor, measured, notes, was), encoding="utf-8")
    return path


def describe_change(file: str) -> str:
    """Return in a sentence that a plan of a running job is not for what its topology's file says now."""
    return (
        f"{file} has changed since this job was begun, or is no more; this plan is for the job as it was begun. "
        f"`tidecast plan {file.removesuffix('.yaml')}` plans what the file says now"
    )


def compare(topology: Topology, was: Placement | None, made: Placement, factor: float | None) -> tuple[str, bool]:
    """Return in a sentence what a plan would change of a running job, and whether that can be applied while it runs.

    Args:
        topology: of the job.
        was: where its queries are wanted; None: it does not run.
        made: the plan, of the queries that run where there are some.
        factor: of the sources' rates, for which it was made; None: none is stated, and it is for the measured ones.
    """
    if factor is None:
        at = f"{topology.name} at the measured rates, as none is stated: "
    else:
        times = f"{factor:.2g}" if factor < 99 else f"{factor:,.0f}"
        at = f"{topology.name} at {times} times the stated rates: "
    if was is None:
        queries = number_of(len(made.blocks), "query", "queries")
        return f"{at}{queries}, {made.price:.2f} an hour, {made.latency_s:.1f} s; it does not run", False
    moves = [
        f"{'+'.join(new.operators)} from {_where(old)} to {_where(new)}"
        for new in made.blocks
        for old in was.blocks
        if old.operators == new.operators and (old.cluster, old.executors) != (new.cluster, new.executors)
    ]
    if not moves:
        return f"{at}it stays as it is", False
    return f"{at}{'; '.join(moves)} ({made.price:.2f} an hour after {was.price:.2f}, {made.latency_s:.1f} s)", True


def _where(block: Block) -> str:
    return f"{number_of(block.executors, 'executor')} on {block.cluster}"


def render_plan(
    topology: Topology, plan: PlacementPlan, factor: float, measured: bool = False, notes: Sequence[str] = (),
    was: RunningJob | None = None,
) -> str:  # fmt: skip
    """Return the page as HTML that opens without a network; arguments as of `write_plan_page`."""
    made = plan.placement
    load = "at the stated rates" if factor == 1 else f"at {factor:g} times the stated rates"
    about = f"Found by a model {load}: nothing of it is measured."
    if measured:
        about = "Found by a model, for the rates and the work that the running job was measured to have."
    body = [
        f"<h1>{escape(topology.name)}: what runs together, and where</h1>",
        f'<p class="about">{about}</p>',
        *(f'<p class="verdict">{escape(note)}.</p>' for note in notes),
        tile_row(_tiles(topology, plan)),
        *([] if was is None else [_now(topology, was, factor)]),
        section(
            "The job on its clusters" if was is None else "As it is planned",
            "A frame is a query with its executors. Thick lines are topics between queries.",
            draw_job(topology, made, factor),
        ),
        section("Queries", "", _queries(made)),
    ]  # fmt: skip
    if plan.cuts:
        fixed = "Which operators are one query is fixed while the job runs."
        body.append(cuts_section(plan.cuts, "Why it is cut there", "" if was is None else fixed))
    if plan.others:
        note = "The best way to place each other set of queries that was looked at, the next best first."
        body.append(section("What else there was", note, _others(plan)))
    return document(f"Tidecast: plan of {topology.name}", "\n".join(body), {})


def _now(topology: Topology, was: RunningJob, factor: float) -> str:
    latency = "was not measured" if was.path_s is None else f"was measured as {number(was.path_s, 1)} s"
    note = (
        f"{number(was.placement.price, 2)} an hour. Latency along the slowest path {latency}; "
        f"{number(was.placement.latency_s, 1)} s was predicted as its queries were put there. Lines are drawn for the "
        "load of the plan."
    )
    return as_run(topology, "As it runs now", note, was.placement, factor, was.observed)


def _tiles(topology: Topology, plan: PlacementPlan) -> list[Tile]:
    made = plan.placement
    followed = describe_followed(plan)
    note = f"of {100 * topology.quantile:g} % of the records; {topology.target_s:g} s are promised"
    cores = sum(one.executors * topology.clusters[one.cluster].executor_cores for one in made.blocks)
    return [
        Tile("Latency", number(plan.told_s, 1), "s", f"{note}; {followed}" if followed else note, made.kept),
        Tile("Price", number(made.price, 2), "an hour", f"{cores} cores of executors"),
        Tile("Queries", str(len(made.blocks)), f"of {len(topology.operators)} operators",
             f"on {len({one.cluster for one in made.blocks})} of {len(topology.clusters)} clusters"),
    ]  # fmt: skip


def _queries(made: Placement) -> str:
    kinds = [PLAIN, PLAIN, NUMBER, NUMBER, NUMBER]
    rows = [
        [escape(" + ".join(one.operators)), escape(one.cluster), str(one.executors), number(one.load, 2),
         number(one.latency_s, 1)]
        for one in made.blocks
    ]  # fmt: skip
    titles = ["operators", "cluster", "executors", "cores busy", "latency, s"]
    return table(titles, kinds, [row(cells, kinds) for cells in rows])


def cuts_section(cuts: Mapping[Edge, str], name: str, note: str = "") -> str:
    """Return the section that says why edges between queries are topics, as HTML.

    Args:
        cuts: why each of them is one.
        name: heading.
        note: below it.
    """
    kinds = [PLAIN, PLAIN, PLAIN]
    rows = [[escape(edge.tail), escape(edge.head), escape(why)] for edge, why in cuts.items()]
    titles = ["from", "to", "why this is a topic"]
    return section(name, note, table(titles, kinds, [row(cells, kinds) for cells in rows]))


def _others(plan: PlacementPlan) -> str:
    kinds = [PLAIN, NUMBER, NUMBER, PLAIN]
    rows = [
        [escape(" | ".join(" + ".join(block.operators) for block in other.blocks)), number(other.price, 2),
         number(other.latency_s, 1), escape(why)]
        for other, why in plan.others
    ]  # fmt: skip
    titles = ["queries", "price an hour", "latency, s", "why not"]
    return table(titles, kinds, [row(cells, kinds) for cells in rows])
