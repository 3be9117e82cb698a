"""The shipped jobs as somebody would attach them: simulated by their contracts, with a fixed number of executors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from configs.contract import Contract, read_contracts
from configs.settings import Settings
from models.policy.core.capacity import Floats
from models.twin.sim.arrivals import draw_arrivals, rates_per_second
from models.twin.sim.job import TwinJob, stack
from pipelines.bench.twin.agent_rows import record_job
from pipelines.bench.twin.faulty_jobs import FaultyJob
from pipelines.traces.shipped import find_shipped

HOURS, BUSY = 2, 0.75
"""Of load that are observed; its highest rate as a share of what all executors sustain."""
DAYS = 2
"""Days of the taxi trace that these hours are made of."""
TRIGGER_S, TASKS, SCALING = 2.0, 12, 0.9


def list_jobs(settings: Settings) -> dict[str, Contract]:
    """List the shipped contracts by job: those of the main jobs, and those of plans."""
    return read_contracts(settings.contracts_dir)[0] | read_contracts(settings.contracts_dir / "plans")[0]


def simulated_job(contract: Contract) -> TwinJob:
    """Return a job that is as its contract says, with all its executors all the time."""
    bounds, planning = contract.executors, contract.planning
    return TwinJob(
        planning.overhead_s, planning.per_record_s, bounds.max, bounds.max, bounds.cores, TASKS, SCALING, TRIGGER_S,
        startup_s=tuple(planning.lead_s * np.linspace(0.85, 1.15, 8)), cold_s=1.0, noise=0.12,
        latency_target_s=contract.latency_target_s,
    )  # fmt: skip


def load_of(job: TwinJob, contract: Contract, begin: int, seed: int) -> Floats:
    """Return (T + 1,) records before each second of `HOURS`, as `DAYS` of taxi trips from a day of the trace on."""
    series = find_shipped("nyc_taxi 30min").series()
    day = round(86_400 / series.step_s)
    values = series.values[begin * day : (begin + DAYS) * day]
    most_rps = float(stack([job]).capacity(contract.batch_s).sustained_rps(np.array([float(job.most)]))[0])
    rate = rates_per_second(values / values.max() * BUSY * most_rps, HOURS * 3600 / len(values))
    return draw_arrivals(rate, seed)


def observed_messages(contract: Contract, arrived: Floats, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return what the lake would hold of the job with an agent that only observes: rows of metrics and of outcomes."""
    bounds = contract.executors
    fixed = contract.model_copy(update={"executors": bounds.model_copy(update={"min": bounds.max})})
    job = FaultyJob(simulated_job(contract), fixed, arrived, TASKS, 1.2, 0.02, 0.0, 0.05, 1e8)
    metrics, outcomes = record_job(job, seed)
    return metrics.assign(mode="observe", cores=metrics["executors"] * bounds.cores), outcomes.iloc[:0]


def free_job(contract: Contract) -> TwinJob:
    """Return the same job with no bound of its own on its executors but its tasks."""
    return replace(simulated_job(contract), least=1, most=TASKS)
