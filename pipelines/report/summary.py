"""A run's `summary.json`: one flat object with stable keys, each defined in `KEYS`."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pipelines.report import accuracy, actions
from pipelines.report.recorded import run as read
from pipelines.report.recorded.run import RecordedRun
from pipelines.report.seconds import (
    commit_times,
    executor_seconds,
    latency_by_second,
    longest_pause,
    percentiles,
    tasks_by_second,
)

KEYS = {
    "id": "name of the run, and of its folder",
    "policy": "who decided: one of the policies that `tidecast run --policy` takes",
    "job": "the managed job that is reported",
    "trace": "the load that was replayed",
    "time_scale": "trace seconds per wall second",
    "live_s": "wall seconds from the first record produced to the last one committed; executors are paid over them",
    "produced_s": "wall seconds in which records were produced",
    "produced": "records produced, warm-up included, by the load generator's own count",
    "counted": "records in the job's results",
    "lost": "records produced and not counted",
    "duplicated": "records counted more than once",
    "late": "records produced late and out of order on purpose; they count like all others, from their production",
    "rejected": "records on the topic `rejects`, of any kind and cause",
    "unfinished": "live records that no batch had committed by the end",
    "scale_ups": "scale-ups that reached the cluster",
    "scale_downs": "scale-downs that reached the cluster",
    "scale_ups_by_forecast": "of the scale-ups, those the forecast caused: observed load alone asked for no more",
    "forecast_scale_ups_confirmed": "of these, those confirmed: the executors came and a batch used them",
    "ineffective": "decisions that had no effect within the time allowed",
    "refused": "decisions the agent refused (out of bounds, stale, doubled, malformed)",
    "failed": "decisions the cluster turned down",
    "decisions": "evaluations of the policy, holds included",
    "stood_in": "of these, those that another policy made because the one asked for had nothing to decide with",
    "stopped_s": "seconds all through which a record waited, and in which no task of the query ran",
    "stopped_in_action_s": "those of them in which a scale action was under way",
    "longest_pause_s": "longest time in which a record waited and no task of the query ran; between batches, too",
    "restarts": "restarts of the query",
    "failed_tasks": "tasks of the query that failed",
    "executors_lost": "executors that left without having been asked to",
    "decision_to_executor_s": "decision to all its executors seen, scale-ups only",
    "decision_to_useful_s": "decision to the end of the first batch that used its executors, scale-ups only",
    "metric_to_decision_s": "metrics record to the first decision made with it",
    "lead_s": "lead time that was planned for at first and at last, median at last, raises it was learned from",
    "latency_s": "production of a record to the commit of the batch that counted it, over every live record",
    "promise": "latency target, share of seconds that may be late, that was, kept or not, late seconds counted live",
    "latency_target_s": "the contract's promise for that",
    "over_target_s": "seconds of production in which any record took longer than the target",
    "executor_s": "executors registered, summed over live_s",
    "static_executor_s": "what the contract's most executors would have cost over live_s",
    "static_fixed_executor_s": "what the contract's fixed number (`static_executors`) would have cost over live_s",
    "mean_executors": "executor_s / live_s",
    "forecast_model": "the model that served last, None if none did",
    "forecast_version": "its version in the registry",
    "forecast_error": "per version: WAPE and RMSE of the median, share of steps within the 90 % level, by steps ahead",
    "challenger": "the model trained on history and live load, its loss, and what the gate said of it",
    "newcomer": "a job with a short history, met after the live load: what other loads taught it, what the gate said",
    "peak_memory_mb": "highest memory of all processes together",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class RunMeasures:
    """A run and what was computed from it once, for page and summary.

    Attributes:
        run: the run.
        committed: (N,) epoch seconds at which each produced record was committed, inf for never.
        live_end: wall time of the last commit of a live record, or the end of production if that is later.
        seconds: a row per second: columns of `latency_by_second` and `tasks_by_second`, `stopped` (all through it a
            record waited, and no task of the query ran) and `in_action` (a scale action was under way).
        acts: `actions.join_outcomes` of the live decisions.
        step_s: trace seconds per forecast step.
        steps: `accuracy.match_forecasts` of the live forecasts.
    """

    run: RecordedRun
    committed: np.ndarray
    live_end: float
    seconds: pd.DataFrame
    acts: pd.DataFrame
    step_s: float
    steps: pd.DataFrame


def measure_run(run: RecordedRun) -> RunMeasures:
    """Compute from a run all that page and summary share: commit times, seconds, actions, forecast steps.

    Without a forecast a step is taken for 1800 s of the trace.

    Raises:
        SeriesError: a time or rate of the metrics is not finite, or they span over a million steps.
        KeyError, ValueError: a message lacks a field, or holds a wrong value.
    """
    produced, batches = run.produced, run.batches
    partition, offset, made_at = (produced[name].to_numpy() for name in ("partition", "offset", "produced_at"))
    committed = commit_times(partition, offset, batches.committed, batches.ends)
    live_end = max([run.end, *committed[np.isfinite(committed)]])
    length = math.ceil(live_end - run.start)
    acts = actions.join_outcomes(run.decisions, run.outcomes)
    seconds = latency_by_second(made_at, committed, run.start, length).join(
        tasks_by_second(*_times(run.tasks, "start", "end"), run.start, length)
    )
    seconds["stopped"] = (seconds["waiting"] > 0) & ~seconds["ran"]
    seconds["in_action"] = actions.seconds_in_action(acts, run.start, length)
    step_s = float(run.forecasts["step_s"].iloc[-1]) if len(run.forecasts) else 1800.0
    steps = accuracy.match_forecasts(run.forecasts, accuracy.actual_load(run.arrivals, step_s))
    return RunMeasures(run, committed, live_end, seconds, acts, step_s, steps)


def write_summary(run_dir: Path) -> dict[str, Any]:
    """Compute a run's summary, write it to `summary.json` in its folder, replacing an older one, and return it.

    `KEYS` defines the keys.

    Raises:
        RunError, EventLogError: a file of the run or Spark's event log is missing or broken.
        KeyError, TypeError, ValueError: a file lacks a field, or holds a wrong value.
        ZeroDivisionError: the run lasted no time.
        OSError: a file cannot be read, or the summary cannot be written.
    """
    summary = summary_of(measure_run(read.load_run(run_dir)))
    (run_dir / "summary.json").write_text(json.dumps(summary, indent=1, allow_nan=False) + "\n")
    return summary


def summary_of(measured: RunMeasures) -> dict[str, Any]:
    """Return the summary of a run: the keys of `KEYS` in their order with JSON values, None for what is unknown.

    Delays and latencies (`decision_to_..._s`, `metric_to_decision_s`, `latency_s`) are dicts of `p50`, `p95` (s), `n`,
    and, for `latency_s`, `max`.

    Raises:
        KeyError: `run.json` or `counts.json` lacks a key.
        ZeroDivisionError: the run lasted no time.
    """
    run, seconds, target = measured.run, measured.seconds, measured.run.contract.latency_target_s
    made_at, live_s = run.produced["produced_at"].to_numpy(), measured.live_end - run.start
    latency = measured.committed - made_at
    finite = latency[np.isfinite(latency)]
    paid = executor_seconds(*_times(run.executors, "added", "removed"), run.start, measured.live_end)
    model, version = run.forecasts[["model", "version"]].iloc[-1] if len(run.forecasts) else (None, None)
    figures = {
        **{key: run.info[key] for key in ("id", "policy", "job", "time_scale")},
        "trace": run.info["replay"]["trace"],
        **{key: run.counts[key] for key in ("produced", "counted", "lost", "duplicated")},
        "late": run.truth.get("late", 0),
        "rejected": len(run.rejects),
        "unfinished": len(latency) - len(finite),
        **actions.count_decisions(measured.acts, actions.made_between(run.outcomes, run.start, run.end)),
        **{name: percentiles(values) for name, values in actions.action_delays(measured.acts).items()},
        "lead_s": actions.learned_lead(measured.acts),
        "stopped_s": int(seconds["stopped"].sum()),
        "stopped_in_action_s": int((seconds["stopped"] & seconds["in_action"]).sum()),
        "longest_pause_s": round(longest_pause(*_times(run.tasks, "start", "end"), made_at, measured.committed), 3),
        "restarts": len(set(run.batches.runs)) - 1,
        "failed_tasks": int(run.tasks["failed"].sum()),
        "executors_lost": int(lost_executors(measured).sum()),
        "latency_s": {**percentiles(latency), "max": round(float(finite.max()), 3) if len(finite) else None},
        "promise": judge_promise(measured),
        "latency_target_s": target,
        "over_target_s": int((seconds["latency_max_s"] > target).sum()),
        "produced_s": int((seconds["produced"] > 0).sum()),
        "live_s": round(live_s, 1),
        "executor_s": round(paid, 1),
        "static_executor_s": round(run.contract.executors.max * live_s, 1),
        "static_fixed_executor_s": round(run.contract.planning.static_executors * live_s, 1),
        "mean_executors": round(paid / live_s, 2),
        "forecast_model": model,
        "forecast_version": version,
        "forecast_error": accuracy.error_by_version(measured.steps),
        **{key: run.info.get(key) for key in ("challenger", "newcomer", "peak_memory_mb")},
    }
    return {key: figures[key] for key in KEYS}


def judge_promise(measured: RunMeasures) -> dict[str, Any]:
    """Judge whether the live load was served as the contract promises.

    Returns:
        `target_s`, `budget` (share of seconds that may be late), `late_share` of the seconds in which anything was
        produced, `kept`; and `accounted_s`, the late seconds that the autoscaler had counted at its last decision (from
        its start on), None where it says nothing.
    """
    contract, seconds = measured.run.contract, measured.seconds
    late = int((seconds["latency_max_s"] > contract.latency_target_s).sum())
    share = late / max(int((seconds["produced"] > 0).sum()), 1)
    told = [inputs["promise"]["late_s"] for inputs in measured.acts["inputs"] if "promise" in inputs]
    return {
        "target_s": contract.latency_target_s, "budget": contract.error_budget, "late_share": round(share, 4),
        "kept": share <= contract.error_budget, "accounted_s": told[-1] if told else None,
    }  # fmt: skip


def lost_executors(measured: RunMeasures) -> pd.Series:
    """Return (executors,) whether each of the run's left during the live load without having been asked to.

    Asked to are those removed by a decommission or the application's end. `measured.run.executors` is indexed alike.
    """
    executors = measured.run.executors
    during = executors["removed"].between(measured.run.start, measured.live_end)
    asked = executors["reason"].str.contains("decommission", case=False) | (executors["reason"] == "application ended")
    return during & ~asked


def _times(frame: pd.DataFrame, begin: str, end: str) -> tuple[np.ndarray, np.ndarray]:
    return frame[begin].to_numpy(float), frame[end].to_numpy(float)
