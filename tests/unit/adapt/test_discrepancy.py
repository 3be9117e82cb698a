import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from models.adapt.discrepancy import (
    DiscrepancyError,
    Gaussians,
    around_median,
    classes,
    cmmd2,
    median_distance,
    mmd2_biased,
    quartiles,
)

ONE = Gaussians((1.0,))
ELEMENTS = st.floats(-5, 5, width=32)
samples = st.tuples(st.integers(2, 7), st.integers(1, 3)).flatmap(
    lambda s: arrays.arrays("float64", s, elements=ELEMENTS)
)
pairs = st.tuples(st.integers(2, 7), st.integers(2, 7), st.integers(1, 3)).flatmap(
    lambda s: st.tuples(
        arrays.arrays("float64", (s[0], s[2]), elements=ELEMENTS),
        arrays.arrays("float64", (s[1], s[2]), elements=ELEMENTS),
    )
)


def column(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)[:, None]


def mmd2_unbiased(a, b, kernel):
    """MMD² without the pairs of a sample with itself; it averages to 0 under one law."""
    return mean_off(kernel(a, a)) + mean_off(kernel(b, b)) - 2 * kernel(a, b).mean()


def test_mmd_of_two_points_apart():
    both = 2 - 2 * math.exp(-4.5)
    assert float(mmd2_biased(column(0, 0), column(3, 3), ONE)) == pytest.approx(both, abs=1e-12)
    assert float(mmd2_unbiased(column(0, 0), column(3, 3), ONE)) == pytest.approx(1.977782, abs=1e-6)


def test_mmd_of_neighbours_in_both_forms():
    biased, unbiased = (float(f(column(0, 1), column(2, 3), ONE)) for f in (mmd2_biased, mmd2_unbiased))
    assert biased == pytest.approx(1.162376, abs=1e-6)
    assert unbiased == pytest.approx(0.768906, abs=1e-6)
    assert biased - unbiased == pytest.approx(1 - math.exp(-0.5), abs=1e-12)


def test_mmd_of_a_sample_with_itself():
    assert float(mmd2_biased(column(0, 1), column(0, 1), ONE)) == 0
    assert float(mmd2_unbiased(column(0, 1), column(0, 1), ONE)) == pytest.approx(-0.393469, abs=1e-6)


def test_the_median_leaves_out_the_distance_to_oneself():
    assert median_distance(column(0, 1, 2, 3)) == 1.5


def test_the_kernel_falls_with_the_squared_distance():
    assert float(ONE(column(0), column(3))) == pytest.approx(math.exp(-4.5))  # a Laplacian would give exp(−3)
    five = around_median(column(0, 1), column(2, 3))
    assert five.bandwidths == (0.375, 0.75, 1.5, 3.0, 6.0)


def test_cmmd_averages_over_the_classes():
    a, b = column(0, 1, 4, 5), column(0, 2, 4, 6)
    halves = torch.tensor([0, 0, 1, 1])
    assert float(cmmd2(a, b, halves, halves, ONE, least=1)[0]) == pytest.approx(0.196735, abs=1e-6)
    assert float(mmd2_biased(a, b, ONE)) == pytest.approx(0.097062, abs=1e-6)


def test_cmmd_sees_swapped_labels_where_mmd_sees_nothing():
    halves = torch.tensor([0, 0, 1, 1])
    a, b = column(0, 0, 3, 3), column(3, 3, 0, 0)
    assert float(mmd2_biased(a, b, ONE)) == 0
    assert float(cmmd2(a, b, halves, halves, ONE, least=1)[0]) == pytest.approx(1.977782, abs=1e-6)


def test_classes_share_the_quartiles_of_the_source():
    source = torch.arange(1, 9, dtype=torch.float64) / 10
    edges = quartiles(source)
    assert edges.tolist() == pytest.approx([0.275, 0.45, 0.625])
    assert classes(source, edges).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    target = torch.tensor([0.15, 0.28, 0.95, 0.45], dtype=torch.float64)
    assert classes(target, torch.tensor([0.275, 0.45, 0.625], dtype=torch.float64)).tolist() == [0, 1, 3, 2]


def test_without_a_shared_class_cmmd_is_zero_and_still_has_a_gradient():
    a = column(0, 1).requires_grad_()
    value, shared = cmmd2(a, column(2, 3), torch.tensor([0, 0]), torch.tensor([1, 1]), ONE)
    value.backward()
    assert (float(value.detach()), shared) == (0.0, 0)
    assert a.grad is not None and float(a.grad.abs().sum()) == 0


@settings(max_examples=40, deadline=None)
@given(pairs)
def test_biased_mmd_is_a_distance_of_multisets(pair):
    a, b = (torch.from_numpy(part) for part in pair)
    kernel = around_median(a, b)
    value = float(mmd2_biased(a, b, kernel))
    assert value >= -1e-12
    assert float(mmd2_biased(b, a, kernel)) == pytest.approx(value, abs=1e-12)
    assert float(mmd2_biased(a.flip(0), b.flip(0), kernel)) == pytest.approx(value, abs=1e-12)
    assert float(mmd2_biased(a + 0.5, b + 0.5, kernel)) == pytest.approx(value, abs=1e-9)
    assert float(mmd2_biased(a, a.flip(0), kernel)) == pytest.approx(0, abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(pairs)
def test_both_forms_differ_by_what_the_diagonal_weighs(pair):
    a, b = (torch.from_numpy(part) for part in pair)
    off = [1 - float(mmd2_off) for mmd2_off in (mean_off(ONE(a, a)), mean_off(ONE(b, b)))]
    apart = float(mmd2_biased(a, b, ONE) - mmd2_unbiased(a, b, ONE))
    assert apart == pytest.approx(off[0] / len(a) + off[1] / len(b), abs=1e-12)


def mean_off(square: torch.Tensor) -> torch.Tensor:
    n = len(square)
    return square[~torch.eye(n, dtype=torch.bool)].mean()


@settings(max_examples=40, deadline=None)
@given(pairs)
def test_cmmd_with_one_class_is_mmd_and_names_do_not_matter(pair):
    a, b = (torch.from_numpy(part) for part in pair)
    one_a, one_b = torch.zeros(len(a)), torch.zeros(len(b))
    assert float(cmmd2(a, b, one_a, one_b, ONE, least=1)[0]) == pytest.approx(float(mmd2_biased(a, b, ONE)))
    odd_a, odd_b = torch.arange(len(a)) % 2, torch.arange(len(b)) % 2
    renamed = cmmd2(a, b, 7 - odd_a, 7 - odd_b, ONE, least=1)
    assert float(renamed[0]) == pytest.approx(float(cmmd2(a, b, odd_a, odd_b, ONE, least=1)[0]), abs=1e-12)


def test_the_unbiased_form_averages_to_zero_under_one_law():
    generator = torch.Generator().manual_seed(4)
    draws = torch.randn(400, 2, 12, 2, generator=generator, dtype=torch.float64)
    found = torch.stack([mmd2_unbiased(a, b, ONE) for a, b in draws])
    spread = float(found.std()) / math.sqrt(len(found))
    assert abs(float(found.mean())) < 4 * spread
    assert float(torch.stack([mmd2_biased(a, b, ONE) for a, b in draws]).mean()) > 20 * spread  # it counts itself


@settings(max_examples=20, deadline=None)
@given(st.floats(0.1, 3))
def test_a_step_down_the_gradient_brings_the_samples_nearer(shift):
    a, b = column(0.0, 1.0, 2.0), (column(0.1, 0.9, 2.2) + shift).requires_grad_()
    kernel = around_median(a, b)
    before = mmd2_biased(a, b, kernel)
    before.backward()
    assert b.grad is not None and float(b.grad.abs().sum()) > 0
    after = mmd2_biased(a, b.detach() - 1e-3 * b.grad, kernel)
    assert float(after) < float(before.detach())


@settings(max_examples=40, deadline=None)
@given(samples)
def test_equal_samples_leave_a_finite_gradient(sample):
    a = torch.from_numpy(sample).requires_grad_()
    mmd2_biased(a, torch.from_numpy(sample), around_median(a, a)).backward()
    assert a.grad is not None and bool(torch.isfinite(a.grad).all())


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        (torch.zeros(3, 2), torch.zeros(3, 1), r"\(3, 2\) and \(3, 1\)"),
        (torch.zeros(0, 2), torch.zeros(3, 2), r"\(0, 2\) and \(3, 2\)"),
    ],
)
def test_samples_without_a_distance_are_refused(a, b, said):
    with pytest.raises(DiscrepancyError, match=said):
        mmd2_biased(a, b, ONE)
