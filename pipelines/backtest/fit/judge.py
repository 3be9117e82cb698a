"""How well a fitted twin reproduces runs: every run is compared with a twin that was fitted to the others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from models.twin.calibration.fit import Fitted, UnfinishedFitError, fit
from models.twin.calibration.measurements import joined
from models.twin.calibration.replayed import ReplayedCurves, normalised_error, replayed
from pipelines.backtest.fit.measured import MeasuredRun

SEEDS = 20
"""Runs of the twin whose mean is its prediction."""
SHOWN = ("lag", "latency_s", "executors")


@dataclass(frozen=True, eq=False)
class Compared:
    """A run beside its twin.

    Attributes:
        run: the run.
        twin: the twin's curves, (SEEDS, T).
        figures: what was measured and simulated, and the errors.
    """

    run: MeasuredRun
    twin: ReplayedCurves
    figures: dict[str, Any]


def fitted(runs: Sequence[MeasuredRun]) -> Fitted:
    """One fit to all runs.

    Raises:
        UnfinishedFitError: too little was measured, or there is no run.
    """
    if not runs:
        raise UnfinishedFitError("unfinished fit: no finished run; `tidecast run` makes one")
    return fit(*joined([(run.batches, run.startups) for run in runs]), runs[-1].known)


def compared(runs: Sequence[MeasuredRun]) -> list[Compared]:
    """Every run beside a twin fitted to all other runs."""
    return [beside(fitted([other for other in runs if other is not run]), run) for run in runs]


def beside(found: Fitted, run: MeasuredRun) -> Compared:
    """A run beside the twin with its load and its decisions."""
    twin = replayed(
        found.job, run.arrived, np.round(run.at_s, 1), run.targets.astype(np.int64), max(run.executors, 1),
        np.arange(SEEDS), batches=run.done,
    )  # fmt: skip
    target, seen = run.known.latency_target_s, run.curves
    return Compared(run, twin, {
        "run": run.name, "policy": run.policy, "trace": run.trace, "seconds": len(run.arrived) - 1,
        "error": {name: _error(seen, twin, name) for name in SHOWN},
        "error_of_one": {name: _error_of_one(seen, twin, name) for name in SHOWN},
        "over_target_s": {
            "measured": int((seen.latency_s > target).sum()),
            "twin": round(float((twin.latency_s > target).sum(axis=1).mean()), 1),
        },
        "executor_s": {
            "measured": float(seen.executors.sum()), "twin": round(float(twin.executors.sum(axis=1).mean()), 1),
        },
    })  # fmt: skip


def stored(found: Fitted, job: str, folder: Path) -> Path:
    """Write the fitted job to `<folder>/<job>.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{job}.json"
    path.write_text(json.dumps(described(found), indent=1) + "\n")
    return path


def described(found: Fitted) -> dict[str, Any]:
    """A fit as JSON holds it; no limit of a batch's rows is null."""
    job = asdict(found.job)
    for name in ("batch_rows", "catch_up"):
        job[name] = job[name] if np.isfinite(job[name]) else None
    return {
        "job": job, "between": found.between, "unsure": found.unsure,
        "batches": found.batches, "startups": found.startups,
    }  # fmt: skip


def _error(seen: ReplayedCurves, twin: ReplayedCurves, name: str) -> float | None:
    simulated = getattr(twin, name)
    some = np.isfinite(simulated).any(axis=0)
    mean = np.where(some, np.nansum(simulated, axis=0) / np.maximum(np.isfinite(simulated).sum(axis=0), 1), np.nan)
    return _said(normalised_error(getattr(seen, name), mean))


def _error_of_one(seen: ReplayedCurves, twin: ReplayedCurves, name: str) -> float | None:
    return _said(float(np.median([normalised_error(getattr(seen, name), one) for one in getattr(twin, name)])))


def _said(value: float) -> float | None:
    return round(value, 4) if np.isfinite(value) else None
