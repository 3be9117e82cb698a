"""What is made of recorded raises: phases by hand, predictions, arms in turn."""

import dataclasses
import json
import math
import os

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.bench.raises.measure import PER_SESSION, next_session
from pipelines.bench.raises.phases import FIRST_JUDGED, PHASES, judge_predictions, measure_phases
from pipelines.bench.raises.recorded import match_raises, read_raises
from pipelines.bench.raises.summary import summarise_sessions
from pipelines.bench.raises.text import format_raises
from pipelines.report.recorded.eventlog import EXECUTORS, TASKS, EventLog
from tidecast.messages import Outcome


def outcome(decision="d1", decided_at=100.0, useful_at=109.0, **fields):
    told = {
        "status": "confirmed", "confirmed_at": decided_at + 3.2, "useful_at": useful_at,
        "wall_time": useful_at or decided_at + 60, "target": 3, **fields,
    }  # fmt: skip
    return dataclasses.asdict(
        Outcome(
            decision_id=decision, job="words", time=0.0, time_scale=1.0, reason="", executors_before=2,
            decided_at=decided_at, applied_at=decided_at + 0.1, **told,
        )
    )  # fmt: skip


def given_up(decision="d1", decided_at=100.0):
    return outcome(decision, decided_at, None, status="ineffective", confirmed_at=None)


def log(executors, tasks):
    """Executors as (id, added); tasks as (executor, start, end, deserialize_s, python_s)."""
    came = pd.DataFrame([("app", *e, math.nan, "") for e in executors], columns=EXECUTORS)
    ran = pd.DataFrame([("app", "q", 1, 1, t[0], t[1], t[2], False, *t[3:]) for t in tasks], columns=TASKS)
    return EventLog(ran, came)


def raised(took=9.0, registered=3.0, decided_at=100.0, decision="d1"):
    """A raise that took so many seconds until it was of use."""
    at = decided_at
    return {
        "outcome": outcome(decision, at, at + took), "launched_at": at + 0.2, "registered_at": at + registered,
        "task_began_at": at + 4.0, "task_ended_at": at + 7.0, "deserialize_s": 0.5, "python_s": 0.25,
    }  # fmt: skip


def test_the_executor_of_a_raise_and_its_first_task_are_found():
    recorded = log(
        [("0", 50.0), ("1", 51.0), ("2", 103.0), ("3", 203.1)],
        [("0", 99.0, 101.0, 0.1, 0.0), ("2", 106.5, 108.0, 0.2, 0.1), ("2", 104.0, 106.5, 1.25, 0.75)],
    )
    lowered = {**outcome("down", 150.0), "target": 1}
    first, second = match_raises([outcome("up"), lowered, outcome("again", 200.0, 209.0)], recorded, {"2": 100.2})
    assert first["outcome"]["decision_id"] == "up"
    assert {name: value for name, value in first.items() if name != "outcome"} == {
        "launched_at": 100.2, "registered_at": 103.0, "task_began_at": 104.0, "task_ended_at": 106.5,
        "deserialize_s": 1.25, "python_s": 0.75,
    }  # fmt: skip
    assert second["registered_at"] == 203.1
    assert second["launched_at"] is None and second["task_began_at"] is None


def test_of_a_raise_that_was_given_up_and_came_late_the_last_outcome_counts():
    late = outcome(useful_at=190.0, confirmed_at=180.0)
    (found,) = match_raises([given_up(), late], log([("2", 179.9)], []), {})
    assert found["outcome"] == late and found["registered_at"] == 179.9


def test_a_raise_in_which_two_executors_came_tells_of_none():
    (found,) = match_raises([outcome()], log([("2", 101.0), ("3", 102.0)], []), {"2": 100.2, "3": 100.3})
    assert found["registered_at"] is None and found["launched_at"] is None


def test_phases_by_hand():
    phases = measure_phases(raised())
    assert phases == pytest.approx({
        "request": 0.1, "launch": 0.1, "jvm": 2.8, "waiting": 1.0, "first_task": 3.0, "rest": 2.0,
        "deserialize": 0.5, "python": 0.25, "registered": 3.0, "useful": 9.0,
    })  # fmt: skip
    assert set(phases) == set(PHASES)


def test_what_is_not_known_is_left_out_and_what_was_given_up_has_no_phases():
    unknown = measure_phases({**raised(), "launched_at": None, "deserialize_s": None})
    assert set(PHASES) - set(unknown) == {"launch", "jvm", "deserialize"}
    assert measure_phases({**raised(), "outcome": given_up()}) is None


@given(st.lists(st.floats(0.001, 50.0), min_size=6, max_size=6))
def test_the_phases_make_up_the_whole(steps):
    ends = np.cumsum([100.0, *steps]).tolist()
    known = dict(zip(("launched_at", "registered_at", "task_began_at", "task_ended_at"), ends[2:6], strict=True))
    told = {**outcome(useful_at=ends[6]), "applied_at": ends[1], "confirmed_at": ends[3]}
    phases = measure_phases({"outcome": told, **known, "deserialize_s": None, "python_s": None})
    parts = ("request", "launch", "jvm", "waiting", "first_task", "rest")
    assert [phases[name] for name in parts] == pytest.approx(steps)
    assert sum(phases[name] for name in parts) == pytest.approx(phases["useful"])


def test_predictions_are_made_before_the_raise_that_they_are_held_against():
    steady = [outcome(f"d{i}", 1000.0 * i, 1000.0 * i + 9.0) for i in range(8)]
    odd = outcome("odd", 9000.0, 9090.0)
    judged = judge_predictions([*steady, odd], prior_s=9.0)
    assert [one["judged"] for one in judged["each"]] == [False] * (FIRST_JUDGED - 1) + [True] * 5
    assert judged["n"] == 5 and judged["within"] == 0.8  # the odd one came as a surprise
    assert judged["each"][-1]["high"] < 90.0 == judged["each"][-1]["took"]
    assert judge_predictions(steady, prior_s=9.0)["within"] == 1.0


def test_a_raise_that_was_given_up_was_not_predicted_and_one_that_says_nothing_is_passed_over():
    steady = [outcome(f"d{i}", 1000.0 * i, 1000.0 * i + 9.0) for i in range(5)]
    unused = outcome("unused", 7000.0, None, status="ineffective")
    judged = judge_predictions([*steady, unused, given_up("lost", 8000.0)], prior_s=9.0)
    assert [one["within"] for one in judged["each"]] == [True] * 5 + [False]
    assert (judged["n"], judged["within"]) == (2, 0.5)


def test_the_interval_holds_what_it_says_where_starts_are_as_it_supposes():
    took = np.exp(np.log(7.0) + 0.15 * np.random.default_rng(3).standard_normal(150))
    raises = [outcome(f"d{i}", 1000.0 * i, 1000.0 * i + max(s, 3.3)) for i, s in enumerate(took)]
    judged = judge_predictions(raises, prior_s=10.0)
    assert judged["n"] == 146 and 0.85 <= judged["within"] <= 0.97


def session(arm, *took, **more):
    known = [raised(s, 2.0, 1000.0 * i, f"{arm}{i}") for i, s in enumerate(took)]
    return {"arm": arm, "commit": "abc", "busy_before": 0.1, "raises": known, **more}


def test_a_summary_by_hand():
    lost = {**raised(decision="lost", decided_at=9000.0), "outcome": given_up("lost", 9000.0)}
    ours = session("ours", 7.5, 8.0, 8.5)
    ours["raises"].append(lost)
    made = summarise_sessions([ours, session("stock", 16.0, 16.0), session("ours", 8.0, busy_before=0.4)], 10.0)
    assert made["raises"] == {"ours": 4, "stock": 2} and made["given_up"] == {"ours": 1, "stock": 0}
    assert made["useful"]["ours"]["p50"] == 8.0 and made["useful"]["stock"] == {"p50": 16.0, "p95": 16.0}
    assert made["useful"]["ratio"]["p50"] == 0.5
    assert made["useful"]["ratio"]["p50_low"] <= 0.5 <= made["useful"]["ratio"]["p50_high"]
    assert made["busy_before"] == pytest.approx(0.2)
    assert [one["raises"] for one in made["sessions"]] == [4, 2, 1]
    assert made["phases"][-1] == {
        "phase": PHASES["useful"], "ours, p50 s": 8.0, "ours, p95 s": 8.425, "stock, p50 s": 16.0, "stock, p95 s": 16.0
    }  # fmt: skip
    assert "ours: 4 raises, 1 given up" in format_raises(made)
    json.dumps(made, allow_nan=False)


def test_nothing_measured_is_told_as_nothing():
    made = summarise_sessions([], 10.0)
    assert made["raises"] == {"ours": 0, "stock": 0} and made["useful"]["ratio"] == {}
    assert "none was judged" in format_raises(made)


@pytest.mark.parametrize("raises", [1, 25, 60])
def test_the_arms_take_turns_and_which_is_first_does_too(raises):
    done = []
    while (turn := next_session(done, raises)) is not None:
        done.append({"arm": turn[0], "raises": [None] * turn[1]})
    count = math.ceil(raises / PER_SESSION)
    assert [one["arm"] for one in done] == ["ours", "stock", "stock", "ours", "ours", "stock"][: 2 * count]
    for arm in ("ours", "stock"):
        assert sum(len(one["raises"]) for one in done if one["arm"] == arm) == raises


def test_what_was_broken_off_goes_on_with_the_arm_that_is_behind():
    done = [{"arm": "ours", "raises": [None] * 6}]
    assert next_session(done, 30) == ("stock", 25)
    done += [{"arm": "stock", "raises": [None] * 25}]
    assert next_session(done, 30) == ("stock", 5)
    assert next_session([*done, {"arm": "stock", "raises": [None] * 5}], 30) == ("ours", 24)


def test_a_session_is_read_from_the_files_that_it_left(tmp_path):
    run_dir, work_dir = tmp_path / "run", tmp_path / "work"
    (run_dir / "eventlog").mkdir(parents=True)
    (run_dir / "words.json").write_text('{"application": "app-1"}')
    (run_dir / "outcomes.jsonl").write_text(json.dumps(outcome()) + "\n")
    info = {"Executor ID": "2", "Launch Time": 104000, "Finish Time": 107000, "Failed": False, "Killed": False}
    told = {
        "time to start Python workers": "150",
        "number of output rows": "9",
        "time to initialize Python workers": "100",
    }
    spent = [{"Name": name, "Update": value} for name, value in told.items()]
    events = [
        {"Event": "SparkListenerExecutorAdded", "Timestamp": 103000, "Executor ID": "2"},
        {"Event": "SparkListenerJobStart", "Stage IDs": [4],
         "Properties": {"sql.streaming.queryId": "q", "streaming.sql.batchId": "7"}},
        {"Event": "SparkListenerTaskEnd", "Stage ID": 4, "Task Info": {**info, "Accumulables": spent},
         "Task Metrics": {"Executor Deserialize Time": 500}},
    ]  # fmt: skip
    lines = [json.dumps(event, separators=(",", ":")) for event in events]
    (run_dir / "eventlog" / "app-1").write_text("\n".join(lines) + "\n")
    for name, text in (("2", ""), ("3", "it has spoken, so that the time of its start is lost")):
        file = work_dir / "app-1" / name / "stdout"
        file.parent.mkdir(parents=True)
        file.write_text(text)
        os.utime(file, (100.2, 100.2))
    (found,) = read_raises(run_dir, work_dir, "words")
    assert measure_phases(found) == pytest.approx(measure_phases(raised()))
