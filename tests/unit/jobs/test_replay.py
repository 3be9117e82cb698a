import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from configs.sections import Replay
from pipelines.jobs.replay import BURST, plan_replay
from pipelines.traces.trace import Trace

STEP_S = 1800.0
QUIET = {"burst_share": 0.0, "late_share": 0.0}


def trace_of(rates, lead_s=0.0):
    """Steps of the given rates (records/s), all live but for `lead_s` seconds of the first."""
    times = STEP_S * np.arange(len(rates))
    end = STEP_S * len(rates)
    return Trace("made", times, np.array(rates, dtype=float), STEP_S, 0.0, lead_s, end, 1.0, ())


def integral(rates, speed):
    return sum(rates) * STEP_S / speed


rates = st.lists(st.floats(0, 400).map(lambda r: round(r, 3)), min_size=1, max_size=30).filter(lambda r: max(r) > 1)
options = st.fixed_dictionaries(
    {
        "speed": st.sampled_from([300.0, 720.0, 1800.0]),
        "seed": st.integers(0, 2**32 - 1),
        "late_share": st.floats(0, 0.5),
        "late_s": st.floats(0, 5),
        "keys": st.integers(1, 60),
        "zipf": st.floats(0.1, 2.5),
        "burst_share": st.floats(0, 0.5),
    }
)


@settings(deadline=None, max_examples=60)
@given(rates, options)
def test_plan_holds_together(rates, options):
    replay = Replay(**options)
    plan = plan_replay(trace_of(rates), replay)
    again = plan_replay(trace_of(rates), replay)
    for name in ("send_at", "event_at", "seq", "key"):
        assert np.array_equal(getattr(plan, name), getattr(again, name))
    assert sorted(plan.seq) == list(range(len(plan)))
    assert np.all(np.diff(plan.send_at) >= 0)
    assert np.all((plan.event_at >= 0) & (plan.event_at <= plan.seconds))
    assert np.all((plan.send_at - plan.event_at <= replay.late_s + 1e-9) & (plan.send_at >= plan.event_at))
    assert np.all((plan.key >= 0) & (plan.key < replay.keys))
    if replay.late_s > 1e-3:
        assert plan.late.sum() == round(replay.late_share * len(plan))
    total = integral(rates, replay.speed)
    assert total - 2 <= len(plan) <= BURST * total + 2


@settings(deadline=None, max_examples=40)
@given(rates, st.integers(0, 1000))
def test_every_step_keeps_its_mean(rates, seed):
    replay = Replay(speed=720, seed=seed, **QUIET)
    plan = plan_replay(trace_of(rates), replay)
    per_step = np.bincount((plan.send_at // 2.5).astype(int), minlength=len(rates))[: len(rates)]
    assert np.abs(np.cumsum(per_step) - np.cumsum(rates) * 2.5).max() <= 2
    assert len(plan) == pytest.approx(integral(rates, 720), abs=1.01)


def test_rate_passes_smoothly_from_step_to_step():
    plan = plan_replay(trace_of([100, 100, 100, 300, 300, 300]), Replay(speed=180, **QUIET))  # 10 s a step
    per_second = np.bincount(plan.send_at.astype(int))
    assert per_second[5] == pytest.approx(100, abs=6)
    assert per_second[45] == pytest.approx(300, abs=15)
    assert np.abs(np.diff(per_second)).max() < 60  # a jump would be 200


def test_live_part_may_begin_within_a_step():
    plan = plan_replay(trace_of([100, 100], lead_s=900), Replay(speed=180, **QUIET))
    assert plan.seconds == 15
    assert len(plan) == pytest.approx(1500, abs=1)


def test_bursts_lift_their_seconds_by_half():
    plan = plan_replay(trace_of([200] * 20), Replay(speed=360, burst_share=0.1, late_share=0))
    per_second = np.bincount(plan.send_at.astype(int))
    assert np.sum(np.abs(per_second - 300) <= 2) == 10
    assert np.sum(np.abs(per_second - 200) <= 2) == 90


def test_another_share_of_late_records_changes_neither_keys_nor_arrivals():
    plans = [plan_replay(trace_of([100] * 4), Replay(late_share=share)) for share in (0.0, 0.3)]
    by_seq = [np.argsort(plan.seq) for plan in plans]
    assert np.array_equal(plans[0].event_at[by_seq[0]], plans[1].event_at[by_seq[1]])
    assert np.array_equal(plans[0].key[by_seq[0]], plans[1].key[by_seq[1]])


def test_seed_matters():
    a, b = (plan_replay(trace_of([100] * 4), Replay(seed=seed)) for seed in (1, 2))
    assert not np.array_equal(a.key, b.key)


def test_keys_follow_the_zipf_law():
    plan = plan_replay(trace_of([400] * 40), Replay(keys=3, zipf=1.0))
    assert np.bincount(plan.key) / len(plan) == pytest.approx(np.array([6, 3, 2]) / 11, abs=0.01)


def test_a_surge_lifts_its_own_part_of_the_load_alone():
    surge = {"after_h": 2.0, "minutes": 60, "factor": 1.5}
    plan = plan_replay(trace_of([200] * 10), Replay(speed=360, surge=surge, **QUIET))
    per_hour = np.bincount((plan.event_at / 10).astype(int))  # an hour of the trace is 10 s here
    assert per_hour == pytest.approx([2000, 2000, 3000, 2000, 2000], rel=0.01)
