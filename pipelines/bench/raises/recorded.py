"""What is recorded of each raise of a session: its outcome, its executor's coming, its executor's first task."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan
from pathlib import Path
from typing import Any

from pipelines.report.recorded.eventlog import EventLog, read_event_logs
from pipelines.report.recorded.lines import json_lines, json_object


def read_raises(run_dir: Path, work_dir: Path, job: str) -> list[dict[str, Any]]:
    """Read the raises of a session from what it left, in order; see `match_raises`.

    Args:
        run_dir: of the session.
        work_dir: folder in which the Spark worker keeps a folder for each application and executor.
        job: name of the job.

    Raises:
        RunError, EventLogError: a file of the session is missing or broken.
        OSError, KeyError, ValueError: one cannot be read, or is not as Spark and the agent write it.
    """
    application = json_object(run_dir / f"{job}.json")["application"]
    # The worker opens this file right after it has started the executor's process, which never writes to it.
    logs = (work_dir / application).glob("*/stdout")
    launched = {path.parent.name: path.stat().st_mtime for path in logs if path.stat().st_size == 0}
    return match_raises(json_lines(run_dir / "outcomes.jsonl"), read_event_logs(run_dir / "eventlog"), launched)


def match_raises(outcomes: list[dict[str, Any]], log: EventLog, launched: Mapping[str, float]) -> list[dict[str, Any]]:
    """Find the executor of every raise by one executor, and its first task.

    Args:
        outcomes: fields of `tidecast.messages.Outcome`; of several of a decision the last counts.
        log: tasks and executors of the application.
        launched: when the process of an executor was started, epoch seconds, by id; may lack some.

    Returns:
        A dict each: `outcome`; `launched_at`, `registered_at`, `task_began_at` and `task_ended_at` (of the first
        attempt of a task on the executor), epoch seconds, and `deserialize_s` and `python_s` of that task; None for
        what did not come to pass or is not known.
    """
    raised = {o["decision_id"]: o for o in outcomes if o["target"] > o["executors_before"]}
    return [_match(outcome, log, launched) for outcome in raised.values()]


def _match(outcome: dict[str, Any], log: EventLog, launched: Mapping[str, float]) -> dict[str, Any]:
    until = outcome["wall_time"] if outcome["confirmed_at"] is None else outcome["confirmed_at"]
    came = log.executors[log.executors["added"].between(outcome["decided_at"], until)]
    found: dict[str, Any] = dict.fromkeys(
        ("launched_at", "registered_at", "task_began_at", "task_ended_at", "deserialize_s", "python_s")
    )
    if len(came) != 1:  # none, or one that was lost has come again as well
        return {"outcome": outcome, **found}
    name, found["registered_at"] = came["executor"].iloc[0], float(came["added"].iloc[0])
    found["launched_at"] = launched.get(name)
    tasks = log.tasks[log.tasks["executor"] == name].sort_values("start")
    if len(tasks):
        first = tasks.iloc[0]
        found |= {"task_began_at": float(first["start"]), "task_ended_at": float(first["end"])}
        found["deserialize_s"] = None if isnan(first["deserialize_s"]) else float(first["deserialize_s"])
        found["python_s"] = float(first["python_s"])
    return {"outcome": outcome, **found}
