"""What a finished run says about its job: batches, start-ups, and the curves that a twin has to reproduce."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from configs.contract import Contract
from models.twin.calibration.measurements import MeasuredBatches, Startups
from models.twin.calibration.replayed import ReplayedCurves
from models.twin.sim.job import TwinJob
from pipelines.report.actions import APPLIED
from pipelines.report.measures import RunMeasures, measure_run
from pipelines.report.recorded import run as read
from pipelines.report.seconds import count_open

Floats = np.ndarray


@dataclass(frozen=True, eq=False)
class MeasuredRun:
    """A finished run as a twin's fit needs it; times are wall seconds since the live load began.

    Attributes:
        name, job, policy, trace: of the run.
        known: the job as configured; the parameters to be fitted are placeholders.
        batches: of the live load, and those of the warm-up before it.
        startups: of the live load.
        arrived: (T + 1,) records produced before each second.
        at_s, targets: (D,) when the target of executors changed, and what to.
        executors: registered when the live load began.
        done: batches with records that the query had done when the live load began.
        curves: what was measured, (T,) each.
    """

    name: str
    job: str
    policy: str
    trace: str
    known: TwinJob
    batches: MeasuredBatches
    startups: Startups
    arrived: Floats
    at_s: Floats
    targets: Floats
    executors: int
    done: int
    curves: ReplayedCurves


def read_measured_run(folder: Path) -> MeasuredRun:
    """Read a finished run's folder for the fit of a twin (simulator of the job).

    Raises:
        RunError: a file of the run is missing or broken.
        EventLogError: Spark's event log is missing or cannot be read.
        KeyError: `run.json` names no trace, or a message of the run lacks a field.
        ValueError: its contract, its trigger interval or a forecast is invalid.
        TwinError: the contract has a value that no job can have.
    """
    return read_fit_input(measure_run(read.load_run(folder)))


def read_fit_input(measured: RunMeasures) -> MeasuredRun:
    """Take from a run what the fit of a twin needs.

    Raises:
        KeyError, ValueError, TwinError: as `read_measured_run`.
    """
    run, jobs = measured.run, measured.run.info.get("job_settings", {})
    changed = measured.acts[(measured.acts["up"] | measured.acts["down"]) & measured.acts["status"].isin(APPLIED)]
    at_s = changed["decided_at"].to_numpy(float) - run.start
    batches, first = _batches(measured)
    live = np.flatnonzero(batches.start_s >= 0)
    added, removed = (run.executors[name].to_numpy(float) for name in ("added", "removed"))
    steps = count_open(added, removed, run.start, measured.live_end)
    trigger_s = pd.Timedelta(str(jobs.get("trigger", "1 second"))).total_seconds()
    return MeasuredRun(
        name=run.folder.name, job=run.info["job"], policy=run.info["policy"], trace=run.info["replay"]["trace"],
        known=configured_twin(
            run.contract, int(run.info.get("event_partitions", 8)), trigger_s,
            float(jobs.get("max_offsets_per_trigger") or np.inf),
        ),
        batches=batches, startups=_startups(measured, first),
        arrived=np.concatenate([[0.0], np.cumsum(measured.seconds["produced"].to_numpy(float))]),
        at_s=at_s[at_s >= 0], targets=changed["target"].to_numpy(float)[at_s >= 0], executors=int(steps[1][0]),
        done=int(batches.number[live[0]]) if len(live) else 0, curves=_curves(measured, *steps),
    )  # fmt: skip


def configured_twin(contract: Contract, tasks: int = 64, trigger_s: float = 1.0, batch_rows: float = np.inf) -> TwinJob:
    """Return the twin of a job as its contract and settings have it; nothing is fitted.

    Args:
        contract: bounds, cores, latency target and first guesses.
        tasks: of the heavy stage.
        trigger_s: trigger interval, seconds; at least 0.05 is taken.
        batch_rows: most records per batch; infinite without a limit.

    Raises:
        TwinError: a value that no job can have.
    """
    bounds, planning = contract.executors, contract.planning
    return TwinJob(
        overhead_s=planning.overhead_s, per_record_s=planning.per_record_s, least=bounds.min, most=bounds.max,
        cores=bounds.cores, tasks=tasks, trigger_s=max(trigger_s, 0.05), batch_rows=batch_rows,
        latency_target_s=contract.latency_target_s,
    )  # fmt: skip


def _batches(seen: RunMeasures) -> tuple[MeasuredBatches, dict[str, int]]:
    """The batches until the load ends, and the first of them that each executor worked on (-1: none of them)."""
    run, tasks = seen.run, seen.run.tasks
    some, until = run.batches.rows >= 1, run.batches.started < run.end
    number = pd.Series(some).groupby(run.batches.runs).cumsum().to_numpy(float) - some
    place = {int(batch): i for i, batch in enumerate(run.batches.ids[until])}
    workers = tasks.groupby("batch")["executor"].nunique()
    began = tasks.sort_values("start").groupby("executor")["batch"].first()
    return MeasuredBatches(
        run.batches.started[until] - run.start, run.batches.committed[until] - run.start,
        run.batches.rows[until].astype(float), workers.reindex(run.batches.ids[until], fill_value=0).to_numpy(float),
        number[until],
    ), {str(executor): place.get(int(batch), -1) for executor, batch in began.items()}  # fmt: skip


def _startups(seen: RunMeasures, first: dict[str, int]) -> Startups:
    """Executors that joined during the live load, or did not: each belongs to the oldest open raise before it."""
    start, ups = seen.run.start, seen.acts[seen.acts["up"] & seen.acts["status"].isin(APPLIED)]
    more = (ups["target"] - ups["executors_before"]).to_numpy(float).astype(int)
    asked = np.repeat(ups["decided_at"].to_numpy(float), more).tolist()
    given_up = {r.decided_at: r.closed_at for r in ups.itertuples() if not np.isfinite(r.confirmed_at)}
    rows = []
    for executor, added in zip(*(seen.run.executors[name] for name in ("executor", "added")), strict=True):
        if added >= start:
            taken = next((at for at in asked if at < added), np.nan)  # requests are served in their order
            if np.isfinite(taken):
                asked.remove(taken)
            rows.append((taken - start, added - start, first.get(str(executor), -1), False))
    rows += [(at - start, given_up[at] - start, -1, True) for at in asked if at in given_up]  # these never came
    table = np.array(rows, float).reshape(-1, 4)
    return Startups(table[:, 0], table[:, 1], table[:, 2].astype(np.int64), table[:, 3].astype(bool))


def _curves(seen: RunMeasures, changed_at: Floats, executors: Floats) -> ReplayedCurves:
    ends = seen.run.start + np.arange(1, len(seen.seconds) + 1)
    latency = seen.seconds["latency_max_s"].to_numpy(float)
    return ReplayedCurves(
        seen.seconds["lag"].to_numpy(float),
        executors[np.clip(np.searchsorted(changed_at, ends, side="right") - 1, 0, None)].astype(float),
        np.where(np.isfinite(latency), latency, np.nan), np.full(len(ends), np.nan),
    )  # fmt: skip
