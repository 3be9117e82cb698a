"""How long a replay's tasks may be, by the contract of the job that they run beside."""

import pytest

from configs.contract import Contract
from models.backfill.live.task_target import task_target_s


@pytest.mark.parametrize(("target_s", "paths", "expected_s"), [
    (6.0, [], 0.3),
    (6.0, [{"quantile": 0.99, "max_ms": 4000}, {"quantile": 0.5, "max_ms": 3000}], 0.15),
    (6.0, [{"quantile": 0.99}, {"quantile": 0.5, "max_ms": 20_000}], 0.3),  # the promise's own limit
    (6.0, [{"class": "replay", "quantile": 0.9, "max_ms": 1000}], 0.3),  # a replay waits for nobody here
    (30.0, [], 1.5),
    (60.0, [], 2.0),
    (1.0, [], 0.1),
])  # fmt: skip
def test_a_twentieth_of_the_tightest_limit_of_live_latency_within_bounds(target_s, paths, expected_s):
    contract = Contract(
        job="orders", latency_target_s=target_s, **({"backpressure": {"paths": paths}} if paths else {})
    )
    assert task_target_s(contract) == pytest.approx(expected_s)
