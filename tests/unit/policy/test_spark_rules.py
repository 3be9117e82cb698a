import numpy as np
import pytest

from models.policy.core.policy import decide
from models.policy.rules.spark import SparkDstream, SparkMicrobatch
from tests.fakes.views import a_view, driven


@pytest.mark.parametrize(
    ("seen", "target"),
    [
        ({"batch_s": 1.8}, 5),
        ({"batch_s": 5.1}, 7),
        ({"batch_s": 4.9}, 6),
        ({"batch_s": 1.79}, 4),
        ({"batch_s": 0.61}, 4),
        ({"batch_s": 0.6}, 3),
        ({"batch_s": 0.6, "executors": 1}, 1),
        ({"batch_s": np.nan}, 4),
        ({"batch_s": np.nan, "in_batch": 0}, 3),
        ({"batch_s": 2.0, "executors": 4, "starting": 3, "target": 7}, 5),
    ],
    ids=["0.9", "round(2.55)", "round(2.45)", "below 0.9", "above 0.3", "0.3", "one stays", "none ended", "no batches",
         "adds to those that run"],
)  # fmt: skip
def test_the_ratio_rule_of_dstreams(seen, target):
    _, choice = decide(SparkDstream("spark_dstream", 2.0), {}, a_view(**seen))
    assert choice.target[0] == target


def test_micro_batches_that_are_late_ask_for_steps_that_double():
    policy = SparkMicrobatch("spark_microbatch", 2.0)
    late = [a_view(now_s=2.0 * k, batch_s=2.5) for k in range(4)]
    assert driven(policy, late)[:, 0].tolist() == [5, 7, 11, 19]
    then_not = [*late[:2], a_view(now_s=4.0, batch_s=1.5), a_view(now_s=6.0, batch_s=2.5)]
    assert driven(policy, then_not)[:, 0].tolist() == [5, 7, 7, 8]


@pytest.mark.parametrize(
    ("seen", "target"),
    [
        ({"batch_s": 2.5, "executors": 12, "tasks": 12}, 12),
        ({"batch_s": 0.5, "executors": 20}, 18),
        ({"batch_s": 0.5}, 3),
        ({"batch_s": np.nan, "in_batch": 1.0, "since_s": 15.0}, 5),
        ({"batch_s": np.nan, "in_batch": 0.0}, 3),
        ({"batch_s": 0.5, "executors": 1}, 1),
    ],
    ids=["a slot per task", "a tenth goes", "at least one", "one runs for long", "none runs", "one stays"],
)
def test_micro_batches(seen, target):
    policy = SparkMicrobatch("spark_microbatch", 2.0)
    _, choice = decide(policy, policy.fresh(1), a_view(**seen))
    assert choice.target[0] == target
