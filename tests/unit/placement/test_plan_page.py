"""A placed job as it is drawn: where its parts stand, by hand and for every job; and the page around it."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from configs.settings import ROOT
from configs.topology import Topology, load_topology
from models.placement.plan.choose import choose_placement
from models.placement.plan.drawing import draw
from models.placement.plan.measured import Block, Placement
from pipelines.placement.page.picture import draw_job
from pipelines.placement.page.plan_page import render_plan


def job(of, clusters=("east", "west")):
    """A topology of operators that take each other's records, by the numbers of these; 0 is the source."""
    trips = {"east": {"cores": 9, "round_trip_ms": {"west": 1}}, "west": {"cores": 9}}
    return Topology.model_validate({
        "name": "drawn", "broker": "east", "sources": {"o0": {"rps": 10.0}},
        "clusters": {name: trips[name] for name in clusters},
        "operators": {
            f"o{own}": {"of": sorted({f"o{one}" for one in takes}), "work_ms": 1} for own, takes in enumerate(of, 1)
        },
    })  # fmt: skip


def placed(*blocks):
    made = tuple(Block(tuple(names.split()), cluster, 1, 0.5, 1.0) for names, cluster in blocks)
    return Placement(made, 1.0, 1.0, True)


def test_where_a_diamond_stands():
    topology = job([[0], [1], [1], [2, 3]])
    outside, east, west = draw(topology, placed(("o1", "east"), ("o2 o3", "west"), ("o4", "east")))
    assert outside.cells == {"o0": (0, 0)} and outside.rows == 1
    assert east.cells == {"o1": (1, 0), "o4": (3, 1)} and [one.first_row for one in east.blocks] == [0, 1]
    assert west.cells == {"o2": (2, 0), "o3": (2, 1)} and west.blocks[0].rows == 2 and west.blocks[0].columns == (2, 2)


@settings(max_examples=60)
@given(st.data())
def test_no_two_parts_stand_in_one_place_and_records_go_to_the_right(data):
    many = data.draw(st.integers(1, 9))
    of = [data.draw(st.sets(st.integers(0, own - 1), min_size=1, max_size=3)) for own in range(1, many + 1)]
    topology = job(of)
    place = [data.draw(st.integers(0, 3)) for _ in range(many)]
    blocks = {number: [f"o{own}" for own, at in enumerate(place, 1) if at == number] for number in set(place)}
    lanes = draw(topology, placed(*((" ".join(names), "east" if at % 2 else "west") for at, names in blocks.items())))
    columns = {name: cell.column for lane in lanes for name, cell in lane.cells.items()}
    assert columns.keys() == {*topology.sources, *topology.operators}
    for lane in lanes:
        assert len(set(lane.cells.values())) == len(lane.cells)
        assert all(
            one.first_row <= cell.row < one.first_row + one.rows for one in lane.blocks for cell in one.cells.values()
        )
    for own, takes in enumerate(of, 1):
        assert all(columns[f"o{one}"] < columns[f"o{own}"] for one in takes)


def test_the_picture_holds_every_part_inside_its_frame_of_view():
    topology = load_topology("adverts", ROOT / "configs" / "topologies")
    text = draw_job(topology, placed(("parse views project", "east"), ("join count", "west")))
    for name in (*topology.sources, *topology.operators, "198/s, 12 kB/s", "with the broker"):
        assert name in text
    assert text.count("var(--capacity)") == 4  # two topics, and what goes through each
    width, height = map(float, re.search(r'viewBox="0 0 (\S+) (\S+)"', text).groups())
    for x, y, w, h in re.findall(r'<rect x="(\S+)" y="(\S+)" width="(\S+)" height="(\S+)"', text):
        assert float(x) >= 0 and float(x) + float(w) <= width and float(y) >= 0 and float(y) + float(h) <= height


def test_the_page_says_what_was_found_by_the_model_and_why():
    topology = load_topology("adverts", ROOT / "configs" / "topologies")
    units = topology.model_copy(update={"operators": {
        name: one.model_copy(update={"unit": name}) for name, one in topology.operators.items()
    }})  # fmt: skip
    text = render_plan(units, choose_placement(units), 1.5)
    assert "at 1.5 times the stated rates" in text and "Why it is cut there" in text and len(text) < 100_000
    assert "<h1>adverts: what runs together, and where</h1>" in text
