"""A sketch that is folded is the one that would have been built small; what cannot be folded or added is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.replication.approximation.count_min import CountMin, draw_hashes
from models.replication.approximation.hyperloglog import HyperLogLog, mix
from models.replication.approximation.kll import Kll, capacity
from models.replication.approximation.refusal import ApproximationError
from models.replication.approximation.samples import Reservoir, thin

KEYS = st.lists(st.integers(0, 2**31 - 2), max_size=60)
PLAIN = (lambda keys: keys % 4, lambda keys: keys // 2 % 4)
"""The two hashes of the worked example."""


def whole(values):
    return np.array(values, dtype=np.int64)


def counted(width, counts):
    return CountMin.empty(width, PLAIN).add(whole(list(counts)), whole(list(counts.values())))


def test_the_count_min_sketch_of_the_worked_example():
    counts = {1: 5, 2: 3, 5: 2, 6: 1}
    sketch, asked = counted(4, counts), whole([1, 2, 5, 6, 9])
    assert sketch.rows.tolist() == [[0, 7, 4, 0], [5, 3, 2, 1]]
    assert sketch.estimate(asked).tolist() == [5, 3, 2, 1, 5]
    folded = sketch.fold()
    assert folded.rows.tolist() == counted(2, counts).rows.tolist() == [[4, 7], [7, 4]]
    assert folded.estimate(asked).tolist() == [7, 4, 7, 4, 7]
    assert folded.bound[0] == 2 * sketch.bound[0] and folded.total == 11


@given(KEYS, st.integers(0, 99), st.integers(1, 6))
def test_a_folded_count_min_sketch_is_the_one_built_small(keys, seed, times):
    hashes = draw_hashes(3, np.random.default_rng(seed))
    large = CountMin.empty(64, hashes).add(whole(keys))
    for _ in range(times):
        large = large.fold()
    assert (large.rows == CountMin.empty(64 >> times, hashes).add(whole(keys)).rows).all()


@given(KEYS, KEYS, st.integers(0, 99))
def test_count_min_never_underestimates_while_no_net_is_below_zero(kept, gone, seed):
    """All that `gone` brings is taken out again, in any order."""
    hashes = draw_hashes(2, np.random.default_rng(seed))
    order = np.random.default_rng(seed).permutation(len(kept) + 2 * len(gone))
    keys = whole([*kept, *gone, *gone])[order]
    mults = whole([1] * len(kept) + [1] * len(gone) + [-1] * len(gone))[order]
    sketch = CountMin.empty(8, hashes).add(keys, mults)
    asked, true = np.unique(whole(kept), return_counts=True)
    assert (sketch.estimate(asked) >= true).all() and sketch.total == len(kept)


def test_the_hyperloglog_of_the_worked_example():
    hashes = np.array([0b00010110, 0b01001000, 0b01100000, 0b11000001], dtype=np.uint64)
    sketch = HyperLogLog.empty(2, bits=8).add(hashes)
    assert sketch.registers.tolist() == [2, 3, 0, 6]
    assert sketch.fold().registers.tolist() == HyperLogLog.empty(1, bits=8).add(hashes).registers.tolist() == [3, 1]


@given(st.lists(st.integers(0, 2**63 - 1), max_size=80), st.integers(1, 7))
def test_a_folded_hyperloglog_is_the_one_built_small(values, times):
    hashes = mix(whole(values), 0)
    large = HyperLogLog.empty(7).add(hashes)
    for _ in range(times):
        large = large.fold()
    assert (large.registers == HyperLogLog.empty(7 - times).add(hashes).registers).all()


def test_ranks_of_hashes_that_a_float_would_round_are_exact():
    sketch = HyperLogLog.empty(0).add(np.array([2**53 - 1, 0], dtype=np.uint64))
    assert sketch.registers.tolist() == [65]
    assert HyperLogLog.empty(0).add(np.array([2**53 - 1], dtype=np.uint64)).registers.tolist() == [12]


def test_kll_holds_no_more_than_its_levels_may_and_shrinks_when_it_is_folded():
    rng = np.random.default_rng(0)
    sketch = Kll(100).add(rng.random(30_000), rng)
    small = sketch.fold(40, rng)
    for one in (sketch, small):
        top = len(one.levels) - 1
        assert all(len(level) <= capacity(one.k, top - i) for i, level in enumerate(one.levels))
        assert sum(len(level) * 2**i for i, level in enumerate(one.levels)) == one.total == 30_000
    assert small.size < sketch.size < 400
    assert Kll(100).add(np.arange(50.0), rng).quantile(0.5) == 24.0  # while all is kept it is exact


def test_a_folded_reservoir_is_a_sample_of_the_larger_one():
    rng = np.random.default_rng(1)
    large = Reservoir.empty(100).add(np.arange(1000.0), rng)
    small = large.fold(10, rng)
    assert len(small.values) == 10 and {*small.values} <= {*large.values} and small.total == 1000
    assert len(Reservoir.empty(9).add(np.arange(5.0), rng).fold(7, rng).values) == 5
    kept = thin(np.arange(100_000.0), 0.5, 0.1, rng)
    assert len(kept) == pytest.approx(20_000, rel=0.05)


def test_every_value_is_as_likely_to_be_in_a_reservoir_that_was_filled_in_parts():
    drawn = np.zeros(30)
    for seed in range(3000):
        rng = np.random.default_rng(seed)
        reservoir = Reservoir.empty(6).add(np.arange(4.0), rng).add(np.arange(4.0, 17), rng)
        drawn[reservoir.add(np.arange(17.0, 30), rng).values.astype(int)] += 1
    assert drawn.sum() == 3000 * 6
    assert drawn / 3000 == pytest.approx(np.full(30, 0.2), abs=0.03)  # four standard deviations


def test_what_cannot_be_is_refused():
    rng, signs = np.random.default_rng(0), whole([1, -1])
    with pytest.raises(ApproximationError, match="retraction in a HyperLogLog sketch"):
        HyperLogLog.empty(4).add(mix(whole([1, 1]), 0), signs)
    with pytest.raises(ApproximationError, match="retraction in a KLL sketch"):
        Kll(20).add(np.ones(2), rng, signs)
    with pytest.raises(ApproximationError, match="retraction in a reservoir sketch"):
        Reservoir.empty(4).add(np.ones(2), rng, signs)
    with pytest.raises(ApproximationError, match="power of 2"):
        CountMin.empty(12, PLAIN)
    with pytest.raises(ApproximationError, match="as small as it gets"):
        CountMin.empty(1, PLAIN).fold()
    with pytest.raises(ApproximationError, match="as small as it gets"):
        HyperLogLog.empty(0).fold()
    for refused in (
        lambda: Kll(20).fold(30, rng),
        lambda: Reservoir.empty(4).fold(5, rng),
        lambda: thin(np.ones(2), 0.1, 0.2, rng),
    ):
        with pytest.raises(ApproximationError, match="window's start"):
            refused()
    with pytest.raises(ApproximationError, match="NaN"):
        Kll(20).add(np.array([np.nan]), rng)
    with pytest.raises(ApproximationError, match="no values"):
        Kll(20).quantile(0.5)
