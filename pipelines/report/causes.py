"""Why seconds were late: each of them has exactly one cause, the first of `CAUSES` that holds for it."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pipelines.report.actions import APPLIED
from pipelines.report.measures import RunMeasures, lost_executors

CAUSES = {
    "failure": "a task failed, an executor was lost or the query restarted before its records were committed",
    "broker": "a batch waited over a quarter of the latency target for the broker to tell its newest offsets",
    "ceiling": "all executors that the contract allows were there",
    "lead_too_short": "executors had been asked for and had not come",
    "cold_batch": "a batch waited for the first task of a new executor",
    "forecast_too_low": "more arrived than the executors sustain, and no more had been asked for",
    "batch": "none of these: batches took long all the same",
}
"""Causes and what they mean, in the order in which they are looked for."""

SLOW_BROKER = 0.25
"""Share of the latency target that a batch's wait for offsets must exceed."""
Mask = NDArray[np.bool_]


def late_seconds_by_cause(measured: RunMeasures) -> dict[str, int]:
    """Count a run's late seconds (those in which a record was produced that took longer than the target) by cause.

    Raises:
        KeyError: a decision's inputs lack `capacity_rps`.
    """
    seconds, contract = measured.seconds, measured.run.contract
    latency = seconds["latency_max_s"].to_numpy(float)
    late = latency > contract.latency_target_s
    begins = measured.run.start + np.arange(len(seconds))
    ends = np.where(np.isfinite(latency), begins + 1 + latency, np.inf)  # its slowest record was committed by then
    there = _executors_at(measured, begins + 1)
    held = {
        "failure": _meets(begins, ends, *_failures(measured)),
        "broker": _meets(begins, ends, *_broker_waits(measured)),
        "ceiling": there >= contract.executors.max,
        "lead_too_short": _meets(begins, begins + 1, *_raises(measured.acts)),
        "cold_batch": _meets(begins, ends, *_cold_batches(measured)),
        "forecast_too_low": seconds["produced"].to_numpy(float) > _capacity_at(measured.acts, begins + 1),
        "batch": np.ones(len(late), bool),
    }
    open_, found = late.copy(), {}
    for cause in CAUSES:
        found[cause] = int((open_ & held[cause]).sum())
        open_ &= ~held[cause]
    return found


def _meets(begins: np.ndarray, ends: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> Mask:
    """(N,) whether any of the stretches from `starts` to `stops` has a moment in common with each second's."""
    both = (starts[None, :] < ends[:, None]) & (stops[None, :] > begins[:, None])
    return np.asarray(both.any(axis=1), bool)


def _executors_at(measured: RunMeasures, at: np.ndarray) -> np.ndarray:
    executors = measured.run.executors
    added, removed = executors["added"].to_numpy(float), executors["removed"].fillna(np.inf).to_numpy(float)
    there: np.ndarray = ((added[None, :] <= at[:, None]) & (removed[None, :] > at[:, None])).sum(axis=1)
    return there


def _failures(measured: RunMeasures) -> tuple[np.ndarray, np.ndarray]:
    run = measured.run
    runs = np.array(run.batches.runs)
    restarted = run.batches.started[1:][runs[1:] != runs[:-1]]
    failed = run.tasks.loc[run.tasks["failed"], "end"].to_numpy(float)
    lost = run.executors.loc[lost_executors(measured), "removed"].to_numpy(float)
    at = np.concatenate([restarted, failed, lost])
    return at, at + 1e-3


def _broker_waits(measured: RunMeasures) -> tuple[np.ndarray, np.ndarray]:
    batches = measured.run.batches
    slow = batches.offsets_s > SLOW_BROKER * measured.run.contract.latency_target_s
    return batches.started[slow], batches.started[slow] + batches.offsets_s[slow]


def _raises(acts: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    ups = acts[acts["up"] & acts["status"].isin(APPLIED)]
    return ups["decided_at"].to_numpy(float), ups["confirmed_at"].fillna(ups["closed_at"]).to_numpy(float)


def _cold_batches(measured: RunMeasures) -> tuple[np.ndarray, np.ndarray]:
    run = measured.run
    live = run.executors.loc[run.executors["added"] >= run.start, "executor"]
    first = run.tasks[run.tasks["executor"].isin(live)].sort_values("start").groupby("executor")["batch"].first()
    cold = np.isin(run.batches.ids, first.to_numpy())
    return run.batches.started[cold], run.batches.committed[cold]


def _capacity_at(acts: pd.DataFrame, at: np.ndarray) -> np.ndarray:
    """(N,) records/s that the executors there sustain, as the newest decision by then had it; inf before one."""
    told = [(made, inputs["capacity_rps"]) for made, inputs in zip(acts["wall_time"], acts["inputs"], strict=True)
            if inputs.get("capacity_rps") is not None]  # fmt: skip
    if not told:
        return np.full(len(at), np.inf)
    made, capacity = np.array(told, float).T
    return np.append(np.inf, capacity)[np.searchsorted(made, at, side="right")]
