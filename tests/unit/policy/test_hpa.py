import numpy as np
import pytest

from models.policy.core.choice import Why
from models.policy.core.policy import decide
from models.policy.rules.kubernetes import Hpa, Keda
from tests.fakes.views import a_view, driven


def first(policy, **seen):
    _, choice = decide(policy, policy.fresh(1), a_view(**seen))
    return choice


@pytest.mark.parametrize(
    ("seen", "target"),
    [
        ({"busy": 0.7}, 4),
        ({"busy": 0.76}, 4),
        ({"busy": 0.78}, 5),
        ({"busy": 1.0}, 6),
        ({"busy": 0.7, "executors": 10}, 10),
        ({"busy": 1.0, "executors": 4, "starting": 2, "target": 6}, 6),
        ({"busy": 1.0, "executors": 4, "starting": 1, "target": 5}, 6),
        ({"busy": 1.0, "executors": 6, "leaving": 2, "target": 4}, 6),
        ({"busy": 1.0, "executors": 18}, 20),
    ],
    ids=[
        "on target", "within 10 %", "beyond 10 %", "ceil(4 / 0.7)", "no rounding error", "starting ones count as idle",
        "not enough are starting", "leaving ones are gone", "bound",
    ],
)  # fmt: skip
def test_one_decision(seen, target):
    assert first(Hpa("hpa"), **seen).target[0] == target


def test_up_at_most_doubles_or_adds_four():
    busy = {"busy": 1.0, "most": 20}
    eager = Hpa("hpa", target=0.1)
    assert first(eager, executors=2, **busy).target[0] == 6
    assert first(eager, executors=7, **busy).target[0] == 14


def test_down_waits_for_the_window_and_takes_its_highest():
    looks = np.arange(0, 600, 15.0)
    busy = np.where(looks == 0, 0.7, np.where(looks < 200, 0.35, 0.07))
    views = [a_view(executors=10, now_s=now, busy=b) for now, b in zip(looks, busy, strict=True)]
    asked = driven(Hpa("hpa"), views)[:, 0]
    # 10 at first, then 5 (half of the use), then 1: each only when nothing higher is left of the last 300 s.
    assert (asked[looks <= 300] == 10).all()
    assert 5 in asked and asked[-1] == 1
    for before, after in ((10, 5), (5, 1)):
        last = looks[asked == before][-1] + 15
        began = 0 if after == 5 else 195
        assert 300 <= last - began <= 300 + 300 / 11 + 15


def test_without_a_measurement_the_target_stays():
    choice = first(Hpa("hpa"), busy=np.nan)
    assert choice.target[0] == 4 and choice.why[0] & Why.NOT_A_NUMBER


def test_waiting_for_the_window_is_told():
    assert first(Hpa("hpa"), busy=0.1).why[0] & Why.DELAYED_DOWN


@pytest.mark.parametrize(
    ("lag", "executors", "target"),
    [(1000, 4, 5), (850, 4, 4), (900, 4, 5), (800, 4, 4), (0, 4, 4), (1e9, 4, 8), (1e9, 9, 12)],
    ids=["ceil(5)", "within 10 %", "beyond", "on target", "down waits", "doubles", "no more than partitions"],
)
def test_lag_per_executor(lag, executors, target):
    # One second of one executor is 200 records.
    assert first(Keda("keda"), lag_records=lag, executors=executors, tasks=12).target[0] == target


def test_lag_that_is_gone_scales_down_after_the_window():
    views = [a_view(executors=4, now_s=now, lag_records=100) for now in np.arange(0, 360, 15.0)]
    asked = driven(Keda("keda"), views)[:, 0]
    assert (asked[:20] == 4).all() and asked[-1] == 1


def test_a_longer_threshold_asks_for_fewer():
    assert first(Keda("keda", seconds=2.0), lag_records=2000).target[0] == 5
    assert first(Keda("keda", seconds=1.0), lag_records=2000, executors=8).target[0] == 10
