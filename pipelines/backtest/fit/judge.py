"""How well a fitted twin reproduces runs, in figures and words: each is compared with a twin fitted to the others."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median_high
from typing import Any

import numpy as np

from models.twin.calibration.fit import Fitted, UnfinishedFitError, fit_job
from models.twin.calibration.measurements import concatenate_runs
from models.twin.calibration.replayed import normalised_error, replay_recording
from pipelines.html.columns import aligned
from pipelines.report.fit_input import MeasuredRun

_UNITS = {"overhead_s": "s", "per_record_s": "s", "cold_s": "s", "startup_s": "s"}
SEEDS = 20
"""Runs of the twin whose mean is its prediction."""
JUDGED = ("lag", "latency_s", "executors")  # records, seconds, executors


def fit_runs(runs: Sequence[MeasuredRun]) -> Fitted:
    """Fit one twin to all runs together; what is configured is taken from the last one.

    Raises:
        UnfinishedFitError: too little was measured, or there is no run.
    """
    if not runs:
        raise UnfinishedFitError("unfinished fit: no finished run; `tidecast run` makes one")
    return fit_job(*concatenate_runs([(run.batches, run.startups) for run in runs]), runs[-1].known)


def cross_validate(runs: Sequence[MeasuredRun]) -> list[dict[str, Any]]:
    """Compare every run with a twin fitted to all other runs; returns the figures of `compare_with_twin`, in order.

    Raises:
        UnfinishedFitError: the other runs measured too little; so always with a single run.
        TwinError: a run's targets are out of the bounds of the others' job.
    """
    return [compare_with_twin(fit_runs([other for other in runs if other is not run]), run) for run in runs]


def compare_with_twin(fitted: Fitted, run: MeasuredRun) -> dict[str, Any]:
    """Replay a run's load and decisions in a fitted twin (simulator of the job), and compare with what was measured.

    Args:
        fitted: the twin.
        run: to compare with.

    Returns:
        `run`, `policy`, `trace` (names), `seconds` of load; `error` (of the mean of SEEDS, 20, simulations) and
        `error_of_one` (median over single ones): by curve of JUDGED, root mean square error ÷ the measured range, None
        where nothing was measured; `over_target_s` (seconds over the latency target) and `executor_s` (executors ×
        seconds), each `measured` and `twin` (mean).

    Raises:
        TwinError: the run's targets are out of the job's bounds.
    """
    twin = replay_recording(
        fitted.job, run.arrived, np.round(run.at_s, 1), run.targets.astype(np.int64), max(run.executors, 1),
        np.arange(SEEDS), batches=run.done,
    )  # fmt: skip
    target, measured, of_mean, of_one = run.known.latency_target_s, run.curves, {}, {}
    for name in JUDGED:
        real, simulated = getattr(measured, name), getattr(twin, name)
        known = np.isfinite(simulated)
        mean = np.where(known.any(axis=0), np.nansum(simulated, axis=0) / np.maximum(known.sum(axis=0), 1), np.nan)
        of_mean[name] = _rounded(normalised_error(real, mean))
        of_one[name] = _rounded(float(np.median([normalised_error(real, one) for one in simulated])))
    return {
        "run": run.name, "policy": run.policy, "trace": run.trace, "seconds": len(run.arrived) - 1,
        "error": of_mean, "error_of_one": of_one,
        "over_target_s": {
            "measured": int((measured.latency_s > target).sum()),
            "twin": round(float((twin.latency_s > target).sum(axis=1).mean()), 1),
        },
        "executor_s": {
            "measured": float(measured.executors.sum()), "twin": round(float(twin.executors.sum(axis=1).mean()), 1),
        },
    }  # fmt: skip


def format_fit(fitted: Fitted) -> str:
    """Format a fit as text: a line per parameter, times in seconds, with its 95 % interval; those not told apart."""
    lines = [f"fitted to {fitted.batches} warm batches and {fitted.startups} start-ups; 95 % intervals in brackets"]
    for name, (low, high) in fitted.between.items():
        value = getattr(fitted.job, name)
        middle, word = (median_high(value), " (median)") if isinstance(value, tuple) else (value, "")
        lines.append(f"  {name:14} {middle:.4g} {_UNITS.get(name, ''):1} [{low:.4g}, {high:.4g}]{word}")
    if fitted.unsure:
        lines.append(
            f"  not told apart: {', '.join(fitted.unsure)}: wider than half their value; runs at other loads and with "
            "other numbers of executors would tell"
        )
    return "\n".join(lines)


def format_comparisons(comparisons: list[dict[str, Any]]) -> str:
    """Format comparisons as text: a line per run, its errors in per cent of the measured range, a dash for None.

    Args:
        comparisons: each as from `compare_with_twin`; KeyError where one lacks a figure.
    """
    lines = [["run", "trace", "s", "lag", "latency", "executors", "over, s"]]
    for comparison in comparisons:
        errors = [
            f"{_share(comparison['error'][k])} ({_share(comparison['error_of_one'][k])})" for k in comparison["error"]
        ]
        over = f"{comparison['over_target_s']['measured']} / {comparison['over_target_s']['twin']:g}"
        lines.append([comparison["run"], comparison["trace"][:18], str(comparison["seconds"]), *errors, over])
    return "\n".join([
        "each run against a twin fitted to the others: root mean square error / measured range, of the mean of the "
        "twin's runs (of one run)",
        *aligned(lines, left=(0, 1)),
    ])  # fmt: skip


def _rounded(value: float) -> float | None:
    return round(value, 4) if np.isfinite(value) else None


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.0f} %"
