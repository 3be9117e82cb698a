"""What was measured of a job, from the messages of its agent: its twin, its load, and how it was served."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from configs.contract import Contract
from models.policy.core.budget import Account, Promise
from models.policy.core.capacity import Floats, parallelism
from models.twin.advice.facts import BatchTimes, Facts, summarise_times
from models.twin.advice.serve import produced_s
from models.twin.calibration.fit import UnfinishedFitError, fit_job
from models.twin.calibration.measurements import MeasuredBatches, Startups
from models.twin.sim.job import TwinJob
from pipelines.backtest.fit.from_lake import measurements_from_rows

GAP_S = 5.0
"""Longest time between two intervals that counts as load; a longer one, in which nothing was measured, is cut out."""
BATCHES = 5000
"""Newest batches that the twin is fitted to."""
RECENT_S = 6 * 3600
"""Newest seconds of load that changes are tried on."""
DRAWS = 24
"""Bootstrap samples of the fit: enough to see that its exponent is unsure."""
BATCH = (
    "batch_id", "batch_rows", "batch_s", "task_ceiling", "latency_max_s", *BatchTimes._fields,
)  # fmt: skip
"""Fields of `MetricSample` that are read of a batch, where it has them."""
INTERVAL = ("kind", "wall_time", "time_scale", "span_s", "arrival_rps", "executors", "mode")


@dataclass(frozen=True, eq=False)
class MeasuredJob:
    """What was measured of a job.

    Attributes:
        contract: of the job.
        twin: fitted to the batches and start-ups.
        tasks: of its heaviest stage, as reported; the twin's are fewer where the stage is skewed.
        facts: where the time of its batches goes.
        arrived: (T + 1,) records produced before each second; times without measurement are cut out.
        executors: (T,) that were there in each of these seconds.
        late_s, seconds: late seconds and all in which anything was produced, by its own batches.
        observed: whether its agent only observed.
        lead_known: whether a start-up was measured; else the contract's lead time is taken.
        scaling_known: whether the batches tell how capacity grows with executors; else the contract's exponent is
            taken.
    """

    contract: Contract
    twin: TwinJob
    tasks: int
    facts: Facts
    arrived: Floats
    executors: Floats
    late_s: float
    seconds: float
    observed: bool
    lead_known: bool
    scaling_known: bool

    @property
    def recent(self) -> Floats:
        """(R + 1,) records before each of the newest seconds that changes are tried on, 0 first."""
        newest = self.arrived[-RECENT_S - 1 :]
        since: Floats = newest - newest[0]
        return since

    @property
    def produced_s(self) -> int:
        """Seconds of the load in which anything was produced, at least 1; the others cannot be late."""
        return produced_s(self.arrived)

    @property
    def executor_hours(self) -> float:
        """Executor-hours that were there."""
        return float(self.executors.sum()) / 3600


def measure_job(metrics: pd.DataFrame, outcomes: pd.DataFrame, contract: Contract) -> MeasuredJob:
    """Measure a job by the messages of its agent, as the lake or a run holds them.

    Args:
        metrics: rows of `MetricSample`: intervals and batches, with the columns of `INTERVAL` and `BATCH`; those that
            no agent filled may be missing.
        outcomes: rows of `Outcome`.
        contract: of the job.

    Raises:
        UnfinishedFitError: no batch, fewer than 20 warm ones, or no interval with arrivals.
        TwinError: the contract has a value that no job can have.
    """
    rows = metrics.reindex(columns=list(dict.fromkeys((*INTERVAL, *BATCH)))).sort_values("wall_time")
    worked = rows[(rows["kind"] == "batch") & (rows["batch_rows"] > 0)]
    newest = worked.tail(BATCHES)
    batches, startups, known = measurements_from_rows(newest, outcomes, contract)
    times = BatchTimes(*(newest[name].to_numpy(float) for name in BatchTimes._fields))
    facts = summarise_times(times, batches.executors, known.cores, known.tasks)
    tasks = known.tasks
    if facts.skewed and facts.parallel is not None:
        known = replace(known, tasks=max(min(round(facts.parallel), tasks), 1))
    lead_known = bool(np.isfinite(startups.requested_s).any())
    if not lead_known:
        startups = Startups(np.zeros(1), np.array([max(contract.planning.lead_s, 1.0)]), np.array([-1]))
    # How capacity grows with executors shows where their number differs, and in these samples alone how surely.
    draws = DRAWS if len(np.unique(batches.executors)) > 1 else 1
    fitted = fit_job(batches, startups, known, draws=draws)
    scaling_known = "scaling" not in fitted.unsure
    twin = fitted.job if scaling_known else _scaled_as_planned(fitted.job, batches, contract)
    arrived, executors = _load(rows[rows["kind"] == "interval"])
    late_s, seconds = _late(worked, contract)
    modes = set(rows["mode"].dropna().unique())
    return MeasuredJob(
        contract, replace(twin, warmup=0.0), tasks, facts, arrived, executors, late_s, seconds,
        "act" not in modes, lead_known, scaling_known,
    )  # fmt: skip


def _scaled_as_planned(job: TwinJob, batches: MeasuredBatches, contract: Contract) -> TwinJob:
    """The twin with the contract's exponent, as quick as it was at the number of slots that its batches mostly had."""
    usual = float(np.median([parallelism(max(int(n), 1), job.cores, job.tasks) for n in batches.executors]))
    planned = contract.planning.scaling
    return replace(job, scaling=planned, per_record_s=job.per_record_s * usual ** (planned - job.scaling))


def _load(intervals: pd.DataFrame) -> tuple[Floats, Floats]:
    """(T + 1,) records before each second and (T,) executors, of live intervals; the history knows no executors."""
    live = intervals.dropna(subset=["arrival_rps", "executors"]).drop_duplicates("wall_time")
    length_s = live["span_s"].to_numpy(float) / live["time_scale"].to_numpy(float)
    at = live["wall_time"].to_numpy(float)
    if len(at) < 2 or at[-1] - at[0] < 1:
        raise UnfinishedFitError(
            "too little of the job's load was recorded: let it run on with its agent, then run the DAG ingest_metrics"
        )
    passed = np.minimum(np.diff(at, prepend=at[0] - length_s[0]), GAP_S)
    records = np.cumsum(live["arrival_rps"].to_numpy(float) * np.minimum(length_s, passed))
    clock = np.cumsum(passed)
    seconds = np.arange(int(clock[-1]) + 1)
    arrived: Floats = np.interp(seconds, np.append(0.0, clock), np.append(0.0, records))
    there = live["executors"].to_numpy(float)[np.clip(np.searchsorted(clock, seconds[1:]), 0, len(at) - 1)]
    return arrived, there


def _late(batches: pd.DataFrame, contract: Contract) -> tuple[float, float]:
    """Late seconds and seconds of production, as the autoscaler's account counts them."""
    promise, account = Promise(contract.latency_target_s, contract.error_budget, 366.0), Account()
    known = batches.dropna(subset=["latency_max_s"])
    for committed, latency_s in zip(known["wall_time"], known["latency_max_s"], strict=True):
        account = account.add_batch(promise, float(committed), float(latency_s), 1.0)
    return account.late_s, account.seconds
