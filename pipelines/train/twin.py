"""The twin (simulator) of a job that training runs policies in: fitted to the lake, else stored, else guessed."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from configs.contract import Contract
from configs.settings import Settings
from models.dqn.agent.observation import decision_interval_s
from models.twin.calibration.fit import UnfinishedFitError, fit_job
from models.twin.experiment.setup import Setup
from models.twin.sim.job import TwinJob
from pipelines.backtest.fit.from_lake import ACTION, measurements_from_rows
from pipelines.backtest.job_file import read_job
from pipelines.backtest.on_lake import twin_from_contract
from pipelines.lake.load import LakeSeries


class KnownTwin(NamedTuple):
    """A job's twin (simulator), whether it was fitted to what the job did, and in words where its figures come from."""

    job: TwinJob
    measured: bool
    origin: str


def fit_twin(settings: Settings, contract: Contract, source: LakeSeries) -> KnownTwin:
    """Fit the twin (simulator of the job) to the batches and executor start-ups that the lake has.

    With under 20 warm batches or no start-up, the fit in `var/twins/JOB.json` (`tidecast twin fit`) is taken, else the
    contract's guesses.

    Raises:
        TwinError: the stored fit cannot be read or is unfinished.
    """
    outcomes = pd.DataFrame(list(source.outcomes), columns=list(ACTION))
    try:
        found = fit_job(*measurements_from_rows(source.batches, outcomes, contract), draws=1)
        fitted = f"fitted to {found.batches} batches and {found.startups} start-ups in the lake"
        return KnownTwin(found.job, True, fitted)
    except UnfinishedFitError as error:
        path = settings.var_dir / "twins" / f"{contract.job}.json"
        if path.is_file():
            return KnownTwin(read_job(path), True, f"as stored by `tidecast twin fit` (lake: {error})")
        return KnownTwin(twin_from_contract(contract), False, f"the contract's guess (lake: {error})")


def twin_setup(settings: Settings, contract: Contract, twin: TwinJob) -> Setup:
    """Return how policies are run in the twin: the job's own load, clock, contract and lead time (a second at least).

    They decide as often as a live agent does, because with the fewer decisions of a backtest a job with a short lead
    time is unlike any that agents are trained on.
    """
    lead_s = max(contract.planning.lead_s, 1.0)
    return Setup(
        lead_s=lead_s, job=twin, as_is=True, speed=settings.speed(contract.job), contract_of_job=contract,
        every_s=decision_interval_s(lead_s, 1.0),
    )  # fmt: skip
