"""The whole generator: what it draws, that equal seeds draw equal workloads, and that its truth is the relations'."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.relation.aggregates import Aggregate, Distinct
from models.relation.linear import SlidingWindow
from models.relation.ordered import TopN
from models.relation.records import SignedRecord, net
from models.relation.reducers import Count, RowOf, Sum
from models.workload.disorder import DisorderShape
from models.workload.faults import FaultShape
from models.workload.generator import SignedRecords, ValueShape, WorkloadShape, draw_workload
from models.workload.keys import HotEpisode, KeyShape
from models.workload.rates import RateShape
from models.workload.refusal import WorkloadError
from models.workload.truth import WindowKey, WindowTruth, truth_of

BUSY = WorkloadShape(
    seconds=120, batch_s=40, begin_ms=1_000_000,
    rate=RateShape(20.0, amplitude=0.5, period_s=60, noise=0.2),
    keys=KeyShape(6, drift_s=20, drift_swaps=2, hot=(HotEpisode(50, 10, 0.5, (5,)),)),
    values=ValueShape(5.0, 0.8, 40),
    disorder=DisorderShape(0.3, 2000, most_ms=20_000, retracted=0.3, retract_ms=15_000),
    faults=FaultShape(60),
)  # fmt: skip


def same(one, other):
    return list(one.rows()) == list(other.rows())


def test_equal_seeds_draw_equal_workloads_and_others_do_not():
    one, again, other = draw_workload(BUSY, 3), draw_workload(BUSY, 3), draw_workload(BUSY, 4)
    assert same(one.records, again.records) and one.faults == again.faults
    assert not same(one.records, other.records) and one.faults != other.faults


def test_a_component_that_is_changed_leaves_the_others_as_they_were():
    base = draw_workload(BUSY, 3).records
    base = base.part(base.mult > 0)
    for changed, kept in (
        ({"disorder": replace(BUSY.disorder, retracted=0.9)}, ("key", "value", "t_e", "t_i")),
        ({"disorder": replace(BUSY.disorder, disordered=0.9)}, ("key", "value", "t_i")),
        ({"keys": KeyShape(99, 0.5)}, ("value", "t_e", "t_i")),
        ({"values": ValueShape(7.0)}, ("key", "t_e", "t_i")),
        ({"faults": FaultShape(600)}, ("key", "value", "t_e", "t_i")),
    ):
        other = draw_workload(replace(BUSY, **changed), 3).records
        other = other.part(other.mult > 0)
        for name in ("key", "value", "t_e", "t_i"):
            if name in kept:
                assert (getattr(other, name) == getattr(base, name)).all(), (changed, name)
    other = draw_workload(replace(BUSY, keys=replace(BUSY.keys, drift_s=0.0, hot=())), 3).records
    assert (other.part(other.mult > 0).key != base.key).any()


def test_records_come_in_order_late_ones_happened_before_and_retractions_meet_their_insertion():
    records = draw_workload(BUSY, 5).records
    assert (np.diff(records.t_i) >= 0).all() and (records.t_e <= records.t_i).all()
    left = defaultdict(int)
    for key, value, t_e, _, mult in records.rows():
        left[key, value, t_e] += mult
        assert left[key, value, t_e] >= 0, "nothing is taken back before it came"
    inserted = records.part(records.mult > 0)
    assert (inserted.t_i - inserted.t_e).max() <= 20_000
    assert inserted.t_i.min() >= BUSY.begin_ms and inserted.t_i.max() < BUSY.begin_ms + 120_000
    assert (records.mult < 0).sum() / len(inserted) == pytest.approx(0.3, abs=0.05)
    assert len(inserted) == pytest.approx(20 * 120, rel=0.3)
    assert inserted.value.max() == 40 and inserted.value.min() >= 0 and np.median(inserted.value) == 5


def test_table_and_stream_are_the_workload_parted_at_t0():
    workload = draw_workload(BUSY, 6)
    batch, stream = workload.batch, workload.stream
    assert [*batch.rows(), *stream.rows()] == [*workload.records.rows()]
    assert batch.t_i.max() < workload.stream_ms == 1_040_000 <= stream.t_i.min()
    assert len(batch) > 500 and (stream.mult < 0).any()
    alone = draw_workload(replace(BUSY, batch_s=0), 6)
    assert len(alone.batch) == 0 and same(alone.stream, workload.records)


def reference(rows, size, slide, top):
    """The same by the pure reference of every operator."""
    windows = SlidingWindow(size, slide).apply(net(SignedRecord(*row) for row in rows))
    sums = Aggregate(RowOf((Count(), Sum(), TopN(top)))).apply(windows)
    distinct = Aggregate(Count()).apply(Distinct().apply(windows))
    of = {k: count for k, count, _ in distinct}
    return {
        WindowKey(*k.window, k.key): WindowTruth(count, total, of.get(k, 0), greatest)
        for k, (count, total, greatest), _ in sums
    }


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from([(5000, 5000), (6000, 2000), (7000, 3000)]), st.integers(1, 4))
def test_the_truth_is_that_of_the_relations(seed, window, top):
    """Of all records, and of the stream alone, which takes back what it does not have."""
    shape = replace(BUSY, seconds=30, batch_s=10, rate=RateShape(8.0))
    workload = draw_workload(shape, seed)
    for part in (workload.records, workload.batch, workload.stream):
        assert truth_of(part, *window, top=top) == reference(part.rows(), *window, top)


def test_the_truth_by_hand():
    key, value = np.array([1, 1, 1, 2, 1]), np.array([5, 5, 9, 7, 9])
    t_e, mult = np.array([0, 999, 500, 1000, 500]), np.array([1, 1, 1, 1, -1])
    records = SignedRecords(key, value, t_e, t_e, mult)
    assert truth_of(records, 1000, top=3) == {
        WindowKey(0, 1000, 1): WindowTruth(2, 10, 1, (5, 5)),
        WindowKey(1000, 2000, 2): WindowTruth(1, 7, 1, (7,)),
    }
    assert truth_of(records.part(mult < 0), 1000) == {}
    assert truth_of(records.part(np.array([], dtype=int)), 1000) == {}
    for wrong in ((0,), (1000, 0), (1000, 2000)):
        with pytest.raises(WorkloadError, match="slide <= size"):
            truth_of(records, *wrong)
    with pytest.raises(WorkloadError, match="1 or more"):
        truth_of(records, 1000, top=0)


def test_workloads_that_are_none_are_refused():
    for wrong in ({"seconds": 0}, {"batch_s": -1}, {"step_s": 0}):
        with pytest.raises(WorkloadError, match="expected"):
            WorkloadShape(**wrong)
    with pytest.raises(WorkloadError, match="median"):
        ValueShape(0.0)


def test_a_workload_without_records_has_a_truth_too():
    empty = draw_workload(replace(BUSY, seconds=0.01, rate=RateShape(0.001)), 0)
    assert len(empty.records) == 0 and truth_of(empty.records, 1000) == {}
