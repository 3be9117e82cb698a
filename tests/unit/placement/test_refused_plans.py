"""What a topology without a plan is told to lack, and that what it is told to do instead is enough."""

import re

import pytest

from models.placement.plan.choose import PlanError, choose_placement
from tests.unit.placement.test_plan import CHAIN, TWO, topology


def refused(job, factor=1.0):
    with pytest.raises(PlanError) as told:
        choose_placement(job, factor)
    return str(told.value)


def test_a_job_that_only_lacks_partitions_is_told_the_fewest_with_which_it_has_room():
    """Of 1,000 records/s `join` alone keeps 4 cores busy, which 70 % of 6 are not with what its topics take."""
    job = topology(CHAIN, {"east": {"cores": 32}}, partitions=3)
    said = refused(job, 10.0)
    assert "partitions=3: more cores than these do nothing for a query" in said and "for 40% of the load" in said
    fewest = int(re.search(r"State partitions: (\d+)", said)[1])
    for partitions, able in ((fewest, True), (fewest - 1, False)):
        tried = job.model_copy(update={"partitions": partitions})
        if able:
            made = choose_placement(tried, 10.0).placement
            assert f"{len(made.blocks)} queries on east, {made.price:.2f} an hour" in said
        else:
            assert "State partitions" in refused(tried, 10.0)


def test_partitions_are_not_blamed_where_more_of_them_would_not_do():
    said = refused(topology(CHAIN, {"east": {"cores": 6}}, partitions=3), 10.0)
    assert "State partitions" not in said and "of which 3 at most do anything for it" in said


def test_a_pin_against_capacity_is_named_with_its_cluster():
    small = {**TWO, "west": {"cores": 4, "memory_gb": 4}}
    pins = {
        "parse": {**CHAIN["parse"], "cluster": "west"}, "join": {**CHAIN["join"], "cluster": "west"},
        "count": {**CHAIN["count"], "cluster": "east"},
    }  # fmt: skip
    said = refused(topology(pins, small), 5.0)
    assert "Pinned to west, which has 4 cores and 4 GB: parse, join, which keep 4.0 cores busy" in said
    assert "take operators.parse.cluster away: there is room then (" in said and "operators.count" not in said
    pins["parse"]["memory_mb"] = pins["join"]["memory_mb"] = 5_000
    said = refused(topology(pins, small))
    assert "hold 10.0 GB" in said and "take operators.parse.cluster and operators.join.cluster away" in said


def test_pins_are_not_blamed_where_there_is_no_room_without_them():
    pins = {**CHAIN, "join": {**CHAIN["join"], "cluster": "west"}}
    said = refused(topology(pins, TWO), 100.0)
    assert "Pinned" not in said and "split" in said and "or take pins away" in said
