"""Advice where the answer is known: facts by hand, changes one by one, and simulated jobs with one fault."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from configs.contract import Contract
from models.twin.advice.advise import AS_GOOD, Tried, choose_advice, rank
from models.twin.advice.changes import KINDS, Change, list_changes
from models.twin.advice.facts import BatchTimes, Facts, summarise_times
from models.twin.advice.serve import Cost, hear_last_value, late_shares, serve_each
from models.twin.contract.tried import ContractOutcome
from models.twin.sim.job import TwinError, TwinJob

# Batches of 4 s with 0.4 s of overhead: a slot sustains 90 records/s.
JOB = TwinJob(0.4, 0.01, most=6, tasks=12, trigger_s=4.0, startup_s=(10.0,), latency_target_s=14.0)
NOTHING = Facts({}, None, None, None, None, None, None)


def contract(**fields):
    planning = {"overhead_s": 0.4, "per_record_s": 0.01, "lead_s": 10.0, "batch_s": 4.0, "scale_down_delay_s": 20}
    return Contract(job="j", executors={"min": 1, "max": 6}, latency_target_s=14, error_budget=0.05,
                    planning=planning | fields)  # fmt: skip


def times(**known):
    return BatchTimes(**{name: np.array(known.get(name, [np.nan] * 3), float) for name in BatchTimes._fields})


def waves(high):
    seconds = np.arange(600)
    return np.concatenate([[0.0], np.cumsum(high * (0.6 - 0.4 * np.cos(seconds * 2 * np.pi / 300)))])


def test_facts_are_what_one_computes_by_hand():
    found = summarise_times(
        times(
            planning_s=[0.1, 0.3, 0.2], state_commit_s=[1.2, 1.2, 1.2], run_s=[10, 20, 10], gc_s=[1, 4, 3],
            sink_wait_s=[4, np.nan, 2], spilled_bytes=[0, 5e7, 1e8], task_median_s=[1, np.nan, 2],
            task_max_s=[3, np.nan, 10],
        ), np.array([2, 2, 4]), cores=1, tasks=9,
    )  # fmt: skip
    # 9 tasks: on 2 slots five waves of 1.8, on 4 slots three of 3.
    assert found.phases == {"planning_s": pytest.approx(0.2), "state_commit_s": pytest.approx(1.2 / 1.8)}
    assert found.skew == 4.0 and found.parallel == 3.0 and found.skewed  # medians of 3 and 5; 1 + 8 / 4
    assert found.gc_share == pytest.approx(8 / 40) and found.wait_share == pytest.approx(6 / 20)
    assert found.spill_share == pytest.approx(2 * 1.5e8 / 100e6 / 40) and found.spilled_bytes == pytest.approx(5e7)


def test_a_promise_is_kept_by_who_uses_all_of_its_budget():
    """Three late seconds of 150 in which anything is produced, of 240 and of 550, are 2 %, in each future."""
    for seconds in (240, 550):
        arrived = np.concatenate([[0.0], np.minimum(np.arange(1.0, seconds + 1), 150.0)])
        late = late_shares(SimpleNamespace(violation=np.full(6, 3 / seconds)), arrived)
        promised = Contract(job="j", error_budget=0.02)
        assert ContractOutcome(promised, late, 0 * late, 1, seconds).kept


def test_without_reports_there_are_no_facts_and_only_settings_are_tried():
    assert summarise_times(times(), np.full(3, 2.0), 1, 9) == NOTHING
    assert {one.kind for one in list_changes(JOB, contract(), NOTHING, 12)} == {"ceiling", "trigger"}


def test_what_is_usual_is_not_looked_into_and_what_is_not_is_taken_away():
    usual = Facts({"log_s": 0.3}, 1.4, 9.0, 0.05, 0.0, 0.0, 0.15)
    assert {one.kind for one in list_changes(JOB, contract(), usual, 12)} == {"ceiling", "trigger"}
    odd = Facts({"log_s": 0.9}, 1.4, 9.0, 0.3, 0.15, 1e8, 0.5)
    found = {one.kind: one for one in list_changes(replace(JOB, overhead_s=1.0), contract(), odd, 12)}
    assert found["memory"].job.per_record_s == pytest.approx(0.01 * 0.6)  # 25 % of garbage too much, 15 % of spill
    assert found["sink"].job.per_record_s == pytest.approx(0.01 * 0.6)
    assert found["overhead"].job.overhead_s == pytest.approx(0.4) and found["overhead"].told["phase"] == "log_s"


def test_a_skewed_key_is_not_helped_by_partitions_and_a_ceiling_takes_its_tasks_along():
    skewed = NOTHING._replace(skew=4.0, parallel=3.0)
    kinds = {one.kind: one for one in list_changes(replace(JOB, tasks=3), contract(), skewed, 9)}
    assert "partitions" not in kinds and "ceiling" not in kinds and kinds["skew"].job.tasks == 9
    few = {one.kind: one.job.tasks for one in list_changes(replace(JOB, tasks=4), contract(), NOTHING, 4)}
    assert few["partitions"] == 8 and "ceiling" not in few
    full = [one for one in list_changes(replace(JOB, tasks=6), contract(), NOTHING, 6) if one.kind == "ceiling"]
    assert [(one.job.most, one.job.tasks, one.contract.executors.max) for one in full] == [(9, 9, 9), (12, 12, 12)]


def tried(kind, gain):
    return Tried(Change(kind, {}, JOB, contract()), Cost(0.0, 1.0, 1.0), gain)


@given(st.lists(st.tuples(st.sampled_from(KINDS), st.floats(-1, 0.999)), unique_by=lambda pair: pair[0]))
def test_the_first_leaves_about_as_little_as_the_best_and_the_others_follow_by_gain(pairs):
    found = rank([tried(*pair) for pair in pairs])
    assert sorted(one.gain for one in found) == sorted(gain for _, gain in pairs)
    if found:
        assert 1 - found[0].gain <= AS_GOOD * (1 - max(one.gain for one in found)) + 1e-12
        gains = [one.gain for one in found[1:]]
        assert gains == sorted(gains, reverse=True)


def test_the_cost_is_weighed_by_how_often_the_budget_is_overspent():
    assert Cost(0.07, 100.0, 1.0).weighed(0.05) == 100.0
    assert Cost(0.30, 100.0, 1.0).weighed(0.05) == pytest.approx(400.0)


@pytest.mark.parametrize(
    ("job", "planned", "high", "first"),
    [
        (JOB, {}, 400, "nothing"),
        (replace(JOB, tasks=2), {}, 400, "partitions"),
        (JOB, {}, 900, "ceiling"),
        (replace(JOB, overhead_s=1.2, trigger_s=1.5), {"batch_s": 1.5, "overhead_s": 1.2}, 250, "trigger"),
    ],
)
def test_the_one_thing_that_is_wrong_with_a_job_comes_first(job, planned, high, first):
    found = choose_advice(job, contract(**planned), waves(high), NOTHING, job.tasks)
    assert found.first == first, found


def test_where_nothing_keeps_the_promise_another_promise_is_named():
    found = choose_advice(replace(JOB, latency_target_s=2.0), contract(), waves(400), NOTHING, 12)
    assert found.budget is not None and 0.5 < found.budget <= found.now.late


def test_a_load_that_rests_half_of_the_time_is_late_by_its_seconds_of_production():
    rests = np.concatenate([waves(400), np.full(600, waves(400)[-1])])
    found = choose_advice(replace(JOB, latency_target_s=0.1), contract(), rests, NOTHING, 12)
    assert found.now.late == found.budget == 1


def test_a_load_too_short_for_a_forecast_says_how_long_it_must_be():
    with pytest.raises(TwinError, match=r"3 s of load: \d+ are needed"):
        hear_last_value(np.arange(4.0), contract())


def test_a_steady_load_takes_what_it_takes():
    arrived = np.arange(901) * 150.0
    one, ahead = [(JOB, contract())], hear_last_value(arrived, contract())
    (cost,) = serve_each(one, arrived, ahead)
    assert [cost] == serve_each(one, arrived, ahead)
    assert cost.late == 0 and 2 * 900 <= cost.executor_s < 3 * 900  # two carry 180 records/s


def test_jobs_that_share_a_simulation_come_to_what_each_comes_to_alone():
    arrived = waves(400)[:301]
    quick = replace(JOB, trigger_s=2.0), contract(batch_s=2.0)
    every = [(JOB, contract()), quick, (replace(JOB, tasks=3), contract(overhead_s=0.3))]
    ahead = hear_last_value(arrived, contract())
    together = serve_each(every, arrived, ahead)
    assert together == [serve_each([one], arrived, ahead)[0] for one in every] and len(set(together)) == 3
