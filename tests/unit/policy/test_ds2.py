import numpy as np
import pytest

from models.policy.core.policy import decide
from models.policy.rules.ds2 import Ds2, instances_needed
from tests.fakes.views import a_view


# Vectors of strymon-system/ds2, controller/tests/scaling_policy_test.rs (facts only): what arrives at an operator and
# what one instance of it processes, of a source of 100 or 200 (or two of them) and of the operator before it.
@pytest.mark.parametrize(
    ("arrives", "processes", "needed"),
    [(100, 50, 2), (800, 100, 8), (200, 40, 5), (3500, 99, 36), (200, 10, 20), (14_000, 201, 70), (400, 40, 10)],
)
def test_vectors(arrives, processes, needed):
    assert instances_needed(np.ones(1), np.array([processes]), np.array([arrives]), 0.0).tolist() == [needed]


def test_more_instances_share_the_rate_and_the_factor_comes_on_top():
    # 4 instances process 400/s together: one does 100/s, 1000/s need 10, and half as many again 15.
    seen = np.array([4.0]), np.array([400.0]), np.array([1000.0])
    assert [instances_needed(*seen, over).tolist() for over in (0.0, 0.5)] == [[10], [15]]


def test_an_operator_that_did_no_work_has_no_number():
    assert np.isnan(instances_needed(np.ones(1), np.zeros(1), np.array([100.0]), 0.0)[0])


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
