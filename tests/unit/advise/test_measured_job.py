"""A job as its agent's messages tell of it: from rows by hand, from a run's folder, and from a simulated job."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from configs.contract import Contract
from models.twin.calibration.fit import UnfinishedFitError
from pipelines.advise.acting import compare_acting, repeat_recorded
from pipelines.advise.measured import measure_job
from pipelines.advise.read import measure_in_run
from pipelines.report.recorded.lines import RunError
from tests.fakes import run_dir

ACTIONS = ["wall_time", "decision_id", "status", "executors_before", "target", "decided_at", "confirmed_at",
           "useful_at"]  # fmt: skip
NO_ACTION = pd.DataFrame(columns=ACTIONS)
CONTRACT = Contract(job="orders", executors={"min": 1, "max": 6}, planning={"lead_s": 12.0, "scaling": 0.9})


def rows(batches=60, skew=1.2, mode="observe", gap_s=0.0):
    """Two executors, a batch of 100 records every 2 s; half way through, a time in which nothing was measured."""
    chance, found = np.random.default_rng(1), []
    for at in range(2 * batches):
        wall = 1000.0 + at + 1 + gap_s * (at >= batches)
        common = {"wall_time": wall, "time_scale": 1.0, "span_s": 1.0, "executors": 2, "mode": mode}
        found.append({**common, "kind": "interval", "arrival_rps": 50.0})
        if at % 2:
            took = 0.8 * float(np.exp(chance.normal(0, 0.05)))
            found.append({
                **common, "kind": "batch", "batch_id": 100 + at // 2, "batch_rows": 100, "batch_s": took,
                "task_ceiling": 9, "latency_max_s": 6.5 if 40 < at < 60 else 2.5, "task_median_s": 0.1,
                "task_max_s": 0.1 * skew,
            })  # fmt: skip
    return pd.DataFrame(found)


def test_load_executors_and_late_seconds_are_those_of_the_rows():
    seen = measure_job(rows(), NO_ACTION, CONTRACT)
    assert np.diff(seen.arrived) == pytest.approx(np.full(120, 50.0))
    assert seen.executor_hours == pytest.approx(240 / 3600)
    assert 15 <= seen.late_s <= 22 and 110 <= seen.seconds <= 120  # nine batches two seconds apart were late
    assert seen.observed and not measure_job(rows(mode="act"), NO_ACTION, CONTRACT).observed


def test_what_was_not_seen_is_taken_from_the_contract():
    seen = measure_job(rows(), NO_ACTION, CONTRACT)
    assert not seen.lead_known and seen.twin.startup_s == (12.0,)
    assert not seen.scaling_known and seen.twin.scaling == 0.9
    work = seen.twin.per_record_s * 100 / 1.8**0.9  # 9 tasks on two slots are worth 1.8
    assert seen.twin.overhead_s + work == pytest.approx(0.8, rel=0.05)


def test_a_time_without_measurements_is_cut_out():
    assert len(measure_job(rows(gap_s=3600.0), NO_ACTION, CONTRACT).arrived) == pytest.approx(121 + 4, abs=1)


def test_a_skewed_stage_is_worth_as_many_tasks_as_the_slowest_leaves():
    seen = measure_job(rows(skew=4.0), NO_ACTION, CONTRACT)
    assert (seen.tasks, seen.twin.tasks) == (9, 3)


@pytest.mark.parametrize("metrics", [rows().query("kind == 'interval'"), rows(batches=8)])
def test_too_little_says_what_is_missing(metrics):
    with pytest.raises(UnfinishedFitError, match=r"no batch in the lake|20 are needed"):
        measure_job(metrics, NO_ACTION, CONTRACT)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "20260101-000000-forecast"
    path.mkdir()
    run_dir.write(path)
    reports = [json.loads(line) for line in (path / "word_count.progress.jsonl").read_text().splitlines()]
    with (path / "metrics.jsonl").open("a") as metrics:
        for report in reports:
            metrics.write(json.dumps(batch(report)) + "\n")
            report["durationMs"] |= {"addBatch": 1, "queryPlanning": 40 + report["batchId"] % 3}
    (path / "word_count.progress.jsonl").write_text("\n".join(map(json.dumps, reports)) + "\n")
    return path


def batch(report):
    took, began = report["durationMs"]["triggerExecution"] / 1000, pd.Timestamp(report["timestamp"]).timestamp()
    return {
        "job": "word_count", "kind": "batch", "wall_time": began + took, "time_scale": 1.0, "span_s": took,
        "batch_id": report["batchId"], "batch_rows": report["numInputRows"], "batch_s": took, "executors": 2,
        "task_ceiling": 8, "latency_max_s": 2.0,
    }  # fmt: skip


def test_a_run_is_measured_by_what_its_agent_sent(folder):
    name, seen = measure_in_run(folder)
    metrics = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    live = [m for m in metrics if m["kind"] == "interval" and m["executors"] is not None]
    assert name == "word_count" and seen.lead_known
    assert seen.arrived[-1] == pytest.approx(sum(m["arrival_rps"] for m in live))
    assert seen.facts.phases["planning_s"] == 0.041  # of a run of before: from Spark's own reports


def test_the_twin_with_the_recorded_executors_takes_what_they_took(folder):
    _, seen = measure_in_run(folder)
    found = compare_acting(seen)
    assert found.repeated.executor_h == pytest.approx(found.measured.executor_h, rel=0.05)
    assert found.acting.executor_h > 0 and len(found.targets) == found.seconds == len(seen.executors)


def test_seconds_whose_records_never_come_out_are_late_with_the_recorded_executors():
    seen = measure_job(rows(), NO_ACTION, CONTRACT)
    stuck = replace(seen, twin=replace(seen.twin, overhead_s=1e6))
    seconds = len(seen.arrived) - 1
    assert repeat_recorded(stuck).late_s == sum(seconds - at > CONTRACT.latency_target_s for at in range(seconds))


def test_a_run_without_a_right_contract_or_without_batches_is_refused(folder, tmp_path):
    (tmp_path / "run.json").write_text('{"job": "word_count"}')
    with pytest.raises(RunError, match="'contract' is missing"):
        measure_in_run(tmp_path)
    for file in ("metrics", "outcomes", "word_count.progress"):
        (tmp_path / f"{file}.jsonl").write_text((folder / f"{file}.jsonl").read_text())
    wrong = {"job": "word_count", "contract": {"job": "word_count", "price_per_executor_hour": -1}}
    (tmp_path / "run.json").write_text(json.dumps(wrong))
    with pytest.raises(RunError, match="contract is wrong: price_per_executor_hour"):
        measure_in_run(tmp_path)
    (tmp_path / "metrics.jsonl").write_text("")
    (tmp_path / "run.json").write_text(json.dumps({"job": "word_count", "contract": {"job": "word_count"}}))
    with pytest.raises(RunError, match="no metrics of job 'word_count'"):
        measure_in_run(tmp_path)
