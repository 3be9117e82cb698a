from graphlib import CycleError

import numpy as np
import pytest

from models.policy.core.view import decide
from models.policy.rules.ds2 import Ds2, optimal_parallelism
from tests.fakes.views import a_view

CHAIN = ((0, 1), (1, 2))
TWO_SOURCES = ((0, 2), (1, 2), (2, 3))


# Vectors of strymon-system/ds2, controller/tests/scaling_policy_test.rs (facts only): output of the source, then
# processing and output of Op1, then processing of Op2, and the instances that both need.
@pytest.mark.parametrize(
    ("source", "op1", "op2", "needed"),
    [
        (100, (50, 400), 100, [2, 8]),
        (200, (40, 700), 99, [5, 36]),
        (200, (10, 700), 201, [20, 70]),
    ],
)
def test_vectors_of_a_chain(source, op1, op2, needed):
    found = optimal_parallelism(
        np.ones(3), np.array([0, op1[0], op2], float), np.array([source, op1[1], 200], float), CHAIN
    )
    assert found.tolist() == [1, *needed]


@pytest.mark.parametrize(
    ("source", "op1", "op2", "needed"),
    [
        (100, (50, 400), 100, [4, 16]),
        (200, (40, 700), 99, [10, 71]),
        (200, (10, 700), 201, [40, 140]),
    ],
)
def test_vectors_of_two_sources(source, op1, op2, needed):
    found = optimal_parallelism(
        np.ones(4), np.array([0, 0, op1[0], op2], float), np.array([source, source, op1[1], 200], float), TWO_SOURCES
    )
    assert found.tolist() == [1, 1, *needed]


def test_rates_of_several_runs_at_once():
    outputs = np.array([[100, 400, 200], [200, 700, 200]], float)
    found = optimal_parallelism(np.ones((2, 3)), np.array([[0, 50, 100], [0, 40, 99]], float), outputs, CHAIN)
    assert found.tolist() == [[1, 2, 8], [1, 5, 36]]


def test_more_instances_share_the_rate_and_the_factor_comes_on_top():
    # 4 instances process 400/s together: one does 100/s, 1000/s need 10, and half as many again 15.
    rates = np.array([0, 400], float), np.array([1000, 0], float)
    assert optimal_parallelism(np.array([1.0, 4.0]), *rates, ((0, 1),)).tolist() == [1, 10]
    assert optimal_parallelism(np.array([1.0, 4.0]), *rates, ((0, 1),), 0.5).tolist() == [1, 15]


def test_an_operator_that_did_no_work_has_no_number():
    assert np.isnan(optimal_parallelism(np.ones(2), np.zeros(2), np.array([100.0, 0.0]), ((0, 1),))[1])


def test_a_circle_is_an_error():
    with pytest.raises(CycleError):
        optimal_parallelism(np.ones(2), np.ones(2), np.ones(2), ((0, 1), (1, 0)))


@pytest.mark.parametrize(
    ("seen", "target"),
    [
        # 4 executors at half use process 400/s: one alone does 200/s.
        ({"arrival_rps": 1000}, 5),
        ({"arrival_rps": 1000, "since_change_s": 19.0}, 4),
        ({"arrival_rps": 600}, 4),
        ({"arrival_rps": 400}, 2),
        ({"arrival_rps": 1000, "processed_rps": 0, "busy": 0}, 4),
        ({"arrival_rps": 1e9}, 20),
        ({"arrival_rps": 1000, "lag_records": 1e9}, 5),
    ],
    ids=["up", "warming up", "one fewer is no change", "down", "idle", "bound", "knows no backlog"],
)
def test_the_policy(seen, target):
    _, choice = decide(Ds2("ds2"), {}, a_view(**seen))
    assert choice.target[0] == target
