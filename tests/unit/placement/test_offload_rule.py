"""When a stage is moved: each threshold by hand, what a move costs beside a simulated queue, latencies by the model."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from configs.settings import ROOT
from configs.topology import load_topology
from models.placement.elastic.offload import (
    BACK,
    IN_TURN,
    STAY_S,
    Offload,
    OffloadChoice,
    decide_offload,
    move_s,
    offload_choice,
)

ADVERTS = load_topology("served_adverts", ROOT / "configs" / "topologies")
FULL = OffloadChoice(5, 4, 1.20, 0.40, 150, 200, 0.08, 30)
"""Of the worked example: a move adds 0.08 s and 0.5 s, so that 0.98 s here are as long as there."""
BACK_HOME = OffloadChoice(3, 4, 0.30, 0.40, 150, 200, 0.08, 30)
FIFTH_QUICKER_S = BACK * (BACK_HOME.link_s + BACK_HOME.there_s)
"""0.384 s here are four fifths of what it takes there."""


def decided(stage, state=None, begin_s=0.0, times=IN_TURN, every_s=10.0):
    """Where a stage is after as many equal decisions."""
    state = state or Offload()
    for turn in range(times):
        state = decide_offload(begin_s + turn * every_s, state, stage)
    return state


def test_an_outage_spread_over_the_stay_is_what_a_queue_shows():
    """Records come every 1/150 s, take 1/200 s, and find nobody for 30 s: the mean wait of an hour's records."""
    waits, free = 0.0, FULL.outage_s
    for number in range(int(FULL.rps * STAY_S)):
        came = number / FULL.rps
        if free <= came:  # all is caught up with
            break
        waits, free = waits + free - came, free + 1 / FULL.there_rps
    assert waits / (FULL.rps * STAY_S) == pytest.approx(0.50003, abs=5e-6)
    assert move_s(FULL) - FULL.link_s == pytest.approx(0.5) and STAY_S == 3600
    assert move_s(FULL._replace(outage_s=0)) == FULL.link_s


@pytest.mark.parametrize(("change", "there"), [
    ({}, True),
    ({"here_s": 0.98}, False), ({"here_s": math.nextafter(0.98, 1)}, True),  # strict
    ({"here_s": 0.90}, False), ({"here_s": math.inf}, True),
    ({"needed": 4}, False), ({"needed": 4, "here_s": math.inf}, False),  # the ceiling is reached, not passed
    ({"needed": 1, "here_s": 1e9}, False), ({"most": 5}, False), ({"most": 0}, True),
    ({"there_s": math.inf}, False), ({"here_s": math.inf, "there_s": math.inf}, False),
    ({"there_rps": 150}, False), ({"here_s": math.inf, "there_rps": 150}, False),  # nor does it keep up there
    ({"link_s": 0.30}, False),
])  # fmt: skip
def test_it_goes_where_it_needs_more_than_there_is_and_is_slower_than_there_with_the_move(change, there):
    assert decided(FULL._replace(**change)).there is there


@pytest.mark.parametrize(("change", "there"), [
    ({}, False),
    ({"needed": 4}, True),  # it would need all that there is
    ({"here_s": FIFTH_QUICKER_S}, True), ({"here_s": math.nextafter(FIFTH_QUICKER_S, 0)}, False),  # strict
    ({"here_s": math.inf}, True), ({"there_s": math.inf}, False),
])  # fmt: skip
def test_it_comes_back_where_an_instance_stays_free_and_it_is_a_fifth_quicker(change, there):
    away = Offload(there=True, since_s=0.0)
    assert decided(BACK_HOME._replace(**change), away, begin_s=STAY_S).there is there


def test_four_fifths_by_hand():
    assert pytest.approx(0.384) == FIFTH_QUICKER_S


def test_three_decisions_in_turn_have_to_agree_either_way():
    state = Offload()
    for stage, agreed in ((FULL, 1), (FULL, 2), (FULL._replace(needed=4), 0), (FULL, 1), (FULL, 2)):
        state = decide_offload(0.0, state, stage)
        assert state == Offload(agreed=agreed)
    assert decide_offload(70.0, state, FULL) == Offload(True, 70.0, 0)


def test_it_is_back_at_half_the_stay_at_the_soonest():
    away = Offload(there=True, since_s=100.0)
    assert decided(BACK_HOME, away, begin_s=1899.9, times=1).agreed == 0
    assert decided(BACK_HOME, away, begin_s=1900.0, times=1).agreed == 1
    assert decided(BACK_HOME, away, begin_s=99.0, times=1).agreed == 1  # the clock was set back meanwhile
    assert decided(BACK_HOME, away, begin_s=1880.0, times=4).there
    assert decided(BACK_HOME, away, begin_s=1880.0, times=5) == Offload(False, 1920.0, 0)


@given(st.floats(0, 100), st.floats(1, 1e4), st.floats(0.05, 0.95), st.floats(0, 3), st.floats(1, 2))
def test_a_move_costs_at_least_its_way_and_more_the_longer_it_takes_and_the_fuller_it_is_there(
    outage_s, there_rps, load, link_s, more
):
    stage = OffloadChoice(5, 4, 1.0, 1.0, load * there_rps, there_rps, link_s, outage_s)
    assert link_s <= move_s(stage) <= move_s(stage._replace(outage_s=more * outage_s))
    assert move_s(stage) <= move_s(stage._replace(rps=min(more * load, 0.99) * there_rps)) + 1e-12
    assert move_s(stage) - link_s == pytest.approx(outage_s**2 / 7200 / (1 - load))


def test_latencies_here_and_there_are_those_of_batches():
    """Batches of 1 s and 16 core-ms a record, at least 2 s apart: here back to back, there with time to wait."""
    inputs = {"arrival_rps": 55.0, "per_record_s": 0.016, "overhead_s": 1.0}
    choice = offload_choice(ADVERTS, (1, 3), "west", "east", 2, inputs)
    assert choice.here_s == pytest.approx(1.95 * 1.0 / (1 - 0.016 * 55))
    assert choice.there_s == pytest.approx(0.95 * 2 + 1.0 + 2 * 0.016 * 55 / 3)
    assert (choice.link_s, choice.outage_s) == (0.001, 40.0)
    assert offload_choice(ADVERTS, (1, 3), "west", "east", 2, {**inputs, "arrival_rps": 62.4}).here_s == pytest.approx(
        1.95 / (1 - 0.016 * 62.4), rel=1e-6
    )
    for room, rps in ((1, 62.5), (0, 1.0)):  # no backlog would end, and there is no room at all
        full = offload_choice(ADVERTS, (room, 3), "west", "east", 2, {**inputs, "arrival_rps": rps})
        assert full.here_s == math.inf and math.isfinite(full.there_s)
