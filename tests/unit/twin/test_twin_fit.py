"""The fit finds the job that made the batches, says what it cannot tell apart, and its twin resembles real runs."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.twin.calibration import replayed
from models.twin.calibration.fit import UnfinishedFitError, fit_job, normal_s
from models.twin.calibration.measurements import (
    MeasuredBatches,
    Startups,
    concatenate_runs,
    estimate_most_rows,
    estimate_trigger_s,
)
from models.twin.calibration.outages import (
    Recording,
    estimate_capacity,
    fit_restarting_job,
    latency_from_waiting,
    measure_outages,
    share_over_target,
)
from models.twin.calibration.replayed import normalised_error, replay_recording
from models.twin.sim.given import Load
from models.twin.sim.job import TwinError, TwinJob, stack
from models.twin.sim.run import advance, set_targets
from models.twin.sim.state import begin

RUNS = (
    Path(__file__).parents[1] / "data" / "word_count_runs.json.gz"
)  # four runs of `tidecast run`, nyc_taxi, 720 times
TRUE = TwinJob(overhead_s=0.8, per_record_s=0.005, most=8, tasks=1000, scaling=0.83, cold_s=3.0, noise=0.1)
NONE = Startups(np.zeros(0), np.zeros(0), np.zeros(0, np.int64))
ONE = Startups(np.array([1.0]), np.array([3.5]), np.array([4]))


def made(job: TwinJob, count: int, executors: tuple[int, ...], seed: int = 0, first: float = np.inf) -> MeasuredBatches:
    """Batches of a query that did so many before; by default one that has been warm for long."""
    chance = np.random.default_rng(seed)
    n, rows = chance.choice(executors, count).astype(float), chance.integers(50, 1500, count).astype(float)
    number = first + np.arange(count)
    took = normal_s(job, MeasuredBatches(rows, rows, rows, n, number)) * np.exp(
        job.noise * chance.standard_normal(count)
    )
    ends = np.cumsum(took)
    return MeasuredBatches(ends - took, ends, rows, n, number)


def test_the_job_that_made_the_batches_lies_within_the_intervals() -> None:
    found = fit_job(made(TRUE, 300, (1, 2, 4, 8)), ONE, TRUE, draws=40)
    for name in ("overhead_s", "per_record_s", "scaling"):
        low, high = found.between[name]
        assert low <= getattr(TRUE, name) <= high
        assert getattr(found.job, name) == pytest.approx(getattr(TRUE, name), rel=0.15)
    assert found.job.noise == pytest.approx(0.1, rel=0.2)
    assert found.job.startup_s == (2.5,)
    assert found.unsure == ("warmup", "cold_s")  # no fresh query, one cold batch
    assert found.job.warmup == 0 and found.between["warmup"] == (0.0, np.inf)


def test_a_warm_up_is_found_and_told_from_none() -> None:
    warming = replace(TRUE, warmup=0.9, warmup_batches=12.0)
    parts = [(made(warming, 80, (1, 2, 4, 8), seed, first=0.0), ONE) for seed in range(6)]
    parts[0][0].end_s[0] += 9.0  # the first batch of a query makes its plan and its state, and teaches nothing
    found = fit_job(*concatenate_runs(parts), TRUE, draws=40)
    for name in ("overhead_s", "per_record_s", "warmup", "warmup_batches"):
        low, high = found.between[name]
        assert getattr(found.job, name) == pytest.approx(getattr(warming, name), rel=0.2)
        assert low < getattr(found.job, name) < high < 1.5 * low
    assert found.batches == 6 * (80 - 2)  # neither the first nor the cold one
    none = fit_job(
        *concatenate_runs([(made(TRUE, 80, (1, 2, 4, 8), seed, first=0.0), ONE) for seed in range(6)]), TRUE, draws=40
    )
    assert none.job.warmup < 0.1 and not {"warmup", "warmup_batches"} & set(none.unsure)
    blind = fit_job(*concatenate_runs([(b._replace(number=np.full(80, np.inf)), s) for b, s in parts]), TRUE, draws=20)
    assert blind.job.warmup == 0 and blind.job.noise > 1.3 * found.job.noise  # it is taken for noise then


def test_a_measured_capacity_curve_gives_its_exponent() -> None:
    # Throughput of a mapper at p workers relative to one (autoscaling facts C5: about p ** 0.83).
    workers = np.array([1, 2, 4, 8, 10, 15, 20, 26])
    worth = np.array([1, 1.83, 3.46, 5.89, 7.03, 9.4, 12.0, 14.1])
    p = np.tile(np.arange(len(workers)), 6)
    rows = np.repeat([500.0, 1000, 2000, 4000, 8000, 16000], len(workers))
    took = 0.2 + 0.002 * rows / worth[p]
    ends = np.cumsum(took)
    known = replace(TRUE, most=26, tasks=26_000)
    found = fit_job(
        MeasuredBatches(ends - took, ends, rows, workers[p].astype(float), np.full(len(p), np.inf)),
        ONE,
        known,
        draws=20,
    )
    assert found.job.scaling == pytest.approx(0.83, abs=0.03)


def test_one_number_of_executors_does_not_tell_the_exponent() -> None:
    found = fit_job(made(TRUE, 100, (4,)), ONE, TRUE, draws=20)
    assert "scaling" in found.unsure and found.job.scaling == 1.0


def test_a_cold_batch_is_counted_from_where_its_executor_joined() -> None:
    job = replace(TRUE, noise=0.0)
    batches = made(job, 60, (1, 2))
    batches.end_s[[20, 30]] += 3.0
    batches.start_s[[21, 31]] += 3.0
    there = Startups(batches.start_s[[20, 30]] - 4, batches.start_s[[20, 30]] - 1, np.array([20, 30]))
    assert fit_job(batches, there, job, draws=5).job.cold_s == pytest.approx(3.0, abs=0.05)
    late = replace_registered(there, batches.end_s[[20, 30]] - 2.5)
    assert fit_job(batches, late, job, draws=5).job.cold_s == pytest.approx(2.5)


def replace_registered(startups: Startups, at: np.ndarray) -> Startups:
    return Startups(startups.requested_s, at, startups.batch)


def test_too_little_is_said_to_be_too_little() -> None:
    with pytest.raises(UnfinishedFitError, match=r"unfinished fit: 5 warm batches .* 20 are needed.*no start-up"):
        fit_job(made(TRUE, 5, (1,)), NONE, TRUE)


def test_trigger_and_rows_are_read_from_batches_that_show_them() -> None:
    start = np.arange(10) * 2.0
    idle = MeasuredBatches(start, start + 0.7, np.full(10, 5.0), np.ones(10), start)
    assert estimate_trigger_s(idle) == 2.0 and estimate_most_rows(idle) == 5.0
    assert estimate_trigger_s(made(TRUE, 30, (1,))) is None  # one after another
    assert estimate_most_rows(made(TRUE, 30, (1,))) == float("inf")


def real() -> list[dict[str, Any]]:
    return json.loads(gzip.decompress(RUNS.read_bytes()))


def table(kind: type, said: dict[str, list[float | None]]) -> Any:
    arrays = {k: np.array([np.nan if v is None else v for v in column], float) for k, column in said.items()}
    if "batch" in arrays:
        arrays["batch"] = arrays["batch"].astype(np.int64)
    return kind(**arrays)


@pytest.mark.parametrize("number", range(4))
def test_the_twin_resembles_a_run_it_was_not_fitted_to(number: int) -> None:
    runs, known = real(), TwinJob(1.0, 0.005, most=4, tasks=8, batch_rows=1000, latency_target_s=5.0)
    run = runs.pop(number)
    parts = [(table(MeasuredBatches, r["batches"]), table(Startups, r["startups"])) for r in runs]
    found = fit_job(*concatenate_runs(parts), known, draws=5)
    twin = replay_recording(
        found.job, np.array(run["arrived"], float), np.array(run["at_s"]), np.array(run["targets"], np.int64),
        run["executors"], np.arange(10), batches=run["done"],
    )  # fmt: skip
    latency = np.array([np.nan if v is None else v for v in run["latency_s"]], float)
    assert normalised_error(np.array(run["lag"], float), twin.lag.mean(axis=0)) < 0.20
    said = np.isfinite(latency) & np.isfinite(twin.latency_s).all(axis=0)  # the last seconds may stay open
    assert normalised_error(latency[said], twin.latency_s[:, said].mean(axis=0)) < 0.25
    assert normalised_error(np.array(run["curve_executors"], float), twin.executors.mean(axis=0)) < 0.10


def test_a_replay_is_the_simulation_of_each_second_however_many_steps_are_gone_through_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arrived, seeds, job = 150.0 * np.arange(61), np.arange(3), replace(TRUE, startup_s=(8.0, 12.0))
    asked = job, arrived, np.array([20.0]), [4], 2, seeds
    whole = replay_recording(*asked)
    monkeypatch.setattr(replayed, "PART", 7)
    for one, other in zip(whole, replay_recording(*asked), strict=True):
        np.testing.assert_array_equal(one, other)
    jobs, load = stack([job] * 3), Load(arrived[None], np.zeros(3, np.int64))
    state = begin(jobs, np.full(3, 2.0), seeds)
    for second in range(60):
        if second == 20:
            set_targets(state, jobs, np.full(3, 4.0), 20.0)
        advance(state, jobs, load, second, second + 1)
        np.testing.assert_array_equal(whole.lag[:, second], np.maximum(arrived[second + 1] - state.x["done"], 0.0))
        np.testing.assert_array_equal(whole.executors[:, second], state.x["executors"])
    assert np.isfinite(whole.latency_s[:, :40]).all() and len(np.unique(whole.lag[:, 20])) == 3


def test_a_replay_refuses_what_was_never_recorded() -> None:
    with pytest.raises(TwinError, match="never fall"):
        replay_recording(TRUE, np.array([0.0, 2.0, 1.0]), np.zeros(0), [], 1, np.arange(1))
    with pytest.raises(TwinError, match="targets 9 to 9"):
        replay_recording(TRUE, np.arange(5.0), np.array([1.0]), [9], 1, np.arange(1))


def recording() -> Recording:
    """Changes every 200 s: 5 s until the peak of 9 s, of which 4 are read again; then down by 1 s per second."""
    seconds = 200 * 16
    workers = np.repeat(np.tile([10.0, 5.0], 8), 200)
    latency = np.full(seconds, 1.0)
    for at in np.arange(200, seconds, 200):
        latency[at : at + 5] = 0.0
        latency[at + 5 : at + 14] = np.arange(10, 1, -1.0)
    rate = 100.0 * workers
    return Recording(rate, latency, rate / (400 * workers**0.8), workers)


def test_a_restarting_engine_is_read_off_its_recording() -> None:
    seen = recording()
    found, (slot, scaling) = measure_outages(seen), estimate_capacity(seen)
    assert set(found.lost_s) == {9.0} and set(found.down_s) == {5.0} and set(found.back_s) == {9.0}
    unsaid = seen.latency_s.copy()
    for after in (2, 6, 7):  # before the peak, and behind it
        unsaid[seen.changes + after] = np.nan
    for one, other in zip(measure_outages(seen._replace(latency_s=unsaid)), found, strict=True):
        np.testing.assert_array_equal(one, other)
    assert (slot, scaling) == (pytest.approx(400, rel=0.02), pytest.approx(0.8, abs=0.02))
    job = fit_restarting_job(seen, 1, 10, 2.0)
    assert job.restart_s[0] == 5.0 and job.rewind_s == 4.0 and job.catch_up == pytest.approx(2.0, abs=0.15)
    arrived = np.concatenate([[0.0], np.cumsum(seen.rate)])
    twin = replay_recording(
        job, arrived, seen.changes.astype(float), seen.workers[seen.changes].astype(int), 10, np.arange(1), 0.25
    )
    again = share_over_target(latency_from_waiting(twin.waiting_s, found.calm_s)[0], 2.0)
    assert again == pytest.approx(
        share_over_target(seen.latency_s, 2.0) + 15 * 4 / len(seen.rate), abs=0.008
    )  # while it is down, too
    with pytest.raises(UnfinishedFitError, match="3 changes of workers"):
        fit_restarting_job(seen.part(0, 800), 1, 10, 2.0)
