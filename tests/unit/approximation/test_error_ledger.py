"""The ledger: what entries say, how errors go on, which changes of a size a contract admits."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.contract.terms import ErrorLimit
from models.replication.approximation.ledger import LedgerEntry, linear, mean_value_bound, smooth
from models.replication.approximation.plan import SmoothFunction, WeightedSum, admit, propagate
from models.replication.approximation.refusal import ApproximationError

WINDOW = (0, 60_000)
NUMBERS = st.floats(-50, 50)


def entry(operator, estimate, eps, pf=0.01, window=WINDOW, total=100):
    return LedgerEntry(operator, window, estimate, eps, pf, total)


def steepest_square(low, high):
    return 2 * max(abs(low), abs(high))


def test_the_worked_example_of_a_square():
    """Around the true y = 10 half an eps to each side gives the printed bound; around an estimate the double width."""
    assert mean_value_bound(0.5, steepest_square, 10.0, 0.5) == 10.5
    assert abs(10.5**2 - 10**2) == 10.25 <= 10.5
    squared = smooth("area", lambda y: y * y, steepest_square, entry("side", 10.0, 0.5))
    assert (squared.estimate, squared.eps, squared.pf) == (100.0, 11.0, 0.01)


def test_the_worked_example_of_a_sum():
    entries = {"a": entry("a", 1000.0, 100.0, 0.01), "b": entry("b", 400.0, 50.0, 0.02)}
    total = linear("total", {"a": 1.0, "b": 1.0}, entries)
    assert (total.estimate, total.eps, total.pf, total.total) == (1400.0, 150.0, pytest.approx(0.03), 200)
    apart = linear("apart", {"a": 1.0, "b": -2.0}, entries)
    assert (apart.estimate, apart.eps) == (200.0, 200.0)


@given(st.lists(st.tuples(NUMBERS, NUMBERS, st.floats(0, 5), st.floats(-1, 1)), min_size=1, max_size=5))
def test_a_linear_bound_holds_whatever_the_truth_is_within_its_inputs(terms):
    entries = {str(i): entry(str(i), estimate, eps) for i, (_, estimate, eps, _) in enumerate(terms)}
    out = linear("out", {str(i): weight for i, (weight, *_) in enumerate(terms)}, entries)
    truth = sum(weight * (estimate + eps * at) for weight, estimate, eps, at in terms)
    assert abs(out.estimate - truth) <= out.eps + 1e-9


@given(NUMBERS, st.floats(0, 5), st.floats(-1, 1))
def test_a_smooth_bound_holds_wherever_the_truth_is(estimate, eps, at):
    truth = estimate + eps * at
    squared = smooth("out", lambda y: y * y, steepest_square, entry("in", estimate, eps))
    assert abs(squared.estimate - truth**2) <= squared.eps + 1e-9
    waved = smooth("out", math.sin, lambda low, high: 1.0, entry("in", estimate, eps))
    assert waved.holds(math.sin(truth)) or abs(waved.estimate - math.sin(truth)) <= waved.eps + 1e-12


def test_entries_keep_a_limit_in_its_unit_or_relative_and_with_its_probability():
    one = entry("users", 200.0, 10.0, 0.01)
    assert one.keeps(ErrorLimit(0.01, eps_abs=10.0)) and not one.keeps(ErrorLimit(0.009, eps_abs=10.0))
    assert one.keeps(ErrorLimit(0.01, eps_rel=0.05)) and not one.keeps(ErrorLimit(0.01, eps_rel=0.049))
    assert not entry("users", 0.0, 1.0).keeps(ErrorLimit(0.01, eps_rel=0.9))
    assert entry("users", 0.0, 0.0).keeps(ErrorLimit(0.01, eps_rel=0.1))
    assert one.holds(190.0) and not one.holds(189.9)
    for eps, pf in ((-1.0, 0.1), (math.nan, 0.1), (1.0, 1.1)):
        with pytest.raises(ApproximationError, match="a probability"):
            entry("x", 1.0, eps, pf)


PLAN = {
    "total": WeightedSum({"views": 1.0, "clicks": 1.0}),
    "area": SmoothFunction("total", lambda y: y * y, steepest_square),
    "other": WeightedSum({"clicks": 2.0}),
}
ENTRIES = {"views": entry("views", 10.0, 0.5), "clicks": entry("clicks", 0.0, 0.0)}


def test_errors_go_through_all_that_reads_them_in_whatever_order_it_is_named():
    known = propagate(ENTRIES, dict(reversed(PLAN.items())))
    assert {name: one.eps for name, one in known.items()} == {
        "views": 0.5, "clicks": 0.0, "total": 0.5, "area": 11.0, "other": 0.0,
    }  # fmt: skip
    assert known["area"].pf == pytest.approx(0.02)


def test_a_change_is_admitted_only_if_every_ledger_downstream_stays_under_its_limit():
    limits = {"views": ErrorLimit(0.05, eps_abs=2.0), "area": ErrorLimit(0.05, eps_abs=30.0)}
    assert admit(ENTRIES, PLAN, entry("views", 10.0, 1.0), limits).admitted  # 1 * 2 * 12 = 24
    assert admit(ENTRIES, PLAN, entry("views", 10.0, 1.2), limits).admitted  # 1.2 * 2 * 12.4 = 29.76
    refused = admit(ENTRIES, PLAN, entry("views", 10.0, 1.5), limits)
    assert not refused.admitted and [*refused.broken] == ["area"]
    assert refused.broken["area"] == "area: error 39 (0.39 of it) at pf 0.02, the limit is 30 at pf 0.05"
    # What it does not read is not its fault.
    assert admit(ENTRIES, PLAN, entry("views", 10.0, 1.0), {"other": ErrorLimit(0.001, eps_rel=0.1)}).admitted


def test_plans_that_mean_nothing_are_refused():
    with pytest.raises(ApproximationError, match="cycle"):
        propagate(ENTRIES, {"a": WeightedSum({"b": 1.0}), "b": WeightedSum({"a": 1.0})})
    with pytest.raises(ApproximationError, match="no entry"):
        propagate(ENTRIES, {"a": WeightedSum({"nobody": 1.0})})
    with pytest.raises(ApproximationError, match="its own name"):
        propagate(ENTRIES, {"views": WeightedSum({"clicks": 1.0})})
    with pytest.raises(ApproximationError, match="has no entry"):
        admit(ENTRIES, PLAN, entry("nobody", 1.0, 1.0), {})
    with pytest.raises(ApproximationError, match="entries of one"):
        linear("x", {"a": 1.0, "b": 1.0}, {"a": entry("a", 1, 1), "b": entry("b", 1, 1, window=(1, 2))})
    with pytest.raises(ApproximationError, match="ledger has"):
        linear("x", {"z": 1.0}, ENTRIES)
