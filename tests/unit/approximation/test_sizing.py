"""Sizes at a window's start follow limit and pressure; within a window they can only fall."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.contract.terms import ErrorLimit
from models.replication.approximation.refusal import ApproximationError
from models.replication.approximation.sizing import RETRACTING, Size, refuse_changelog, shrink, size_at_start

KINDS = ("count_min", "hyperloglog", "kll", "reservoir", "bernoulli")


@given(
    st.sampled_from(KINDS), st.floats(0.02, 0.5), st.floats(0.001, 0.2), st.floats(0, 1), st.floats(0, 1),
    st.integers(1_000, 10**7),
)  # fmt: skip
def test_sizes_keep_the_limit_and_fall_as_the_pressure_rises(kind, eps, pf, pressure, more, expected):
    limit = ErrorLimit(pf, eps_rel=eps)
    calm = size_at_start(kind, limit, min(pressure, more), expected)
    pressed = size_at_start(kind, limit, max(pressure, more), expected)
    assert pressed.amount <= calm.amount
    for size in (calm, pressed):
        assert size.entry("op", (0, 1), expected, expected).keeps(limit)


def test_sizes_that_can_be_worked_out():
    assert size_at_start("count_min", ErrorLimit(0.01, eps_rel=0.01), 1.0, 1e6) == Size("count_min", 512, 0.01)
    assert size_at_start("count_min", ErrorLimit(0.01, eps_abs=1e4), 1.0, 1e6) == Size("count_min", 512, 0.01)
    assert size_at_start("count_min", ErrorLimit(0.01, eps_rel=0.01), 0.0, 1e6).amount == 4096  # a tenth of the limit
    assert Size("count_min", 512, 0.01).parameters == {"width": 512, "depth": 5}
    assert Size("hyperloglog", 12, 0.01).parameters == {"precision": 12}
    whole = size_at_start("reservoir", ErrorLimit(0.01, eps_rel=0.001), 1.0, 500)
    assert whole.amount == 500 and whole.entry("op", (0, 1), 100, 500).eps == 0.0  # all are kept


def test_where_no_size_keeps_the_share_the_largest_is_taken():
    tight = ErrorLimit(0.005, eps_rel=0.003)
    size = size_at_start("hyperloglog", tight, 0.1, 1e6)
    assert size.amount == 21 and size.entry("op", (0, 1), 1e6, 10**6).keeps(tight)


@pytest.mark.parametrize("kind", ["hyperloglog", "count_min", "kll"])
def test_a_limit_that_no_size_keeps_is_refused(kind):
    with pytest.raises(ApproximationError, match="count exactly, or allow more"):
        size_at_start(kind, ErrorLimit(0.01, eps_rel=1e-7), 1.0, 1e6)


def test_sizes_can_only_fall_within_a_window():
    size = Size("count_min", 512, 0.01)
    assert shrink(size, 128).entry("op", (0, 1), 10, 1000).eps == 4 * size.entry("op", (0, 1), 10, 1000).eps
    assert shrink(Size("hyperloglog", 12, 0.01), 11).amount == 11
    with pytest.raises(ApproximationError, match="grow at a window's start"):
        shrink(size, 1024)
    with pytest.raises(ApproximationError, match="power of 2"):
        shrink(size, 100)
    with pytest.raises(ApproximationError, match="more than 0"):
        size_at_start("kll", ErrorLimit(0.01, eps_rel=0.1), 1.0, 0)


def test_change_logs_are_refused_where_values_cannot_be_taken_out():
    for kind in RETRACTING:
        refuse_changelog(kind, "users")
    for kind in {*KINDS} - RETRACTING:
        with pytest.raises(ApproximationError, match=f"users: a {kind} sketch cannot take a value out"):
            refuse_changelog(kind, "users")
