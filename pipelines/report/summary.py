"""A run's `summary.json`: one flat object with stable keys, each defined in `KEYS`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from configs.contract import Contract
from pipelines.report import accuracy, actions
from pipelines.report.alternatives import price_run
from pipelines.report.backfill.measure import summarize_backfill
from pipelines.report.causes import CAUSES, late_seconds_by_cause
from pipelines.report.measures import RunMeasures, begin_and_end, lost_executors, measure_run
from pipelines.report.operation import measure_operation
from pipelines.report.recorded import run as read
from pipelines.report.seconds import executor_seconds, longest_pause, percentiles

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
    "late_dropped": "records that came when their windows were final, and that no backfill has counted since",
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
    "stopped_s": "seconds all through which a record waited and no task ran, beyond what the trigger lets it wait",
    "stopped_in_action_s": "those of them in which a scale action was under way",
    "longest_pause_s": "longest time in which a record waited and no task of the query ran; between batches, too",
    "restarts": "restarts of the query",
    "failed_tasks": "tasks of the query that failed",
    "executors_lost": "executors that left without having been asked to",
    "decision_to_executor_s": "decision to all its executors seen, scale-ups only",
    "decision_to_useful_s": "decision to the end of the first batch that used its executors, scale-ups only",
    "metric_to_decision_s": "metrics record to the first decision made with it",
    "lead_s": "lead time that was planned for at first and at last, median at last, raises it was learned from",
    "latency_s": "production of a record to the commit of the batch that counted it, over every live record; of an "
    "unfinished one to the end, so that it took at least as long",
    "promise": "latency target, share of seconds that may be late, that was, kept or not, late seconds counted live, "
    "and the share of the run's budget that was spent when a decision first announced a shortage or a fast burn",
    "cost": "executor_s, live_executor_s (all of them that no backfill asked for), money (by the contract's price per "
    "executor-hour; None without one), and by the job's twin what others would take: the smallest fixed number, "
    "`reactive` by the same promise, who knows the whole load; None where none keeps the promise, or too little was "
    "measured for a twin",
    "backfill": "of an hour of the live day, beside live load: range, planned and real end, windows corrected of those "
    "that differed, live promise, late seconds and latency meanwhile, executor-seconds asked for it; None: none",
    "latency_target_s": "the contract's promise for that",
    "over_target_s": "seconds of production in which any record took longer than the target",
    "late_causes": "these seconds by cause, each by the first that holds: "
    + "; ".join(f"{cause}: {meaning}" for cause, meaning in CAUSES.items()),
    "executor_s": "executors registered, summed over live_s",
    "static_executor_s": "what the contract's most executors would have cost over live_s",
    "static_fixed_executor_s": "what the contract's fixed number (`static_executors`) would have cost over live_s",
    "mean_executors": "executor_s / live_s",
    "forecast_model": "the model that served last, None if none did",
    "forecast_version": "its version in the registry",
    "forecast_error": "per version: WAPE and RMSE of the median, share of steps at or under `level`, "
    "the one nearest to 0.9, by steps ahead",
    "challenger": "the model trained on history and live load, its loss, and what the gate said of it",
    "newcomer": "a job with a short history, met after the live load: what other loads taught it, what the gate said",
    "operation": "latency to its 99 % quantile, watermark lag, memory, recovery, throughput, busy core-seconds and "
    "control moves; the page says what each means",
    "peak_memory_mb": "highest memory of all processes together",
    "cores": "of the computer; None in older runs, as `cores_busy`",
    "cores_busy": "share of their time in which they were busy while the load came, with whatever ran",
}  # fmt: skip


def write_summary(run_dir: Path) -> dict[str, Any]:
    """Compute a run's summary, write it to `summary.json` in its folder, replacing an older one, and return it.

    `KEYS` defines the keys.

    Raises:
        RunError, EventLogError: a file of the run or Spark's event log is missing or broken.
        KeyError, TypeError, ValueError: a file lacks a field, or holds a wrong value.
        ZeroDivisionError: the run lasted no time.
        OSError: a file cannot be read, or the summary cannot be written.
    """
    return keep_summary(measure_run(read.load_run(run_dir)))


def keep_summary(measured: RunMeasures) -> dict[str, Any]:
    """Write the summary of a run that was measured to `summary.json` in its folder, and return it; see `write_summary`.

    Raises:
        KeyError: `run.json` or `counts.json` lacks a key.
        ValueError: a figure is no number of JSON.
        ZeroDivisionError: the run lasted no time.
        OSError: it cannot be written.
    """
    summary = summary_of(measured)
    (measured.run.folder / "summary.json").write_text(json.dumps(summary, indent=1, allow_nan=False) + "\n")
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
    latency = measured.latency_s
    paid = executor_seconds(*begin_and_end(run.executors, "added", "removed"), run.start, measured.live_end)
    model, version = run.forecasts[["model", "version"]].iloc[-1] if len(run.forecasts) else (None, None)
    backfill = summarize_backfill(measured)
    figures = {
        **{key: run.info[key] for key in ("id", "policy", "job", "time_scale")},
        "trace": run.info["replay"]["trace"],
        **{key: run.counts[key] for key in ("produced", "counted", "lost", "duplicated")},
        "late": run.truth.get("late", 0),
        "late_dropped": run.counts.get("late_dropped", 0),
        "rejected": len(run.rejects),
        "unfinished": int(np.isinf(measured.committed).sum()),
        **actions.count_decisions(measured.acts, actions.made_between(run.outcomes, run.start, run.end)),
        **{name: percentiles(values) for name, values in actions.action_delays(measured.acts).items()},
        "lead_s": actions.learned_lead(measured.acts),
        "stopped_s": int(seconds["stopped"].sum()),
        "stopped_in_action_s": int((seconds["stopped"] & seconds["in_action"]).sum()),
        "longest_pause_s": round(
            longest_pause(*begin_and_end(run.tasks, "start", "end"), made_at, measured.committed), 3
        ),
        "restarts": len(set(run.batches.runs)) - 1,
        "failed_tasks": int(run.tasks["failed"].sum()),
        "executors_lost": int(lost_executors(measured).sum()),
        "latency_s": {**percentiles(latency), "max": round(float(latency.max()), 3) if len(latency) else None},
        "promise": judge_promise(measured),
        "cost": {
            "executor_s": round(paid, 1),
            "live_executor_s": round(paid - (backfill or {}).get("executor_s", 0.0), 1),
            "money": _money(run.contract, paid),
            **price_run(measured),
        },
        "backfill": backfill,
        "latency_target_s": target,
        "over_target_s": int((seconds["latency_max_s"] > target).sum()),
        "late_causes": late_seconds_by_cause(measured),
        "produced_s": int((seconds["produced"] > 0).sum()),
        "live_s": round(live_s, 1),
        "executor_s": round(paid, 1),
        "static_executor_s": round(run.contract.executors.max * live_s, 1),
        "static_fixed_executor_s": round(run.contract.planning.static_executors * live_s, 1),
        "mean_executors": round(paid / live_s, 2),
        "forecast_model": model,
        "forecast_version": version,
        "forecast_error": accuracy.error_by_version(measured.steps),
        "operation": measure_operation(measured),
        **{key: run.info.get(key) for key in ("challenger", "newcomer", "peak_memory_mb", "cores", "cores_busy")},
    }
    return {key: figures[key] for key in KEYS}


def _money(contract: Contract, executor_s: float) -> float | None:
    price = contract.price_per_executor_hour
    return None if price is None else round(executor_s / 3600 * price, 4)


def judge_promise(measured: RunMeasures) -> dict[str, Any]:
    """Judge whether the live load was served as the contract promises.

    Returns:
        `target_s`, `budget` (share of seconds that may be late), `late_share` of the seconds in which anything was
        produced, `kept`; and `accounted_s`, the late seconds that the autoscaler had counted at its last decision (from
        its start on), None where it says nothing; `announced`, the share of the run's budget that was spent when a
        decision first said that the promise is in danger (codes `shortage` and `burn`), None where none did.
    """
    contract, seconds = measured.run.contract, measured.seconds
    is_late, produced_s = seconds["latency_max_s"] > contract.latency_target_s, int((seconds["produced"] > 0).sum())
    late = int(is_late.sum())
    share = late / max(produced_s, 1)
    allowed_s, warned = contract.error_budget * max(produced_s, 1), actions.first_warning(measured.acts)
    before = None if warned is None else int(is_late.iloc[: max(int(warned - measured.run.start), 0)].sum())
    told = [inputs["promise"]["late_s"] for inputs in measured.acts["inputs"] if "promise" in inputs]
    return {
        "target_s": contract.latency_target_s, "budget": contract.error_budget, "late_share": round(share, 4),
        "kept": share <= contract.error_budget, "accounted_s": told[-1] if told else None,
        "announced": None if before is None else round(before / allowed_s, 4),
    }  # fmt: skip
