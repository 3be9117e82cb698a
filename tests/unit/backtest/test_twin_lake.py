"""Batches and start-ups as rows of the lake say them."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from configs.contract import load_contract
from configs.settings import load
from models.twin.calibration.fit import Fitted, UnfinishedFitError, fit_job
from models.twin.sim.job import TwinJob
from pipelines.backtest.fit import recordings
from pipelines.backtest.fit.from_lake import ACTION, measurements_from_rows
from pipelines.backtest.fit.judge import format_fit
from pipelines.backtest.job_file import write_fit
from pipelines.cli.app import app
from pipelines.report.fit_input import read_measured_run
from pipelines.report.recorded.lines import RunError
from tests.fakes import run_dir


def rows() -> tuple[pd.DataFrame, pd.DataFrame]:
    ends = 100.0 + 2.0 * np.arange(12)
    metrics = pd.DataFrame({
        "kind": "batch", "wall_time": ends, "batch_s": 0.5, "batch_rows": 40.0, "executors": 2.0, "task_ceiling": 8.0,
        "batch_id": [3.0, np.nan, *range(5, 15)],
    })  # fmt: skip
    intervals = metrics.assign(kind="interval", wall_time=ends + 0.1)
    outcomes = pd.DataFrame([
        {"decision_id": "a", "status": "confirmed", "executors_before": 1, "target": 2, "decided_at": 99.0,
         "confirmed_at": 101.5, "useful_at": 104.05, "wall_time": 105.0},
        {"decision_id": "b", "status": "confirmed", "executors_before": 2, "target": 1, "decided_at": 109.0,
         "confirmed_at": 111.0, "useful_at": np.nan, "wall_time": 112.0},
        {"decision_id": "c", "status": "refused", "executors_before": 1, "target": 9, "decided_at": 112.0,
         "confirmed_at": np.nan, "useful_at": np.nan, "wall_time": 113.0},
    ])  # fmt: skip
    return pd.concat([metrics, intervals]), outcomes


def test_batches_and_start_ups_are_read_from_the_two_tables() -> None:
    batches, startups, known = measurements_from_rows(*rows(), load_contract("word_count", load().contracts_dir))
    assert batches.start_s[0] == 99.5 and len(batches.rows) == 12
    assert batches.number[:3].tolist() == [3.0, np.inf, 5.0]  # of one that nobody numbered nothing is known
    assert (startups.registered_s - startups.requested_s).tolist() == [2.5]
    assert startups.batch.tolist() == [2]  # the one that ended at 104
    assert known.trigger_s == 2.0 and known.batch_rows == 40.0 and known.tasks == 8


def with_starts(ends: Sequence[float], useful: Sequence[float]) -> tuple[pd.DataFrame, pd.DataFrame]:
    metrics, outcomes = rows()
    batch, raised = metrics.iloc[:1], outcomes.iloc[:1]
    return (
        pd.concat([batch] * len(ends)).assign(wall_time=ends),
        pd.concat([raised] * len(useful)).assign(useful_at=useful, decision_id=np.arange(len(useful))),
    )


quarters = st.integers(0, 60).map(lambda at: at / 4)


@given(st.lists(quarters, min_size=1, max_size=12), st.lists(quarters | st.just(np.nan), min_size=1, max_size=8))
def test_the_first_batch_of_a_start_is_the_nearest_and_of_two_the_earlier(
    ends: list[float], useful: list[float]
) -> None:
    contract = load_contract("word_count", load().contracts_dir)
    batches, startups, _ = measurements_from_rows(*with_starts(ends, useful), contract)
    off = np.abs(batches.end_s - np.nan_to_num(np.array(useful), nan=-1e9)[:, None])
    assert startups.batch.tolist() == np.where(off.min(axis=1) <= 1.0, off.argmin(axis=1), -1).tolist()


def test_weeks_of_raises_are_read_without_a_matrix_of_all_batches() -> None:
    metrics, outcomes = with_starts(2.0 * np.arange(20_000), 20.0 * np.arange(1_000))
    contract = load_contract("word_count", load().contracts_dir)
    tracemalloc.start()
    try:
        _, startups, _ = measurements_from_rows(metrics, outcomes, contract)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert startups.batch[:3].tolist() == [0, 10, 20]
    assert peak < 8 * 20_000 * 1_000 / 4  # bytes


def test_a_start_that_came_late_and_one_that_never_came_are_both_used() -> None:
    metrics, outcomes = rows()
    asked = {"decision_id": "d", "executors_before": 2, "target": 3, "decided_at": 200.0}
    missing = {**asked, "status": "ineffective", "confirmed_at": np.nan, "useful_at": np.nan}
    late = {**asked, "status": "confirmed", "confirmed_at": 350.0, "useful_at": np.nan, "wall_time": 360.0}
    never = {**missing, "decision_id": "e", "decided_at": 400.0, "wall_time": 500.0}
    more = pd.concat([outcomes, pd.DataFrame([late, {**missing, "wall_time": 261.0}, never])])  # in no order
    _, startups, _ = measurements_from_rows(metrics, more, load_contract("word_count", load().contracts_dir))
    assert startups.came.tolist() == [True, True, False]
    assert (startups.registered_s - startups.requested_s).tolist() == [2.5, 150.0, 100.0]
    assert startups.lead_times_s().tolist() == [
        2.5,
        150.0,
        150.0,
    ]  # after 100 s in vain, it is like those that took longer


@pytest.mark.parametrize("observed", ['{"no_room": "default"}', {"no_room": "default"}])
def test_a_start_that_waited_for_room_is_left_out(observed: object) -> None:
    metrics, outcomes = rows()
    full = {"decision_id": "d", "status": "ineffective", "executors_before": 2, "target": 3, "decided_at": 200.0,
            "confirmed_at": np.nan, "useful_at": np.nan, "wall_time": 900.0, "observed": observed}  # fmt: skip
    more = pd.concat([outcomes, pd.DataFrame([full])])
    _, startups, _ = measurements_from_rows(metrics, more, load_contract("word_count", load().contracts_dir))
    assert (startups.registered_s - startups.requested_s).tolist() == [2.5]


def test_starts_of_clocks_that_differ_are_left_out_and_stop_no_fit() -> None:
    metrics, outcomes = rows()
    asked = {"status": "confirmed", "executors_before": 2, "target": 3, "decided_at": 200.0, "useful_at": np.nan}
    jumped = [
        {**asked, "decision_id": "early", "confirmed_at": 190.0, "wall_time": 200.0},
        {**asked, "decision_id": "absurd", "confirmed_at": 9_000.0, "wall_time": 9_001.0},
        {**asked, "decision_id": "ahead", "confirmed_at": 260.0, "wall_time": 250.0},
        {**asked, "decision_id": "vain", "status": "ineffective", "confirmed_at": np.nan, "wall_time": 150.0},
    ]
    contract = load_contract("word_count", load().contracts_dir)
    more = pd.concat([outcomes, pd.DataFrame(jumped)])
    batches, startups, known = measurements_from_rows(pd.concat([metrics] * 2), more, contract)
    assert (startups.registered_s - startups.requested_s).tolist() == [2.5]
    assert fit_job(batches, startups, known, draws=1).job.startup_s == (2.5,)


def test_a_run_keeps_executors_that_never_came(tmp_path: Path) -> None:
    run_dir.write(tmp_path)
    before = read_measured_run(tmp_path).startups
    lines = (tmp_path / "decisions.jsonl").read_text().splitlines()
    last, outcome = json.loads(lines[-1]), json.loads((tmp_path / "outcomes.jsonl").read_text().splitlines()[0])
    outcome |= {
        "decision_id": last["id"], "status": "ineffective", "executors_before": 2, "target": 4, "confirmed_at": None,
        "useful_at": None, "decided_at": last["wall_time"], "wall_time": last["wall_time"] + 40.0,
    }  # fmt: skip
    with (tmp_path / "outcomes.jsonl").open("a") as file:
        file.write(json.dumps(outcome) + "\n")
    after = read_measured_run(tmp_path).startups
    assert after.came.tolist() == [True] * len(before.batch) + [False, False]
    assert (after.registered_s - after.requested_s)[-2:] == pytest.approx(40.0)


def test_a_lake_without_a_batch_is_said_to_be_empty() -> None:
    metrics, outcomes = rows()
    with pytest.raises(UnfinishedFitError, match="no batch in the lake"):
        measurements_from_rows(
            metrics[metrics["kind"] == "interval"], outcomes, load_contract("word_count", load().contracts_dir)
        )


def test_a_stored_fit_can_be_read_again(tmp_path: Path) -> None:
    job = TwinJob(1.0, 0.005, startup_s=(2.0, 3.0))
    found = Fitted(job, {"overhead_s": (0.9, 1.1), "startup_s": (2.0, 3.0)}, ("scaling",), 50, 2)
    said = json.loads(write_fit(found, "orders", tmp_path).read_text())
    assert said["job"]["batch_rows"] is None  # JSON has no infinity
    again = {name: value for name, value in said["job"].items() if value is not None}
    assert replace(job, **{**again, "startup_s": tuple(again["startup_s"]), "restart_s": ()}) == job
    assert "not told apart: scaling" in format_fit(found)


def test_a_folder_with_recordings_is_read_and_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = np.arange(200 * 24)
    workers = np.where(seconds // 200 % 2 == 0, 10, 5)
    latency = np.where((seconds > 200) & (seconds % 200 < 14), 10_000 - 650 * (seconds % 200), 1000)
    run = tmp_path / "1_reactive35_ADS_24_small"
    run.mkdir()
    for name, values in (("latency", latency), ("cpu_load", np.full(len(seconds), 0.3)), ("task_managers", workers)):
        frame = pd.DataFrame({"timestamp": 1000 + seconds, "value": values})
        frame.to_csv(run / f"reactive-{name}-data.csv", sep="|", index=False)
    with pytest.raises(RunError, match="no load ADS_"):
        list(recordings.read_recordings(tmp_path))
    load_file = pd.DataFrame({"timestamp": seconds, "value": 100 * workers})
    load_file.to_csv(tmp_path / "ADS_load_max.csv", sep="|", index=False)
    ((name, seen),) = recordings.read_recordings(tmp_path)
    found = recordings.cross_check_halves(seen.part(0, 200 * 24))
    assert name == run.name and [part["checked_on"] for part in found] == ["second", "first"]
    assert all(0.5 < part["ratio"] < 2 for part in found)
    assert "catch-up" in recordings.format_cross_checks({name: found})
    # Both shares are of the same seconds: here the twin is late in those alone in which nothing was measured.
    gone = np.arange(200 * 24) % 200 == 20
    unsaid = seen.part(0, 200 * 24)._replace(latency_s=np.where(gone, np.nan, seen.latency_s[: 200 * 24]))
    late = np.repeat(np.where(gone[:2400], 9.0, 1.0)[None], 10, axis=0)
    monkeypatch.setattr(recordings, "latency_from_waiting", lambda waiting_s, calm_s: late)
    assert [part["twin"] for part in recordings.cross_check_halves(unsaid)] == [0.0, 0.0]
    with pytest.raises(RunError, match=r"no reactive-latency-data\.csv"):
        list(recordings.read_recordings(run.parent / "elsewhere"))


def write_table(lake: Path, table: str, rows: pd.DataFrame) -> None:
    """As an ingest leaves it, in one commit."""
    (lake / table / "_delta_log").mkdir(parents=True)
    rows.to_parquet(lake / table / "a.parquet")
    kinds = {"float64": "double", "int64": "long"}
    fields = [{"name": name, "type": kinds.get(str(kind), "string")} for name, kind in rows.dtypes.items()]
    said = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": {"partitionColumns": [], "schemaString": json.dumps({"fields": fields})}},
        {"add": {"path": "a.parquet"}},
    ]
    (lake / table / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, said)))


@pytest.mark.study
def test_a_fit_to_the_lake_is_not_said_to_be_checked_by_the_runs_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, written = tmp_path / "runs" / "20261120-120000-forecast", tmp_path / "fit.json"
    run_dir.write(run)
    batches = read_measured_run(run).batches
    metrics = pd.DataFrame({
        "job": "word_count", "kind": "batch", "wall_time": run_dir.START + batches.end_s, "batch_s": batches.duration_s,
        "batch_rows": batches.rows, "executors": batches.executors, "task_ceiling": 8.0, "batch_id": batches.number,
    })  # fmt: skip
    outcomes = pd.DataFrame([json.loads(line) for line in (run / "outcomes.jsonl").read_text().splitlines()])
    write_table(tmp_path / "lake", "metrics", metrics)
    write_table(tmp_path / "lake", "outcomes", outcomes[["job", *ACTION]].assign(observed="{}"))
    (tmp_path / "contracts").mkdir()
    (tmp_path / "contracts" / "word_count.yaml").write_text("job: word_count\n")  # that of the run
    monkeypatch.setenv("TIDECAST_VAR", str(tmp_path))
    monkeypatch.setenv("TIDECAST_CONTRACTS", str(tmp_path / "contracts"))
    done = CliRunner().invoke(app, ["twin", "fit", "--lake", "--json", str(written)], catch_exceptions=False)
    assert "each run against the twin fitted to the lake, which may hold these runs" in done.stdout
    found = json.loads(written.read_text())["data"]
    assert len(found["comparisons"]) == 1 and found["held_out"] is False and "near" not in found
