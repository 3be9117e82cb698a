import json

import pytest

from pipelines.report.recorded import eventlog
from pipelines.report.recorded.eventlog import EventLogError

JOB = {"sql.streaming.queryId": "q", "streaming.sql.batchId": "7"}


def event(name, **fields):
    return json.dumps({"Event": f"SparkListener{name}", **fields}, separators=(",", ":"))


def task(stage, begin, end, executor="0", failed=False, killed=False):
    info = {
        "Executor ID": executor, "Launch Time": begin, "Finish Time": end, "Failed": failed, "Killed": killed,
    }  # fmt: skip
    return event("TaskEnd", **{"Stage ID": stage, "Task Info": info})


LINES = [
    event("ExecutorAdded", Timestamp=1000, **{"Executor ID": "0"}),
    event("ExecutorAdded", Timestamp=2000, **{"Executor ID": "1"}),
    event("JobStart", **{"Stage IDs": [4, 5], "Properties": JOB}),
    event("JobStart", **{"Stage IDs": [9], "Properties": {}}),
    event("StageSubmitted", Anything=[1, 2, 3]),
    task(4, 3000, 3500),
    task(5, 3500, 4250, executor="1", failed=True),
    task(5, 3500, 4250, executor="1", failed=True, killed=True),
    task(9, 3000, 9000),
    event(
        "ExecutorRemoved", Timestamp=5000, **{"Executor ID": "1", "Removed Reason": "Executor decommission: scale-in"}
    ),
    event("ExecutorRemoved", Timestamp=5500, **{"Executor ID": "1", "Removed Reason": "Command exited with code 0"}),
]


def check(log):
    assert log.tasks[["query", "batch", "stage", "executor", "start", "end", "failed"]].values.tolist() == [
        ["q", 7, 4, "0", 3.0, 3.5, False], ["q", 7, 5, "1", 3.5, 4.25, True], ["q", 7, 5, "1", 3.5, 4.25, False]
    ]  # fmt: skip
    executors = log.executors.set_index("executor")
    assert executors.loc["1", ["added", "removed"]].tolist() == [2.0, 5.0]
    assert executors.loc["1", "reason"] == "Executor decommission: scale-in"
    assert executors.loc["0", "removed"] != executors.loc["0", "removed"]  # NaN: it lived on


def test_one_file(tmp_path):
    (tmp_path / "app-1").write_text("\n".join(LINES) + "\n")
    check(eventlog.read_event_logs(tmp_path))


def test_a_driver_killed_in_the_middle_of_a_line(tmp_path):
    (tmp_path / "app-1.inprogress").write_text("\n".join([*LINES, LINES[0][:30]]))
    check(eventlog.read_event_logs(tmp_path))


def test_a_rolling_log_is_read_in_order(tmp_path):
    folder = tmp_path / "eventlog_v2_app-1"
    folder.mkdir()
    (folder / "appstatus_app-1").touch()
    for number, part in ((2, LINES[:3]), (10, LINES[3:])):  # 10 comes after 2
        (folder / f"events_{number}_app-1").write_text("\n".join(part) + "\n")
    check(eventlog.read_event_logs(tmp_path))


def test_stage_numbers_of_two_applications_do_not_mix(tmp_path):
    (tmp_path / "app-1").write_text("\n".join([*LINES, event("ApplicationEnd", Timestamp=6000)]) + "\n")
    (tmp_path / "app-2").write_text(task(4, 1, 2) + "\n")
    log = eventlog.read_event_logs(tmp_path)
    assert set(log.tasks["application"]) == {"app-1"}
    assert log.executors.set_index("executor").loc["0", "removed"] == 6.0


@pytest.mark.parametrize(("name", "text", "said"), [
    ("app-1.zstd", "x", "compress"), ("app-1", "{not json}\n" + LINES[0] + "\n", "app-1:1"),
    (None, "", "no Spark event log"),
])  # fmt: skip
def test_a_bad_log_is_named(tmp_path, name, text, said):
    if name:
        (tmp_path / name).write_text(text)
    with pytest.raises(EventLogError, match=said):
        eventlog.read_event_logs(tmp_path)


def test_of_an_executor_whose_begin_is_trimmed_away_the_first_task_tells(tmp_path):
    (tmp_path / "eventlog_v2_app-1").mkdir()
    (tmp_path / "eventlog_v2_app-1" / "events_7_app-1").write_text("\n".join([LINES[2], *LINES[5:]]) + "\n")
    executors = eventlog.read_event_logs(tmp_path).executors.set_index("executor")
    assert executors["added"].to_dict() == {"0": 3.0, "1": 3.5}
    assert executors.loc["1", "removed"] == 5.0
