"""How well a fitted twin reproduces runs, in figures and words: as a rule each by a twin fitted to the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median_high
from typing import Any

import numpy as np

from models.twin.calibration.fit import Fitted, UnfinishedFitError, fit_job
from models.twin.calibration.measurements import concatenate_runs
from models.twin.calibration.replayed import normalised_error, replay_recording
from pipelines.html.columns import of_rows
from pipelines.report.fit_input import MeasuredRun

_UNITS = {"overhead_s": "s", "per_record_s": "s", "cold_s": "s", "startup_s": "s"}
SEEDS = 20
"""Runs of the twin whose mean is its prediction."""
JUDGED = ("lag", "latency_s", "executors")  # records, seconds, executors
NEAR = 0.15
"""Share of the measured range within which a curve's error is near."""
LATE_OFF, LATE_SECONDS = 0.25, 0.01
"""The twin's late seconds are near if they are off by at most this share of the measured ones, or of all seconds."""


def fit_runs(runs: Sequence[MeasuredRun]) -> Fitted:
    """Fit one twin to all runs together; what is configured is taken from the last one, the bounds from all.

    Raises:
        UnfinishedFitError: too little was measured, or there is no run.
    """
    if not runs:
        raise UnfinishedFitError("unfinished fit: no finished run; `tidecast run` makes one")
    # A fixed number of executors is compared by a contract that allows no fewer.
    least, most = min(run.known.least for run in runs), max(run.known.most for run in runs)
    known = replace(runs[-1].known, least=least, most=most)
    return fit_job(*concatenate_runs([(run.batches, run.startups) for run in runs]), known)


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


def share_near(comparisons: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return in what share of runs the twin came near: by curve of JUDGED and `late`; `runs`, and how many `traces`.

    Args:
        comparisons: as from `compare_with_twin`, at least one (else ZeroDivisionError). A curve without an error is
            not near.
    """
    runs = len(comparisons)
    near = {
        name: sum((one["error"][name] if one["error"][name] is not None else 1.0) <= NEAR for one in comparisons) / runs
        for name in JUDGED
    }
    late = [
        abs(one["over_target_s"]["twin"] - one["over_target_s"]["measured"])
        <= max(LATE_OFF * one["over_target_s"]["measured"], LATE_SECONDS * one["seconds"])
        for one in comparisons
    ]
    return {**near, "late": sum(late) / runs, "runs": runs, "traces": len({one["trace"] for one in comparisons})}


def comparison_rows(comparisons: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return a row of text per comparison (as from `compare_with_twin`): errors as shares of the measured range.

    In brackets the error of a single run of the twin; a dash where nothing was measured.
    """
    rows = []
    for one in comparisons:
        errors = {name: f"{_share(one['error'][name])} ({_share(one['error_of_one'][name])})" for name in JUDGED}
        rows.append({
            "run": one["run"], "policy": one["policy"], "trace": one["trace"], "s": str(one["seconds"]),
            "lag": errors["lag"], "latency": errors["latency_s"], "executors": errors["executors"],
            "late s, measured / twin": f"{one['over_target_s']['measured']} / {one['over_target_s']['twin']:g}",
        })  # fmt: skip
    return rows


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


def comparison_figures(comparisons: Sequence[Mapping[str, Any]], held_out: bool) -> dict[str, Any]:
    """Return comparisons as JSON values: `comparisons` and `held_out`, and what they come to where they are a check.

    Args:
        comparisons: as from `compare_with_twin`.
        held_out: whether each run's twin was not fitted to it; only then there are `runs` (rows of a table) and, of
            one run or more, `near` (see `share_near`).
    """
    figures: dict[str, Any] = {"comparisons": comparisons, "held_out": held_out}
    if held_out:
        figures["runs"] = comparison_rows(comparisons)
        if comparisons:
            figures["near"] = share_near(comparisons)
    return figures


def format_comparisons(comparisons: Sequence[Mapping[str, Any]], held_out: bool) -> str:
    """Format comparisons as text: with what the runs are compared, a line per run, then how often near.

    Args:
        comparisons: as from `compare_with_twin`.
        held_out: whether each run's twin was fitted to the others; else it is the one that was fitted to the lake.
    """
    if not comparisons:
        return "one run: no other to check it on" if held_out else "no run to check it on"
    other = "a twin fitted to the others" if held_out else "the twin fitted to the lake, which may hold these runs"
    near = share_near(comparisons)
    within = ", ".join(f"{name.removesuffix('_s')} {near[name]:.0%}" for name in JUDGED)
    return "\n".join([
        f"each run against {other}: root mean square error / measured range, of the mean of the twin's runs (of one "
        "run)",
        *of_rows(comparison_rows(comparisons)),
        f"within {NEAR:.0%} of the range: {within} of {near['runs']} runs; late seconds near in {near['late']:.0%}",
    ])  # fmt: skip


def _rounded(value: float) -> float | None:
    return round(value, 4) if np.isfinite(value) else None


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.0f} %"
