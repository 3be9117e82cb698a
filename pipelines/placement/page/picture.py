"""A placed job as a picture (SVG): clusters as bands, queries as frames in them, topics as thick lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import NamedTuple

from configs.topology import Topology
from models.placement.plan.drawing import OUTSIDE, ClusterLane, DrawnBlock, draw
from models.placement.plan.measured import Placement
from models.placement.rates import bytes_of, edges_of, rates_of
from pipelines.html.numbers import number_of

COLUMN, ROW, BOX_W, BOX_H = 172, 58, 116, 34
LEFT, BAND, FRAME, GAP = 22, 30, 26, 12
"""Pixels: left of the first column, a band's heading, a frame's heading, between frames and between bands."""


class Box(NamedTuple):
    """An operator or a source, pixels of its middle."""

    x: float
    y: float


def draw_job(topology: Topology, placement: Placement, factor: float = 1.0) -> str:
    """Return a picture of a placed job.

    Args:
        topology: of the job.
        placement: of its operators.
        factor: of the sources' rates.
    """
    lanes = draw(topology, placement)
    columns = 1 + max(cell.column for lane in lanes for cell in lane.cells.values())
    width, top = 2 * LEFT + columns * COLUMN, 0.0
    shapes, boxes = list[str](), dict[str, Box]()
    for lane in lanes:
        height = _height(lane)
        shapes += _band(topology, lane, top, width, height)
        boxes |= _boxes(lane, top)
        top += height + GAP
    lines = list(_edges(topology, placement, boxes, factor))
    names = [_operator(name, box, name in topology.sources) for name, box in boxes.items()]
    said = escape(f"{topology.name} on {', '.join(topology.clusters)}")
    body = "\n".join([*shapes, *lines, *names])
    return (
        f'<div class="scroll"><svg viewBox="0 0 {width} {top:g}" width="{width}" role="img" aria-label="{said}" '
        f'style="max-width:100%;min-width:{min(width, 640)}px;height:auto;font-size:13px">\n{body}\n</svg></div>'
    )


def _height(lane: ClusterLane) -> float:
    frames = len(lane.blocks)
    rows = lane.rows if lane.cells else 0
    return BAND + rows * ROW + frames * (FRAME + GAP) + (GAP if not frames else 0)


def _frame_top(lane: ClusterLane, number: int, top: float) -> float:
    return top + BAND + lane.blocks[number].first_row * ROW + number * (FRAME + GAP)


def _boxes(lane: ClusterLane, top: float) -> dict[str, Box]:
    if lane.cluster == OUTSIDE:
        return {name: _middle(at.column, top + BAND + at.row * ROW) for name, at in lane.cells.items()}
    return {
        name: _middle(at.column, _frame_top(lane, number, top) + FRAME + (at.row - one.first_row) * ROW)
        for number, one in enumerate(lane.blocks)
        for name, at in one.cells.items()
    }


def _middle(column: int, row_top: float) -> Box:
    return Box(LEFT + column * COLUMN + COLUMN / 2, row_top + ROW / 2)


def _band(topology: Topology, lane: ClusterLane, top: float, width: float, height: float) -> Iterator[str]:
    if lane.cluster == OUTSIDE:
        yield _text(LEFT, top + 20, "topics from outside", "var(--muted)")
        return
    one = topology.clusters[lane.cluster]
    taken = sum(made.block.executors * one.executor_cores + topology.driver_cores for made in lane.blocks)
    broker = ", with the broker" if lane.cluster == topology.broker else ""
    yield (
        f'<rect x="4" y="{top:g}" width="{width - 8:g}" height="{height:g}" rx="10" fill="var(--page)" '
        'stroke="var(--edge)"/>'
    )
    told = f"{lane.cluster}{broker}: {taken} of {one.cores} cores, {one.price:g} an hour each"
    yield _text(width - LEFT, top + 20, told, "var(--muted)", anchor="end")  # on the left edges come in from above
    for number, made in enumerate(lane.blocks):
        yield from _frame(made, _frame_top(lane, number, top))


def _frame(made: DrawnBlock, top: float) -> Iterator[str]:
    first, last = made.columns
    x, width = LEFT + first * COLUMN + 8, (last - first + 1) * COLUMN - 16
    executors = number_of(made.block.executors, "executor")
    yield (
        f'<rect x="{x:g}" y="{top:g}" width="{width:g}" height="{FRAME + made.rows * ROW:g}" rx="8" '
        'fill="var(--panel)" stroke="var(--executors)" stroke-width="1.5"/>'
    )
    yield _text(x + 10, top + 19, f"{executors}, {made.block.latency_s:.1f} s", "var(--executors)", 600)


def _edges(topology: Topology, placement: Placement, boxes: Mapping[str, Box], factor: float) -> Iterator[str]:
    rates = rates_of(topology, factor)
    place = {name: number for number, block in enumerate(placement.blocks) for name in block.operators}
    for edge in edges_of(topology):
        if edge.head not in boxes:
            continue  # to the results
        one, other = boxes[edge.tail], boxes[edge.head]
        cut = place.get(edge.tail) != place[edge.head]
        x1, x2 = one.x + BOX_W / 2, other.x - BOX_W / 2
        bend = max((x2 - x1) / 2, 24)
        stroke = "var(--capacity)" if cut else "var(--other)"
        yield (
            f'<path d="M{x1:g},{one.y:g} C{x1 + bend:g},{one.y:g} {x2 - bend:g},{other.y:g} {x2:g},{other.y:g}" '
            f'fill="none" stroke="{stroke}" stroke-width="{2.5 if cut else 1.2}"/>'
        )
        if cut:
            kilobytes = bytes_of(topology, rates, edge) / 1000
            told = f"{rates.sent[edge.tail]:,.0f}/s, {kilobytes:,.0f} kB/s"
            if edge.tail in topology.sources:  # half way there may be a band's heading
                yield _text(x1 + 10, one.y - 6, told, "var(--capacity)")
            else:
                yield _text((x1 + x2) / 2, (one.y + other.y) / 2 - 8, told, "var(--capacity)", anchor="middle")


def _operator(name: str, box: Box, source: bool) -> str:
    fill, stroke = ("none", "var(--arrival)") if source else ("var(--page)", "var(--text)")
    return (
        f'<rect x="{box.x - BOX_W / 2:g}" y="{box.y - BOX_H / 2:g}" width="{BOX_W}" height="{BOX_H}" '
        f'rx="{BOX_H / 2 if source else 6}" fill="{fill}" stroke="{stroke}"/>'
        + _text(box.x, box.y + 4.5, _cut(name), "var(--text)", anchor="middle")
    )


def _text(x: float, y: float, text: str, fill: str, weight: int = 400, anchor: str = "start") -> str:
    halo = 'paint-order="stroke" stroke="var(--page)" stroke-width="3"' if anchor == "middle" and weight == 400 else ""
    return (
        f'<text x="{x:g}" y="{y:g}" fill="{fill}" font-weight="{weight}" text-anchor="{anchor}" {halo}>'
        f"{escape(text)}</text>"
    )


def _cut(name: str, most: int = 15) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"
