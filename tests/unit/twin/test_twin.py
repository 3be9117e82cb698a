"""The twin's physics: cases worked out by hand, and what must hold for every job, load and sequence of targets."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.policy.core.choice import Choice, make_choice
from models.policy.core.view import Memory, View
from models.twin.sim.given import Load, Looks
from models.twin.sim.job import TwinError, TwinJob, stack
from models.twin.sim.run import SimOutcome, advance, first_executors, set_targets, simulate, summarise
from models.twin.sim.state import begin

SECONDS = 40
JOB = TwinJob(overhead_s=0.5, per_record_s=0.01, most=2, startup_s=(5.3,), cold_s=3.0)


@dataclass(frozen=True)
class Told:
    """Asks for what it was told to, one number per look; the last one holds."""

    targets: tuple[int, ...]
    name: str = "told"

    def fresh(self, runs: int) -> Memory:
        return {"look": np.zeros(runs)}

    def decide(self, memory: Memory, view: View) -> tuple[Memory, Choice]:
        look = int(memory["look"][0])
        target = self.targets[min(look, len(self.targets) - 1)]
        return {"look": memory["look"] + 1}, make_choice(np.full(view.runs, float(target)))


EVERY_S = 5


@dataclass(frozen=True)
class Seen:
    """What became of a run from look to look, of the same second by second, and (SECONDS,) the ends of its seconds."""

    outcome: SimOutcome
    stepped: SimOutcome
    lag: np.ndarray
    seconds: np.ndarray

    def __getattr__(self, name: str) -> np.ndarray:
        return getattr(self.outcome, name)


def run(job: TwinJob, rate: list[float], targets: tuple[int, ...], seed: int = 1) -> Seen:
    """Simulated from look to look, and once more second by second."""
    load = Load(np.concatenate([[0.0], np.cumsum(rate)])[None], np.zeros(1, np.int64))
    jobs, looks, seeds = stack([job]), Looks(every_s=EVERY_S), np.array([seed])
    outcome = simulate(jobs, load, Told(targets), looks, seeds)
    state, seconds = begin(jobs, first_executors(jobs, load, looks), seeds), []
    for now in range(len(rate)):
        if now % EVERY_S == 0:
            set_targets(state, jobs, outcome.targets[now // EVERY_S], now)
        advance(state, jobs, load, now, now + 1)
        seconds.append(state.x[0].copy())
    stepped = summarise(state, jobs, load, outcome.targets, outcome.why)
    return Seen(outcome, stepped, load.arrived[0, 1:] - np.array(seconds)["done"], np.array(seconds))


def seen(found: Seen, name: str) -> np.ndarray:
    return found.lag if name == "lag" else found.seconds[name]


def test_a_batch_per_second_takes_overhead_and_work() -> None:
    # 10 records wait at every whole second; 0.5 + 10 * 0.01 = 0.6 s; the oldest of them is then 1.6 s old
    found = run(replace(JOB, most=1, latency_target_s=1.5), [10.0] * SECONDS, (1,))
    assert found.worst_s[0] == pytest.approx(1.6)
    assert found.executor_s[0] == SECONDS
    assert seen(found, "lag") == pytest.approx(10.0)
    assert found.violation[0] == (SECONDS - 1) / SECONDS  # the last second's records have waited for 1 s at the end
    assert run(replace(JOB, most=1, latency_target_s=1.7), [10.0] * SECONDS, (1,)).violation[0] == 0


@dataclass(frozen=True)
class Counting(Told):
    """Notes the seconds of production that it is told of at each look."""

    counted: list[list[float]] = field(default_factory=list)

    def decide(self, memory: Memory, view: View) -> tuple[Memory, Choice]:
        self.counted.append(view.counted_s.tolist())
        return super().decide(memory, view)


def test_a_promise_is_steered_by_seconds_of_production_as_a_live_jobs_is() -> None:
    always, rests = [10.0] * 20, [3.0, 0.0, 0.0, 1.0, 0.0] * 2 + [0.0] * 5 + [5.0] * 5
    load = Load(np.cumsum([[0.0, *always], [0.0, *rests], [0.0, 0.0, *rests[1:]]], axis=1), np.array([2, 0, 1, 1]))
    told = Counting((1,))
    simulate(stack([JOB] * 4), load, told, Looks(every_s=EVERY_S), np.arange(4))
    assert told.counted == [[0, 1, 1, 1], [1, 5, 2, 2], [2, 5, 2, 2], [0, 5, 0, 0]]


def test_an_idle_job_takes_up_what_came_at_its_next_trigger() -> None:
    # nothing for 12 s, then 10 records/s; triggers are at 5, 10 and 15 s, so the first second waits until 15 s + 0.8 s
    found = run(replace(JOB, most=1, trigger_s=5.0), [0.0] * 12 + [10.0] * 8, (1,))
    assert found.worst_s[0] == pytest.approx(15 + 0.5 + 30 * 0.01 - 12)


@pytest.mark.parametrize("ends", [True, False])
def test_what_came_before_the_count_begins_is_late_on_nobodys_account(ends: bool) -> None:
    # 1,000 records/s for 20 s keep the one executor busy for 200 s; only the seconds from 20 on count
    rate = [1000.0] * 20 + [0.0] * (200 if ends else 60)
    arrived = np.concatenate([[0.0], np.cumsum(rate)])[None]
    load = Load(arrived, np.zeros(1, np.int64), counts=np.array([20]))
    found = simulate(stack([replace(JOB, most=1)]), load, Told((1,)), Looks(every_s=5), np.array([1]))
    assert (found.violation[0], found.worst_s[0]) == (0, 0)


def test_an_executor_is_paid_from_its_request_and_works_after_its_start_up() -> None:
    found = run(JOB, [10.0] * SECONDS, (2,))
    assert found.executor_s[0] == 2 * SECONDS
    assert seen(found, "executors").tolist() == [1.0] * 5 + [2.0] * (SECONDS - 5)
    assert seen(found, "waiting").tolist() == [1.0] * 5 + [0.0] * (SECONDS - 5)


def test_an_executor_that_finds_a_waiting_task_makes_the_batch_in_flight_the_cold_one() -> None:
    # It joins at 5.3 the batch that began at 5.0 and holds it until 8.3; second 4 has waited longest, 8.3 - 4.
    found = run(JOB, [10.0] * SECONDS, (2,))
    assert found.worst_s[0] == pytest.approx(4.3)
    # Then 33 records on two executors from 8.3 to 8.965, and the next batch begins at 9.0: 0.5 + 7 * 0.01 / 2.
    assert seen(found, "newest")[8] == pytest.approx(8.965 - 5)
    assert seen(found, "newest")[9] == pytest.approx(9.535 - 8)


@pytest.mark.parametrize(
    ("job", "worst"),
    [
        (replace(JOB, startup_s=(5.7,)), 6.0 + 0.5 + 0.05 + 3.0 - 5.0),  # between two batches
        (replace(JOB, tasks=1), 6.0 + 0.5 + 0.10 + 3.0 - 5.0),  # no task is left for it, now or later
    ],
)
def test_else_the_next_batch_is_the_cold_one(job: TwinJob, worst: float) -> None:
    assert run(job, [10.0] * SECONDS, (2,)).worst_s[0] == pytest.approx(worst)


def test_the_batches_of_a_fresh_query_take_longer() -> None:
    # 0.5 s + 10 ms per record, times 1 + exp(-k / 2). The first begins at 1.0, has 10 records and ends at 2.2; the next
    # begins at once with the 12 that came since, the third with 9.96 and the fourth with what came in its 0.82 s.
    job = replace(JOB, most=1, warmup=1.0, warmup_batches=2.0)
    latency = seen(run(job, [10.0] * SECONDS, (1,)), "newest")
    assert latency[2] == pytest.approx(2.2)
    second = 2.2 + (0.5 + 0.12) * (1 + np.exp(-0.5))
    assert latency[3] == pytest.approx(second - 1)
    third = second + (0.5 + 0.01 * (10 * second - 22)) * (1 + np.exp(-1.0))
    fourth = third + (0.5 + 0.01 * 10 * (third - second)) * (1 + np.exp(-1.5))
    assert latency[4] == pytest.approx(fourth - 3)  # both ended in this second
    warm = run(replace(JOB, most=1), [10.0] * SECONDS, (1,))
    assert latency[-1] == pytest.approx(seen(warm, "newest")[-1], abs=1e-4)


def test_a_cold_executor_does_not_take_longer_still_in_a_fresh_query() -> None:
    # It joins at 5.7, between two batches; the seventh batch, of 10 records on two executors, begins at 6.0.
    job = replace(JOB, startup_s=(5.7,), warmup=0.2, warmup_batches=2.0)
    assert run(job, [10.0] * SECONDS, (2,)).worst_s[0] == pytest.approx(1 + 0.55 * (1 + 0.2 * np.exp(-2.5)) + 3.0)


def test_executors_leave_when_the_batch_in_flight_has_ended() -> None:
    found = run(replace(JOB, least=1), [150.0] * SECONDS, (2, 1, 1))  # starts with two; batches last longer than 1 s
    executors = seen(found, "executors")
    assert executors[4] == 2 and executors[-1] == 1
    assert 30 + SECONDS - 5 - 25 < found.executor_s[0] < 2 * SECONDS


def test_an_engine_that_restarts_does_nothing_for_as_long_as_was_measured() -> None:
    job = replace(JOB, cold_s=0.0, restart_s=(7.0,))
    found = run(job, [10.0] * SECONDS, (1, 2))
    done, executors = seen(found, "done"), seen(found, "executors")
    assert executors[4:6].tolist() == [1.0, 2.0]
    assert len(set(done[5:12])) == 1 and done[12] > done[11]  # from 5 to 12, and the batch in flight began anew
    assert seen(found, "lag").max() == pytest.approx(80.0)  # 40 records done at 5 s, 120 there at 12 s


def test_a_restarted_engine_reads_again_and_catches_up_no_quicker_than_was_measured() -> None:
    job = replace(JOB, cold_s=0.0, restart_s=(7.0,))
    again = run(replace(job, rewind_s=3.0), [10.0] * SECONDS, (1, 2))
    assert seen(again, "lag").max() == pytest.approx(120.0)  # 130 there at 13 s, 40 - 30 done; 1.05 s for 110 records
    slowly = seen(run(replace(job, catch_up=2.0), [10.0] * SECONDS, (1, 2)), "done")
    assert slowly[14] == 40 and slowly[16] == 120  # 80 records at 2 * 10 records/s from 12 to 16


def test_a_change_during_a_restart_is_part_of_it() -> None:
    job = replace(JOB, cold_s=0.0, most=3, restart_s=(7.0,))
    done = seen(run(job, [10.0] * SECONDS, (1, 2, 3)), "done")
    assert done[12] > done[11]  # from 5 to 12, although there was a change at 10


def test_a_rate_that_is_none_is_named() -> None:
    for bad in (float("nan"), -1.0):
        with pytest.raises(TwinError, match="rate was NaN or < 0"):
            run(JOB, [10.0, bad] * 5, (1,))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("scaling", 1.2),
        ("per_record_s", 0.0),
        ("startup_s", ()),
        ("least", 3),
        ("cold_s", -1.0),
        ("warmup", -0.1),
        ("warmup", float("nan")),
        ("warmup_batches", 0.0),
        ("warmup_batches", float("inf")),
    ],
)
def test_a_job_that_cannot_be_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(TwinError, match=field):
        replace(JOB, **{field: value})


JOBS = st.builds(
    TwinJob,
    overhead_s=st.floats(0, 1.5), per_record_s=st.floats(1e-4, 0.05), most=st.just(6), tasks=st.integers(1, 12),
    scaling=st.floats(0.4, 1.0), trigger_s=st.just(1.0), batch_rows=st.sampled_from([50.0, 1000.0, float("inf")]),
    startup_s=st.sampled_from([(2.0,), (3.3, 9.0)]), cold_s=st.floats(0, 4), noise=st.sampled_from([0.0, 0.3]),
    restart_s=st.sampled_from([(), (4.0, 6.5)]), warmup=st.sampled_from([0.0, 1.0]), warmup_batches=st.floats(1, 30),
)  # fmt: skip
RATES = st.lists(st.integers(0, 200).map(float), min_size=SECONDS, max_size=SECONDS)
TARGETS = st.lists(st.integers(1, 6), min_size=8, max_size=8).map(tuple)


@settings(max_examples=25, deadline=None)
@given(job=JOBS, rate=RATES, targets=TARGETS, seed=st.integers(0, 99))
def test_whatever_happens_records_are_kept_and_executors_paid(
    job: TwinJob, rate: list[float], targets: tuple[int, ...], seed: int
) -> None:
    found = run(job, rate, targets, seed)
    lag, there = seen(found, "lag"), seen(found, "executors") + seen(found, "waiting")
    assert lag.min() >= -1e-9
    np.testing.assert_allclose(seen(found, "done") + lag, np.cumsum(rate))  # records in = records out + lag
    assert (np.diff(seen(found, "done")) >= 0).all()
    gone = np.maximum(-np.diff(np.concatenate([[6.0], np.array(targets, float)])), 0).sum()
    assert abs(found.executor_s[0] - there.sum()) <= gone + 1e-6  # who leaves, leaves within a second
    again = run(job, rate, targets, seed)
    assert again.seconds.tobytes() == found.seconds.tobytes()
    for name in ("executor_s", "violation", "p99_s", "worst_s", "changes"):
        np.testing.assert_allclose(getattr(found.stepped, name), getattr(found, name), rtol=1e-9)


@settings(max_examples=25, deadline=None)
@given(job=JOBS, rate=RATES, fewer=st.integers(1, 5))
def test_more_executors_never_have_more_lag(job: TwinJob, rate: list[float], fewer: int) -> None:
    calm = replace(job, noise=0.0, cold_s=0.0, restart_s=(), batch_rows=float("inf"))
    few, many = (run(replace(calm, least=n, most=n), rate, (n,)) for n in (fewer, fewer + 1))
    # Not at every moment: who begins a batch just before a burst misses it. Over the run it costs a batch at most.
    a_batch = float(np.mean(rate)) * (job.overhead_s + job.trigger_s)
    assert seen(many, "lag").mean() <= seen(few, "lag").mean() + a_batch
