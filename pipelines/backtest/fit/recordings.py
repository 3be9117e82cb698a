"""Published recordings of an engine that restarts, in the layout of dos-group/demeter, beside the twin."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from models.twin.calibration.outages import (
    Recording,
    fit_restarting_job,
    latency_from_waiting,
    measure_outages,
    share_over_target,
)
from models.twin.calibration.replayed import replay_recording
from pipelines.report.recorded.lines import RunError

TARGET_S, MOST, SEEDS = 2.0, 24, 10  # latency target in seconds, workers, simulations
_STEP_S = 0.25


def read_recordings(folder: Path) -> Iterator[tuple[str, Recording]]:
    """Yield (name, recording) for every run with reactive scaling below a folder, in the layout of dos-group/demeter.

    A run gets the load file that begins with its job's name (ADS or CARS); a recording has (T,) arrays, one value per
    second. Files are read, and errors raised, only as the result is iterated over.

    Raises:
        RunError: there is no such run, or its load is missing.
        OSError, KeyError, ValueError: a CSV file cannot be read, or lacks a column.
        IndexError: a run has no sample of its workers.
    """
    folders = sorted(path.parent for path in folder.rglob("reactive-latency-data.csv"))
    if not folders:
        raise RunError(f"{folder}: no reactive-latency-data.csv below it; a copy of dos-group/demeter is expected.")
    for run in folders:
        name = run.parent.name if run.name == "data" else run.name
        job = next((part for part in name.split("_") if part in ("ADS", "CARS")), "?")
        loads = sorted(folder.rglob(f"{job}_*_max.csv"))
        if not loads:
            raise RunError(f"{folder}: no load {job}_*_max.csv for the run {name}.")
        yield name, _recording(run, loads[0])


def _recording(run: Path, load: Path) -> Recording:
    rate = _column(load).to_numpy(float)
    latency, busy, workers = (_column(run / f"reactive-{x}-data.csv") for x in ("latency", "cpu_load", "task_managers"))
    seconds = np.arange(workers.index[0], workers.index[0] + min(len(rate), int(np.ptp(workers.index)) + 1))
    filled = [column.reindex(seconds).ffill().bfill().to_numpy(float) for column in (busy, workers)]
    return Recording(rate[: len(seconds)], latency.reindex(seconds).to_numpy(float) / 1000, *filled)


def _column(path: Path) -> pd.Series:
    frame = pd.read_csv(path, sep="|").drop_duplicates("timestamp").set_index("timestamp")
    return frame["value"]


def cross_check_halves(recording: Recording) -> list[dict[str, Any]]:
    """Fit the twin (simulator of the job) to one half of a recording and check it on the other, both ways.

    Returns:
        Two dicts: `checked_on` ("second" or "first"), `changes` of workers there, `alone` (single outages fitted to);
        shares of the seconds with a sample that have a latency over TARGET_S (2 s), 0..1: `measured`, and of the SEEDS
        (10) simulations the mean `twin` and its standard deviation `twin_deviation`; `ratio`, twin ÷ measured; and what
        was fitted: `scaling` (exponent of the workers), `per_worker_rps` (records/s), `down_s` (median restart,
        seconds), `rewind_s` (seconds of load read again), `catch_up` (most, as a multiple of the load).

    Raises:
        UnfinishedFitError: a half has no stretch of 120 s without a change, or under 10 changes that stand alone.
        TwinError: a half has more than MOST (24) workers.
        ZeroDivisionError: no second of a half was over the target.
    """
    middle, checks = len(recording.rate) // 2, []
    first, second = recording.part(0, middle), recording.part(middle, len(recording.rate))
    for name, fitted_half, checked_half in (("second", first, second), ("first", second, first)):
        job, calm_s, changes = (
            fit_restarting_job(fitted_half, 1, MOST, TARGET_S),
            measure_outages(fitted_half).calm_s,
            checked_half.changes,
        )
        twin = replay_recording(
            job, np.concatenate([[0.0], np.cumsum(checked_half.rate)]), changes.astype(float),
            checked_half.workers[changes].astype(np.int64), int(checked_half.workers[0]), np.arange(SEEDS), _STEP_S,
        )  # fmt: skip
        told = latency_from_waiting(twin.waiting_s, calm_s)[:, np.isfinite(checked_half.latency_s)]
        shares = np.array([share_over_target(one, TARGET_S) for one in told])
        measured, simulated = share_over_target(checked_half.latency_s, TARGET_S), float(shares.mean())
        checks.append({
            "checked_on": name, "changes": len(changes), "alone": len(measure_outages(fitted_half).lost_s),
            "measured": measured, "twin": simulated, "twin_deviation": float(shares.std()),
            "ratio": simulated / measured,
            "scaling": job.scaling, "per_worker_rps": 1 / job.per_record_s,
            "down_s": float(np.median(job.restart_s)), "rewind_s": job.rewind_s, "catch_up": job.catch_up,
        })  # fmt: skip
    return checks


def format_cross_checks(checks_by_name: dict[str, list[dict[str, Any]]]) -> str:
    """Format the figures of `cross_check_halves`, by recording, as text: a head and two lines per recording."""
    lines = ["share of seconds with latency over 2 s: fitted to one half, checked on the other"]
    lines += [
        f"{name:26} {part['checked_on']:6} half: measured {part['measured']:.4f}, twin {part['twin']:.4f} "
        f"± {part['twin_deviation']:.4f}, ratio {part['ratio']:.2f}  (down {part['down_s']:.1f} s, read again "
        f"{part['rewind_s']:.1f} s, catch-up {part['catch_up']:.2f} × load, workers^{part['scaling']:.2f})"
        for name, parts in checks_by_name.items()
        for part in parts
    ]
    return "\n".join(lines)
