"""What can reach later queries when those before them are full, by hand; and what a slot can do at best."""

import pytest

from configs.topology import Topology
from models.placement.elastic.reaching import most_reaching, slot_rps
from models.placement.plan.measured import Block, Placement

JOB = Topology.model_validate({
    "name": "job", "broker": "east", "sources": {"in": {"rps": 100.0}, "side": {"rps": 50.0}},
    "operators": {
        "parse": {"of": ["in"], "work_ms": 1.0, "selectivity": 0.5},
        "split": {"of": ["parse"], "work_ms": 1.0, "selectivity": 3.0},
        "clean": {"of": ["side"], "work_ms": 1.0}, "join": {"of": ["split", "clean"], "work_ms": 1.0},
    },
    "clusters": {"east": {"cores": 8}},
})  # fmt: skip


def placed(*blocks):
    return Placement(tuple(Block(names, "east", 1, 1.0, 1.0) for names in blocks), 1.0, 1.0, True)


EACH = placed(("parse",), ("split",), ("clean",), ("join",))


def test_a_full_query_bounds_all_that_come_after_it():
    """60 records/s of `in` are 30 of `parse` and 90 of `split`; `clean` is full at 40."""
    assert most_reaching(JOB, EACH, {0: 60.0, 2: 40.0})[1] == pytest.approx(30.0)
    assert most_reaching(JOB, EACH, {0: 60.0, 2: 40.0})[3] == pytest.approx(90 + 40)
    assert most_reaching(JOB, EACH, {0: 60.0, 1: 10.0, 2: 40.0})[3] == pytest.approx(30 + 40)
    fused = placed(("parse", "split"), ("clean",), ("join",))
    assert most_reaching(JOB, fused, {0: 60.0, 1: 40.0})[2] == pytest.approx(90 + 40)


def test_what_is_not_known_bounds_nothing():
    assert min(most_reaching(JOB, EACH, {})) > 1e9
    assert most_reaching(JOB, EACH, {0: 60.0})[3] > 1e9  # `clean` may send any number
    assert most_reaching(JOB, EACH, {3: 1.0})[3] > 1e9  # its own


def test_a_slot_does_at_best_what_its_batches_leave_open():
    told = {"overhead_s": 0.5, "per_record_s": 0.02, "scatter": 0.01, "processed_rps": 9.0}
    assert slot_rps(told) == pytest.approx(50 * 1.568, rel=1e-3)  # exp(4.5 x 0.1)
    for name in ("per_record_s", "scatter", "processed_rps"):
        for unknown in (None, "x", 0, -1.0, float("nan"), True):
            assert slot_rps({**told, name: unknown}) is None
