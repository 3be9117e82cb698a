"""Each late second has one cause; here every cause has a second of its own."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from configs.contract import Contract
from pipelines.report.causes import CAUSES, late_seconds_by_cause
from pipelines.report.measures import measure_run
from pipelines.report.recorded.run import load_run
from pipelines.report.summary import write_summary
from tests.fakes import run_dir

START = 1000.0
CONTRACT = Contract(job="j", latency_target_s=5.0, executors={"min": 1, "max": 3})


def a_run(latency, produced=10.0, executors=(), raises=(), batches=(), tasks=(), capacity=100.0, waits=None):
    """Seconds since START throughout."""
    latency = np.asarray(latency, float)
    acts = pd.DataFrame([
        {"wall_time": START, "inputs": {"capacity_rps": capacity}, "up": False, "status": None,
         "decided_at": np.nan, "confirmed_at": np.nan, "closed_at": np.nan},
        *({"wall_time": START + at, "inputs": {}, "up": True, "status": "confirmed", "decided_at": START + at,
           "confirmed_at": START + came, "closed_at": START + came} for at, came in raises),
    ])  # fmt: skip
    known = [("0", -50.0, np.nan, ""), *executors]
    columns = ["executor", "added", "removed", "reason"]
    there = pd.DataFrame([(name, START + a, START + r, why) for name, a, r, why in known], columns=columns)
    done = pd.DataFrame([(e, b, START + s, START + t, f) for e, b, s, t, f in tasks],
                        columns=["executor", "batch", "start", "end", "failed"]).astype({"failed": bool})  # fmt: skip
    ids, begun, ended = (np.array(column, float) for column in zip(*(batches or [(0, -9, -8)]), strict=True))
    run = SimpleNamespace(
        contract=CONTRACT, start=START, executors=there, tasks=done,
        batches=SimpleNamespace(ids=ids, started=START + begun, committed=START + ended, runs=["r"] * len(ids),
                                offsets_s=np.zeros(len(ids)) if waits is None else np.array(waits)),
    )  # fmt: skip
    seconds = pd.DataFrame({"latency_max_s": latency, "produced": np.full(len(latency), produced)})
    return SimpleNamespace(run=run, seconds=seconds, acts=acts, live_end=START + len(latency))


def only(cause, count=1):
    return dict.fromkeys(CAUSES, 0) | {cause: count}


LATE = [1.0, 1.0, 6.0, 1.0]


@pytest.mark.parametrize("cause, given", [
    ("failure", {"tasks": [("0", 1, 3.0, 4.0, True)]}),
    ("failure", {"executors": [("1", -9.0, 3.5, "lost")]}),
    ("broker", {"batches": [(7, 2.0, 9.0)], "waits": [1.5], "produced": 101.0}),
    ("forecast_too_low", {"batches": [(7, 2.0, 9.0)], "waits": [1.2], "produced": 101.0}),
    ("ceiling", {"executors": [("1", -9.0, np.nan, ""), ("2", -9.0, np.nan, "")]}),
    ("lead_too_short", {"raises": [(1.0, 9.0)]}),
    ("cold_batch", {"executors": [("1", 1.5, np.nan, "")], "batches": [(7, 4.0, 9.0)],
                    "tasks": [("1", 7, 4.5, 8.0, False)]}),
    ("forecast_too_low", {"produced": 101.0}),
    ("batch", {}),
])  # fmt: skip
def test_a_late_second_has_the_cause_that_was_given(cause, given):
    assert late_seconds_by_cause(a_run(LATE, **given)) == only(cause)


def test_the_first_cause_that_holds_is_the_one():
    everything = {
        "produced": 101.0, "raises": [(1.0, 9.0)], "executors": [("1", 1.5, np.nan, "")],
        "batches": [(7, 4.0, 9.0)], "tasks": [("1", 7, 4.5, 8.0, False)],
    }  # fmt: skip
    assert late_seconds_by_cause(a_run(LATE, **everything)) == only("lead_too_short")


def test_what_is_in_time_has_no_cause_and_what_never_came_has_one():
    assert late_seconds_by_cause(a_run([1.0, 5.0, np.nan])) == dict.fromkeys(CAUSES, 0)
    assert late_seconds_by_cause(a_run([1.0, np.inf, 1.0])) == only("batch")


def test_the_causes_of_a_run_add_up_to_its_late_seconds(tmp_path):
    run_dir.write(tmp_path, stop=(60.0, 12.0))
    summary = write_summary(tmp_path)
    assert sum(summary["late_causes"].values()) == summary["over_target_s"] > 0
    assert summary["late_causes"] == late_seconds_by_cause(measure_run(load_run(tmp_path)))
