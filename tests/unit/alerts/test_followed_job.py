"""What is known of a job after its messages, and what is exposed of it."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from configs.contract import Contract, Executors
from models.alerts.followed import Followed, take
from models.alerts.knowledge import DriftSeen, Ingested, Knowledge, LakeSeen
from models.alerts.metric import BY_NAME
from models.alerts.samples import samples_of
from models.policy.core.budget import Account, Promise
from models.pool.state import PoolState
from tidecast.messages import Decision, Forecast, Heartbeat, MetricSample, Outcome

NOW = 1.8e9
CONTRACT = Contract(job="orders", latency_target_s=10, error_budget=0.05, executors=Executors(min=2, max=6))
SAMPLE = MetricSample(
    "orders", "interval", NOW, NOW, arrival_rps=410.0, lag_records=37, executors=3, pending_executors=1, mode="act"
)
BATCH = MetricSample(
    "orders", "batch", NOW, NOW, batch_rows=9, batch_s=2.0, latency_p50_s=1.0, latency_p95_s=2.0, latency_max_s=3.0
)
DECISION = Decision(
    "d7", "orders", NOW, NOW, 1.0, "act", "mpc", 4, "up", ["scale_up", "shortage"],
    {"promise": {"late_s": 3024.0}}, {},
)  # fmt: skip
FORECAST = Forecast(
    "orders", NOW, NOW, 1.0, 1800.0, [0.1, 0.6, 0.9], [[1.0, 2.0, 3.0], [7.0, 8.0, 9.0]], "orders-forecaster", "3",
    "champion", "blend", 900, 1,
)  # fmt: skip


def after(*messages, fresh=True):
    job = Followed()
    for message in messages:
        job = take(job, message, CONTRACT, fresh)
    return job


def nobody(job, error):
    raise AssertionError(f"{job}: {error!r}") from error


def exposed(job, **known):
    """Values by metric and labels beside the job's."""
    found = samples_of(Knowledge({"orders": job}, {"orders": CONTRACT}, **known), NOW, nobody)
    return {
        (
            name.removeprefix("tidecast_").removeprefix("job_"),
            *(v for k, v in one.labels.items() if k != "job"),
        ): one.value
        for name, samples in found.items()
        for one in samples
    }


def test_a_job_is_exposed_as_it_was_measured_and_decided():
    found = exposed(after(SAMPLE, BATCH, DECISION, FORECAST))
    assert found == {
        ("contract_valid",): 1, ("latency_target_seconds",): 10, ("error_budget_ratio",): 0.05,
        ("least_executors",): 2, ("most_executors",): 6, ("mode", "act"): 1, ("arrival_records_per_second",): 410,
        ("forecast_records_per_second",): 2, ("lag_records",): 37, ("executors",): 3, ("pending_executors",): 1,
        ("target_executors",): 4, ("latency_seconds", "0.5"): 1, ("latency_seconds", "0.95"): 2,
        ("latency_seconds", "1"): 3, ("window_late_seconds",): 3024,
        ("error_budget_left_ratio",): pytest.approx(0.9), ("burn_rate_limit",): 6, ("late_seconds_total",): 0,
        ("production_seconds_total",): 0, ("decisions_total",): 1, ("shortage",): 1, ("response_changed",): 0,
        ("metric_timestamp_seconds",): NOW,
        ("decision_timestamp_seconds",): NOW, ("forecast_timestamp_seconds",): NOW,
        ("heartbeat_timestamp_seconds", "autoscaler"): NOW, ("heartbeat_timestamp_seconds", "serving"): NOW,
        ("champion_info", "orders-forecaster", "3", "blend"): 1, ("follower_timestamp_seconds",): NOW,
    }  # fmt: skip


def test_a_job_of_which_nothing_is_heard_has_its_contract_alone():
    found = exposed(Followed())
    assert ("executors",) not in found and ("burn_rate", "long") not in found
    assert found[("most_executors",)] == 6
    assert ("heartbeat_timestamp_seconds", "autoscaler") not in found, "it may never have run"


def test_an_autoscaler_that_was_never_heard_counts_as_silent_since_the_metrics_began():
    found = exposed(after(replace(SAMPLE, wall_time=NOW - 59), SAMPLE))
    assert found[("heartbeat_timestamp_seconds", "autoscaler")] == NOW - 59
    assert ("heartbeat_timestamp_seconds", "serving") not in found, "who wants no forecasts has none"


def test_a_sign_of_life_that_names_no_decision_is_none_of_a_job_that_is_decided_for():
    beat = Heartbeat("orders", "autoscaler", NOW, NOW + 5, 1.0, "d7", NOW, 4, 3)
    nameless = Heartbeat("orders", "autoscaler", NOW, NOW + 12, 1.0)
    found = exposed(after(replace(SAMPLE, wall_time=NOW - 59), beat, nameless))
    assert found[("heartbeat_timestamp_seconds", "autoscaler")] == NOW + 5


def test_a_job_that_comes_back_is_not_said_to_be_undecided_or_deaf_at_once():
    job = after(replace(DECISION, executors=5), SAMPLE)
    assert job.unfollowed_at == NOW
    again = take(job, replace(SAMPLE, wall_time=NOW + 3600), CONTRACT, True)
    assert again.unfollowed_at == NOW + 3600 == again.measured_since
    assert exposed(again)[("heartbeat_timestamp_seconds", "autoscaler")] == NOW + 3600


def test_broker_ingest_lake_and_drift_are_exposed():
    found = exposed(
        Followed(), broker_up=False, ingests={"metrics": Ingested(5.0, 3, 2, None)}, refused={"serving": 4},
        lake=LakeSeen({"metrics": 7}, {"metrics": 1}, 6, 9), drifts={"orders": DriftSeen(8.0, 1.3)},
        failed={"h": 2},
    )  # fmt: skip
    assert [found[name] for name in (
        ("broker_up",), ("ingest_timestamp_seconds", "metrics"), ("ingest_stored_records", "metrics"),
        ("ingest_quarantined_records", "metrics"), ("refused_records_total", "serving"), ("lake_size_bytes", "metrics"),
        ("lake_files", "metrics"), ("lake_day_growth_bytes",), ("lake_disk_free_bytes",), ("drift_ratio",),
        ("drift_timestamp_seconds",), ("webhook_failures_total", "h"),
    )] == [0, 5, 3, 2, 4, 7, 1, 6, 9, 1.3, 8, 2]  # fmt: skip
    assert ("ingest_waiting_records", "metrics") not in found


def test_a_pool_is_exposed_as_it_was_told_with_what_its_jobs_may_have():
    share = {"job": "orders", "cores": 2, "wanted": 5, "granted": 3, "granted_replay": 1}
    state = PoolState("shared", 7.0, "divided", cores=8, usable=6.5, shares=[share], enough_cores=10, short_from=9.0)
    found = exposed(Followed(), pools={"shared": state})
    assert {name[0]: value for name, value in found.items() if name[1:] == ("shared",)} == {
        "pool_cores": 8, "pool_usable_cores": 6.5, "pool_granted_cores": 8, "pool_short_cores": 4,
        "pool_shortage_timestamp_seconds": 9, "pool_division_timestamp_seconds": 7, "wanted_executors": 5,
        "granted_executors": 3,
    }  # fmt: skip
    enough = exposed(Followed(), pools={"shared": PoolState("shared", 7.0, "waits", cores=8, usable=8.0)})
    assert enough[("pool_short_cores", "shared")] == 0
    assert ("pool_shortage_timestamp_seconds", "shared") not in enough


def test_late_seconds_are_counted_as_the_autoscaler_counts_them():
    batches = [replace(BATCH, wall_time=NOW + 10 * n, latency_max_s=25.0 if n % 3 else 3.0) for n in range(40)]
    account = Account()
    for batch in batches:
        account = account.add_batch(Promise.of(CONTRACT), batch.wall_time, batch.latency_max_s, 1.0)
    job = after(*batches, fresh=True)
    assert job.account.burn(0.05) == account.burn(0.05)
    assert (job.late_s, job.production_s) == (account.late_s, account.seconds) and account.late_s > 0


def test_to_what_a_decision_says_is_added_what_was_late_after_it_alone():
    late = [replace(BATCH, wall_time=NOW + 10 * n, latency_max_s=25.0) for n in range(20)]
    decision = replace(DECISION, wall_time=NOW + 95)
    assert after(decision, *late).window_late_s(Promise.of(CONTRACT)) == 3024 + 100
    assert after(*late[:10], decision, *late[10:]).window_late_s(Promise.of(CONTRACT)) == 3024 + 100
    assert after(*late).window_late_s(Promise.of(CONTRACT)) == after(*late).account.late_s > 0


def test_nothing_burns_while_nothing_arrives_and_nothing_waits():
    batches = [replace(BATCH, wall_time=NOW + 10 * n, latency_max_s=25.0) for n in range(20)]
    assert exposed(after(*batches, SAMPLE))[("burn_rate", "long")] > 6
    rest = replace(SAMPLE, wall_time=NOW + 300, arrival_rps=0.0, lag_records=0)
    assert ("burn_rate", "long") not in exposed(after(*batches, SAMPLE, rest))


@pytest.mark.parametrize(
    ("sample", "decision", "unfollowed"),
    [
        (SAMPLE, DECISION, False),
        (SAMPLE, replace(DECISION, executors=5), True),
        (SAMPLE, replace(DECISION, executors=2), True),
        (replace(SAMPLE, mode="observe"), replace(DECISION, executors=5), False),
        (replace(SAMPLE, mode="freeze"), replace(DECISION, executors=5), False),
        (SAMPLE, replace(DECISION, executors=5, mode="observe"), False),
        (replace(SAMPLE, executors=None), replace(DECISION, executors=5), False),
    ],
)
def test_a_decision_is_followed_where_as_many_are_asked_for_or_nobody_acts(sample, decision, unfollowed):
    assert (after(decision, sample).unfollowed_at is not None) == unfollowed


def test_since_when_it_is_not_followed_is_kept_until_it_is():
    job = after(replace(DECISION, executors=5), SAMPLE, replace(SAMPLE, wall_time=NOW + 9))
    assert job.unfollowed_at == NOW
    assert take(job, replace(SAMPLE, wall_time=NOW + 10, pending_executors=2), CONTRACT, True).unfollowed_at is None


def test_a_heartbeat_says_what_stands_where_it_was_said_after_the_decision():
    beat = Heartbeat("orders", "autoscaler", NOW, NOW + 5, 1.0, "d8", NOW, 6, 3)
    job = after(DECISION, beat, FORECAST, SAMPLE)
    assert job.target == 6 and job.heard["autoscaler"] == NOW + 5
    assert after(DECISION, replace(beat, wall_time=NOW - 5)).target == DECISION.executors


def test_the_last_repeats_of_a_decision_are_told_beside_the_next_one_and_take_nothing_of_it_back():
    """For seven seconds the number before counted as asked for, and the agent as one that does not obey."""
    last = Heartbeat("orders", "autoscaler", NOW, NOW, 1.0, "d6", NOW - 60, 3, 9)
    for messages in ((DECISION, last, SAMPLE), (last, DECISION, SAMPLE)):
        job = after(*messages)
        assert (job.target, job.unfollowed_at, job.heard["autoscaler"]) == (4, None, NOW)


def test_what_came_last_counts_also_after_a_clock_was_set_back():
    beat = Heartbeat("orders", "autoscaler", NOW, NOW + 5, 1.0, "d7", NOW, 4, 3)
    late = [replace(BATCH, wall_time=NOW - 200 + 10 * n, latency_max_s=25.0) for n in range(20)]
    job = after(*late, SAMPLE, DECISION, replace(beat, by="serving"), beat, FORECAST)
    back = NOW - 3600
    for message in (
        replace(SAMPLE, wall_time=back, executors=5), replace(DECISION, id="d8", wall_time=back, executors=5),
        replace(FORECAST, wall_time=back, version="4"), replace(beat, wall_time=back + 1, executors=5),
        replace(beat, by="serving", wall_time=back + 1),
    ):  # fmt: skip
        job = take(job, message, CONTRACT, True)
    assert (job.sample.executors, job.decision.id, job.target, job.forecast.version) == (5, "d8", 5, "4")
    assert job.heard == {"autoscaler": back + 1, "serving": back + 1} and job.measured_since == back
    counted, window_s = job.late_s, job.window_late_s(Promise.of(CONTRACT))
    for one in late:
        job = take(job, replace(one, wall_time=one.wall_time - 3400), CONTRACT, True)
    assert job.late_s - counted >= 100 and job.window_late_s(Promise.of(CONTRACT)) - window_s >= 100


def test_counts_are_of_what_came_since_the_beginning():
    outcome = Outcome("d7", "orders", NOW, NOW, 1.0, "refused", "no")
    job = after(DECISION, outcome, replace(outcome, status="confirmed"), outcome)
    assert job.decisions == 1 and job.outcomes == {"refused": 2, "confirmed": 1}
    assert after(DECISION, outcome, fresh=False).outcomes == {} and after(DECISION, fresh=False).decisions == 0


@pytest.mark.parametrize("promise", [None, 3, {}, {"late_s": "many"}, {"late_s": -1}, {"late_s": None}])
def test_a_promise_that_is_none_is_left_out(promise):
    assert after(replace(DECISION, inputs={"promise": promise})).promised_at == 0


def test_a_job_with_strange_values_is_left_out_and_reported_and_the_others_stay():
    told = []
    jobs = {
        "a": after(SAMPLE),
        "b": replace(after(FORECAST), forecast=replace(FORECAST, quantiles=[])),
        "c\n": Followed(),
    }
    found = samples_of(Knowledge(jobs), NOW, lambda job, error: told.append(job))
    assert told == ["b"] and {one.labels["job"] for one in found["tidecast_job_contract_valid"]} == {"a", "c\n"}


@given(
    st.lists(
        st.builds(
            MetricSample, st.just("orders"), st.sampled_from(["interval", "batch"]), st.floats(0, 4e9),
            st.floats(0, 4e9), st.floats(1e-6, 1e6), arrival_rps=st.floats(0, 1e9),
            lag_records=st.none() | st.integers(0, 1 << 62), executors=st.none() | st.integers(0, 1 << 62),
            pending_executors=st.none() | st.integers(0, 1 << 62), latency_max_s=st.none() | st.floats(0, 1e15),
            mode=st.none() | st.text(max_size=3),
        )
        | st.builds(
            Decision, st.text(max_size=3), st.just("orders"), st.floats(0, 4e9), st.floats(0, 4e9), st.just(1.0),
            st.sampled_from(["act", "observe"]), st.just("mpc"), st.integers(0, 1 << 62), st.just(""), st.just([]),
            st.just({}) | st.fixed_dictionaries({"promise": st.fixed_dictionaries({"late_s": st.floats(0, 1e300)})}),
            st.just({}),
        ),
        max_size=12,
    )
)  # fmt: skip
def test_whatever_a_border_lets_through_is_exposed_as_declared(messages):
    found = samples_of(Knowledge({"orders": after(*messages)}, {"orders": CONTRACT}), NOW, nobody)
    for name, samples in found.items():
        for sample in samples:
            assert set(sample.labels) == set(BY_NAME[name].labels) and math.isfinite(sample.value)
