import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from configs.limits import RecoveryTerms
from models.contract.slow.recovery import (
    Outage,
    backlog_after,
    catch_up_s,
    checkpoint_interval,
    service_for,
    youngs_interval,
)


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


def test_an_outage_by_hand():
    outage = Outage(60, 10, 20)
    assert backlog_after(800, outage) == 72000 and catch_up_s(800, 1000, outage) == 360
    assert service_for(800, outage, 300) == pytest.approx(1066.67, abs=5e-3)
    assert catch_up_s(800, 800, outage) == catch_up_s(800, 0, outage) == math.inf


@given(st.floats(1, 1e5), st.floats(0, 600), st.floats(0, 100), st.floats(0, 100), st.floats(201, 1e4))
def test_with_what_is_asked_for_the_job_is_back_in_time(live, age, detection, restart, rto):
    outage = Outage(age, detection, restart)
    service = service_for(live, outage, rto) * (1 + 1e-9)
    assert outage.stopped_s + catch_up_s(live, service, outage) <= rto * (1 + 1e-3)


def test_no_capacity_shortens_a_restart():
    with pytest.raises(ValueError, match="rto_s=30: detection and restart take 30 s"):
        service_for(800, Outage(60, 10, 20), 30)
