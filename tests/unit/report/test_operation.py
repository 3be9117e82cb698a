import json
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from pipelines.report.measures import measure_run
from pipelines.report.operation import MEANINGS, Operation, describe_operation, measure_operation, operation_table
from pipelines.report.recorded.backfill import RecordedBackfill
from pipelines.report.recorded.run import load_run
from tests.fakes import run_dir


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("operation")
    run_dir.write(made)
    return made


@pytest.fixture
def measured(folder):
    return measure_run(load_run(folder))


def test_quantiles_and_sums_are_those_of_records_and_tasks(measured):
    found = measure_operation(measured)
    assert list(found) == list(MEANINGS)
    latency = measured.committed - measured.run.produced["produced_at"].to_numpy()
    assert found["latency_s"] == {f"p{level}": round(float(np.percentile(latency, level)), 3) for level in (50, 95, 99)}
    live_s = measured.live_end - measured.run.start
    assert found["throughput_rps"]["mean"] == pytest.approx(len(latency) / live_s, abs=0.1)
    assert found["throughput_rps"]["mean"] < found["throughput_rps"]["most"]
    tasks = measured.run.tasks
    assert 0 < found["busy_core_s"] <= (tasks["end"] - tasks["start"]).sum() + 0.1
    changes = (measured.acts["executors"].diff().fillna(0) != 0).sum()
    assert found["moves_per_h"] == pytest.approx(3600 * changes / live_s, abs=0.1)


def test_the_watermark_is_measured_against_the_jobs_own_time(folder, tmp_path):
    short = tmp_path / "run"
    short.mkdir()
    for path in folder.iterdir():
        (short / path.name).symlink_to(path)
    name = next(path.name for path in folder.glob("*.progress.jsonl"))
    lines = [json.loads(line) for line in (folder / name).read_text().splitlines()]
    for line in lines:
        begun = datetime.fromisoformat(line["timestamp"]).timestamp() + line["durationMs"]["triggerExecution"] / 1000
        at = run_dir.TRACE_START + (begun - 30.0 - run_dir.START) * run_dir.SCALE
        line["eventTime"] = {"watermark": datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")}
    lines[0]["eventTime"] = {"watermark": "1970-01-01T00:00:00.000Z"}
    (short / name).unlink()
    (short / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = measure_operation(measure_run(load_run(short)))["watermark_lag_s"]
    assert found == {"p50": pytest.approx(30.0, abs=0.01), "most": pytest.approx(30.0, abs=0.01)}


def test_without_a_watermark_a_failure_or_a_replay_nothing_is_told_of_them(measured):
    found = measure_operation(measured)
    assert found["watermark_lag_s"] == {"p50": None, "most": None}
    assert found["recovery_s"] is None and found["live_recovery_s"] is None
    assert "–" in operation_table(found)


def test_recovery_ends_with_the_late_seconds_that_follow_the_failure(measured):
    executors, seconds = measured.run.executors.copy(), measured.seconds.copy()
    executors.loc[executors.index[0], ["removed", "reason"]] = [measured.run.start + 40.5, "worker lost"]
    seconds["latency_max_s"] = 1.0
    lost = replace(measured, run=replace(measured.run, executors=executors), seconds=seconds)
    assert measure_operation(lost)["recovery_s"] == 0.0
    seconds.loc[50:54, "latency_max_s"] = 99.0
    assert measure_operation(lost)["recovery_s"] == 55 - 40.5
    seconds.loc[[51, 53, *range(55, 80)], "latency_max_s"] = np.nan
    assert measure_operation(lost)["recovery_s"] == 55 - 40.5, "a second without a record ends nothing"
    seconds.loc[50:54, "latency_max_s"] = 1.0
    seconds.loc[90:95, "latency_max_s"] = 99.0  # too late to be the failure's
    assert measure_operation(lost)["recovery_s"] == 0.0


def test_a_restart_is_recovered_from_since_the_query_had_stopped(folder, measured, tmp_path):
    """The batches from 60 to 110 s are missing, and those after them are of another run."""
    (short := tmp_path / "run").mkdir()
    for path in folder.iterdir():
        (short / path.name).symlink_to(path)
    name = next(path.name for path in folder.glob("*.progress.jsonl"))
    lines, kept = (folder / name).read_text().splitlines(), []
    for line, began in zip(lines, measured.run.batches.started - measured.run.start, strict=True):
        if not 60 <= began < 110:
            kept.append(line.replace("run-1", "run-2") if began >= 110 else line)
    (short / name).unlink()
    (short / name).write_text("\n".join(kept) + "\n")
    again = measure_run(load_run(short))
    start, target_s = again.run.start, again.run.contract.latency_target_s
    stopped = max(again.run.batches.committed[again.run.batches.started < start + 60]) - start
    late = np.flatnonzero(again.seconds["latency_max_s"] > target_s)
    assert stopped < 61 and 100 < late[-1] < 110
    assert measure_operation(again)["recovery_s"] == pytest.approx(late[-1] + 1 - stopped, abs=0.06)
    # Where nothing came for long, the query was missed from the first record that it did not commit.
    made = again.run.produced["produced_at"].to_numpy() - start
    rest = ~((made > stopped - 5) & (made < 100))
    resting = replace(again, committed=again.committed[rest], run=replace(again.run, produced=again.run.produced[rest]))
    first = made[rest & (made > 100)].min()
    assert measure_operation(resting)["recovery_s"] == pytest.approx(late[-1] + 1 - first, abs=0.06)


def test_live_records_have_recovered_from_a_replay_once_they_are_as_quick_as_before_it(measured):
    start = measured.run.start
    told = RecordedBackfill("hour", 0.0, 1.0, due_at=start + 120, planned_at=start + 110)
    told = replace(told, ordered_at=start + 60, done_at=start + 100.0)
    seconds = measured.seconds.copy()
    seconds["latency_max_s"] = 0.1
    seconds.loc[100:106, "latency_max_s"] = 50.0
    found = replace(measured, run=replace(measured.run, backfill=told), seconds=seconds)
    assert measure_operation(found)["live_recovery_s"] == 7.0
    seconds.loc[seconds.index % 3 != 1, "latency_max_s"] = np.nan
    assert measure_operation(found)["live_recovery_s"] == 9.0, "seconds without a record pass, too"
    seconds.loc[100:, "latency_max_s"] = 50.0
    assert measure_operation(found)["live_recovery_s"] == len(seconds) - 100, "they are slow to the end"
    seconds.loc[100:, "latency_max_s"] = np.nan
    assert measure_operation(found)["live_recovery_s"] is None


def test_a_report_by_hand():
    """Ten seconds, a record in each but the last, whose record is never committed; a failure at 3, late until 6."""
    made = np.arange(10.0)
    committed = np.append(made[:9] + 2.0, np.inf)
    slowest = np.where((made >= 4) & (made < 6), 5.1, 5.0)
    one = Operation(
        10.0, made, committed, np.array([np.nan, 5.0, 9.0]), [3.0, 7.5], slowest, 5.0, np.array([1.5, 2.0]),
        {"executors": [2, 3, 3, 2], "replay_rps": [None, None, 5.0]}, 100,
        error=np.array([1.0, 0.5, 0.0]), bound=np.array([2.0, 0.25, 0.0]),
    )  # fmt: skip
    assert describe_operation(one) == {
        "latency_s": {"p50": 2.0, "p95": 2.0, "p99": 2.0}, "watermark_lag_s": {"p50": 7.0, "most": 9.0},
        "memory_mb": 100, "recovery_s": 3.0, "live_recovery_s": None, "throughput_rps": {"mean": 0.9, "most": 0.9},
        "busy_core_s": 3.5, "moves_per_h": 1080.0, "error_of_bound": {"p50": 1.25, "most": 2.0},
    }  # fmt: skip
    assert describe_operation(replace(one, bound=None))["error_of_bound"] is None
    wrong = replace(one, error=np.array([1.0, 0.5, 0.1]))
    assert describe_operation(wrong)["error_of_bound"] == {"p50": 2.0, "most": np.inf}, "an exact claim that is wrong"


def test_latency_of_a_query_that_stops_is_at_least_what_its_records_have_waited():
    """Ten records, of which the last five, waiting for 5 to 1 s by the end, are never committed."""
    made = np.arange(10.0)
    committed = np.append(made[:5] + 2.0, np.full(5, np.inf))
    one = Operation(10.0, made, committed, np.empty(0), [], committed - made, 5.0, np.empty(0), {})
    assert describe_operation(one)["latency_s"] == {"p50": 2.0, "p95": 4.55, "p99": 4.91}
