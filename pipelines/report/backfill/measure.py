"""A run's backfill, measured: how it went on, what its rate was decided by, and what live records had of it."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from models.contract.relief import ReliefStep
from models.policy.replays.recomputed import recompute_interval
from pipelines.report.measures import RunMeasures
from pipelines.report.recorded.backfill import RecordedBackfill
from pipelines.report.time_axis import trace_moments

_PROGRESS = ["wall_time", "state", "done", "admitted_rps", "rps", "executors"]
_CONTROL = ["wall_time", "replay_rps", "live_rps", "executors", "step", "bound", "prices"]
LEVELS = {"p50": 50, "p99": 99}
"""Quantiles of live latency that are told beside and without the backfill, per cent."""


@dataclass(frozen=True, eq=False)
class BackfillMeasures:
    """A run's backfill.

    Attributes:
        told: as it was ordered, and what was heard of it.
        begin, end: wall times, epoch seconds: of the order (or when it should have been given), and of its end or that
            of the live load.
        progress: a row per word on it: `wall_time`, `state`, `done`, `admitted_rps`, `rps`, `executors`.
        control: a row per written decision meanwhile: `wall_time`, `replay_rps`, `live_rps` (most live records that are
            admitted, None: all), `executors` (beyond the live job's), `step` (of the relief ladder), `bound` (names of
            the limits at which the rate stood), `prices` (multiplier by limit).
    """

    told: RecordedBackfill
    begin: float
    end: float
    progress: pd.DataFrame
    control: pd.DataFrame


def measure_backfill(measured: RunMeasures) -> BackfillMeasures | None:
    """Measure a run's backfill from its record and from what the decisions say of it; None where there was none.

    Raises:
        KeyError, models.contract.declared.TermsError: a decision's inputs on replays are not as they were written.
    """
    told = measured.run.backfill
    if told is None:
        return None
    begin = told.due_at if told.ordered_at is None else told.ordered_at
    end = measured.live_end if told.done_at is None else told.done_at
    progress = pd.DataFrame(told.progress or None, columns=_PROGRESS)
    return BackfillMeasures(told, min(begin, end), end, progress, _controls(measured.acts))


def summarize_backfill(measured: RunMeasures) -> dict[str, Any] | None:
    """Return the summary of a run's backfill as JSON values; None where the run had none.

    Returns:
        `from`, `to` (of the range), `planned_end`, `deadline`, `done_at` (trace times, ISO 8601; None: not done),
        `done`, `as_planned` (done, and by then), `in_time` (done, by the deadline), `state`, `reason`, `plan`;
        `records`; `windows_differed`, `windows_corrected`, `windows_wrong` (None: not counted); `took_s` (wall seconds
        from order to end; None: never ordered) and `rps` (records replayed per second of them); `live_promise_kept`
        (over these seconds alone), `late_s` of `produced_s`, `late_share`; `latency_s`, live latency `beside` it and
        `alone` (`p50`, `p99`, `n`; as `RunMeasures.latency_s`); `executor_s`, those lent to it, summed; `highest_step`
        of relief.

    Raises:
        KeyError, models.contract.declared.TermsError: as `measure_backfill`.
        ZoneInfoNotFoundError: the trace's time zone is unknown here.
    """
    found = measure_backfill(measured)
    if found is None:
        return None
    run, told, end = measured.run, found.told, found.end
    windows = told.windows or {}
    late_s, produced_s = _late_seconds(measured, found.begin, end)
    share = late_s / max(produced_s, 1)
    took_s = None if told.ordered_at is None else end - told.ordered_at
    replayed = found.progress["done"].max() if len(found.progress) else 0
    highest = max(found.control["step"], default=0)
    return {
        "from": _moment(measured, run.clock.wall_at(told.begin)), "to": _moment(measured, run.clock.wall_at(told.end)),
        "planned_end": _moment(measured, told.planned_at), "deadline": _moment(measured, told.due_at),
        "done_at": _moment(measured, told.done_at), "done": told.done_at is not None,
        "as_planned": told.done_at is not None and told.done_at <= told.planned_at,
        "in_time": told.done_at is not None and told.done_at <= told.due_at,
        "state": told.state, "reason": told.reason, "plan": told.plan, "records": told.records,
        **{f"windows_{name}": windows.get(name) for name in ("differed", "corrected", "wrong")},
        "took_s": took_s and round(took_s, 1), "rps": round(float(replayed) / took_s, 1) if took_s else None,
        "live_promise_kept": share <= run.contract.error_budget, "late_s": late_s, "produced_s": produced_s,
        "late_share": round(share, 4), "latency_s": _latencies(measured, found.begin, end),
        "executor_s": _lent(found), "highest_step": ReliefStep(highest).name.lower(),
    }  # fmt: skip


def limits_met(found: BackfillMeasures) -> list[tuple[str, int]]:
    """Return at which limits the decided rates stood, and how many of the written decisions did, most first."""
    return Counter(name for bound in found.control["bound"] for name in bound).most_common()


def _controls(acts: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for act in acts.to_dict("records"):
        if (inputs := act["inputs"].get("replay")) is None:
            continue
        closed = recompute_interval(inputs)
        bound = closed.line.get("caps", [])
        added = inputs.get("added", inputs.get("executors", 0))  # in older logs what the schedule asked for
        step = act["inputs"].get("relief", {}).get("step", 0)  # as decided: another controller climbs otherwise
        rows.append([act["wall_time"], act["replay_rps"], act.get("admission_rps"), added, step, bound,
                     dict(closed.state.multipliers)])  # fmt: skip
    return pd.DataFrame(rows or None, columns=_CONTROL)


def _late_seconds(measured: RunMeasures, begin: float, end: float) -> tuple[int, int]:
    """How many seconds of production were late, and how many there were, from begin to end."""
    start, target = measured.run.start, measured.run.contract.latency_target_s
    during = measured.seconds.loc[math.floor(max(begin - start, 0)) : math.ceil(end - start) - 1]
    return int((during["latency_max_s"] > target).sum()), int((during["produced"] > 0).sum())


def _latencies(measured: RunMeasures, begin: float, end: float) -> dict[str, dict[str, Any]]:
    """Quantiles of live latency of what was produced beside the backfill, and of all else."""
    made_at = measured.run.produced["produced_at"].to_numpy(float)
    latency, beside = measured.latency_s, (made_at >= begin) & (made_at < end)
    told = {}
    for name, those in (("beside", latency[beside]), ("alone", latency[~beside])):
        quantiles = np.percentile(those, [*LEVELS.values()]).round(3).tolist() if len(those) else [None] * len(LEVELS)
        told[name] = {**dict(zip(LEVELS, quantiles, strict=True)), "n": len(those)}
    return told


def _lent(found: BackfillMeasures) -> float:
    """Executor-seconds that were asked for, or kept, on behalf of the backfill."""
    at = np.append(found.control["wall_time"].to_numpy(float), found.end)
    lasted = np.clip(np.diff(at), 0, None)
    return round(float((lasted * found.control["executors"].to_numpy(float)).sum()), 1)


def _moment(measured: RunMeasures, wall: float | None) -> str | None:
    if wall is None:
        return None
    return trace_moments(measured.run, [wall - measured.run.start])[0].isoformat(timespec="seconds")
