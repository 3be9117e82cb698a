import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.contract.objective import Machine, energy_joules, objective, over_drift, over_upper, under_lower
from tests.fakes.shared_job import shared_terms


def test_the_objective_by_hand():
    assert objective(shared_terms(), 23.02585, 6, 0.01, 800) == pytest.approx(0.75129, abs=5e-6)
    only_goodput = shared_terms(weights={"alpha": 0, "beta": 0, "gamma": 0, "eta": 2})
    assert objective(only_goodput, 1e9, 1e9, 1e9, 500) == -1


def test_constraints_by_hand():
    assert over_upper(23.0259, 20) == pytest.approx(0.246246, abs=2e-6)
    assert over_upper(18, 20) == pytest.approx(0) and over_upper(20, 20) == pytest.approx(-math.log(0.9))
    assert under_lower(0.45, 0.9) == pytest.approx(math.log(2)) and under_lower(0.95, 0.9) < 0
    assert over_drift(30, 0, 1000) == pytest.approx(0.03) and over_drift(-30, 10, 1000) == pytest.approx(-0.04)


@given(st.floats(0, 1e300), st.floats(1e-9, 1e9))
def test_constraints_are_clipped_and_rise_with_what_they_limit(value, limit):
    assert -2 <= over_upper(value, limit) <= over_upper(2 * value, limit) <= 2
    assert -2 <= under_lower(2 * value, limit) <= under_lower(value, limit) <= 2
    assert -2 <= over_drift(value, limit, 1) <= 2
    assert over_upper(0.0, limit) == -2 and under_lower(0.0, limit) == 2


def test_energy_by_hand():
    assert energy_joules([Machine(100, 150, 0.6)], 10) == pytest.approx(1900)
    assert energy_joules([Machine(100, 150, 0.6)] * 3, 10) == pytest.approx(5700) and energy_joules([], 10) == 0
