import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.twin.experiment.frontier import pareto_frontier
from models.twin.sim.arrivals import draw_arrivals, fill_gaps, rates_per_second, subtract_offset
from models.twin.sim.job import TwinError


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=12), st.sampled_from([1, 7, 60]))
def test_every_step_keeps_its_mean_and_no_rate_is_negative(values, step_s):
    every = rates_per_second(np.array(values), step_s)
    assert every.shape == (len(values) * step_s,) and (every >= 0).all()
    assert every.reshape(-1, step_s).mean(axis=1) == pytest.approx(np.array(values), rel=1e-6, abs=1e-6)


def test_a_constant_load_stays_constant():
    assert rates_per_second(np.full(5, 40.0), 60) == pytest.approx(np.full(300, 40.0))


def test_missing_steps_lie_on_a_line():
    assert fill_gaps(np.array([10.0, np.nan, 30.0])).tolist() == [10, 20, 30]


@pytest.mark.parametrize("values", [[1.0, -2.0, 3.0], [1.0, np.inf, 2.0], [np.nan, 5.0]])
def test_what_is_no_load_is_named(values):
    with pytest.raises(TwinError, match=r"step 1|known steps"):
        fill_gaps(np.array(values))


def test_a_restored_range_keeps_the_shape():
    low = subtract_offset(np.array([100.0, 150.0, 200.0]))
    assert low.tolist() == pytest.approx([5, 55, 105])


def test_draws_have_the_mean_and_the_dispersion_of_poisson():
    records = np.diff(draw_arrivals(np.full(40_000, 50.0), 1))
    assert records.mean() == pytest.approx(50, rel=0.02)
    assert records.var() / records.mean() == pytest.approx(1.0, rel=0.05)
    assert (draw_arrivals(np.full(50, 5.0), 1) == draw_arrivals(np.full(50, 5.0), 1)).all()


def test_the_frontier_keeps_what_nothing_beats():
    violation, cost = pareto_frontier(np.array([0.1, 0.01, 0.05, 0.02]), np.array([5.0, 9.0, 9.5, 7.0]))
    assert violation.tolist() == [0.01, 0.02, 0.1] and cost.tolist() == [9, 7, 5]
