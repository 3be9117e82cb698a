import pytest
from hypothesis import given
from hypothesis import strategies as st

from configs.limits import RecoveryTerms
from models.contract.slow.recovery import checkpoint_interval, youngs_interval


def test_interval_by_hand():
    free = checkpoint_interval(2, 3600, RecoveryTerms(rpo_s=600))
    assert free == youngs_interval(2, 3600) == 120 and 2 / free == pytest.approx(0.0167, abs=5e-5)
    clipped = checkpoint_interval(2, 3600, RecoveryTerms(rpo_s=60))
    assert clipped == 60 and 2 / clipped == pytest.approx(0.0333, abs=5e-5)
    assert checkpoint_interval(2, 100, RecoveryTerms(rpo_s=60)) == 40  # 5 % of the time, and not every 20 s
    assert checkpoint_interval(6, 3600, RecoveryTerms(rpo_s=60)) == 60  # though that is 10 % of it


@given(st.floats(0, 100), st.floats(1, 1e7), st.floats(1, 1e4), st.floats(0.001, 0.5))
def test_what_may_be_lost_is_always_kept(cost, mtbf, rpo, overhead):
    found = checkpoint_interval(cost, mtbf, RecoveryTerms(rpo_s=rpo, overhead_max=overhead))
    assert found <= rpo and (found == rpo or cost <= found * overhead * (1 + 1e-9))
