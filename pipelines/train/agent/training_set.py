"""What an agent is trained and judged on: the twin of a job, the job's load, and other loads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from configs.contract import Contract, load_contract
from configs.sections import AgentTraining
from configs.settings import Settings
from models.dqn.agent.model import DqnModel
from models.dqn.agent.observation import pace_for
from models.dqn.agent.policy import maker
from models.dqn.environment.recorded import recorded
from models.dqn.environment.synthetic_loads import RecordedLoad
from models.dqn.evaluation import AGENT, CHAMPION
from models.forecast.core.series import Series
from models.twin.calibration.fit import UnfinishedFitError, fit
from models.twin.experiment.benchmark import BenchmarkCase, Effort, judged, listened
from models.twin.experiment.contenders import contenders
from models.twin.experiment.results import TraceResult
from models.twin.experiment.scenario import parts
from models.twin.experiment.setup import Setup
from models.twin.sim.job import TwinJob
from pipelines.backtest.fit import from_lake
from pipelines.backtest.job_file import read_job
from pipelines.backtest.on_lake import of_contract
from pipelines.lake.load import LakeSeries, read_lake
from pipelines.lake.tables import LakeError
from pipelines.traces.shipped import Shipped, shipped

FARTHEST_S = 1860.0
"""Lead time and hold for which the loads of others are heard."""
ALIKE, SPREAD = 7, 0.1
"""Jobs like the twin, and the deviation of the logarithms of their parameters from its own."""


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """A job to learn.

    Attributes:
        contract: of the job.
        source: its load.
        setup: its twin. Start-ups take the contract's lead time, because that is what its live policies plan with.
        twin: where the twin's figures come from, in words.
        others: recorded loads of others, to learn from as well.
    """

    contract: Contract
    source: LakeSeries
    setup: Setup
    twin: str
    others: Sequence[RecordedLoad] = ()

    def loads(self) -> list[RecordedLoad]:
        """What may be learned from: the job's load before the parts on which policies are tuned and judged, and others.

        Raises:
            TwinError: the load is too short or has gaps.
        """
        series = self.source.series
        tune, _ = parts(self.contract.job, series, self.setup)
        own = Series(series.start, series.step_s, series.values[: tune.start])
        return [recorded(own, sum(self.setup.planned_s), self.setup.speed), *self.others]

    def jobs(self, seed: int) -> list[TwinJob]:
        """The twin, and jobs like it: nobody knows it better than to a tenth."""
        job, chance = self.setup.the_job, np.random.default_rng(seed)
        both = np.exp(SPREAD * chance.standard_normal((ALIKE, 2))) * (job.overhead_s, job.per_record_s)
        return [job, *(replace(job, overhead_s=a, per_record_s=b) for a, b in both.tolist())]


def read(settings: Settings, job: str) -> TrainingSet:
    """Read a job from the lake; starts Spark twice.

    Raises:
        LakeError: nothing was ever ingested.
        SeriesError: what was ingested makes no series.
        TwinError: the stored fit is unfinished.
    """
    contract = load_contract(job, settings.contracts_dir)
    twin, origin = twin_of(settings, contract)
    source = read_lake(settings, job, settings.training.step_s)
    others = [recorded(cell.series(), FARTHEST_S) for cell in loads_of_others(settings, job)]
    return TrainingSet(contract, source, setup_of(settings, contract, twin), origin, others)


def twin_of(settings: Settings, contract: Contract) -> tuple[TwinJob, str]:
    """The job as the lake measured it, else as it was stored by `tidecast twin fit`, else as its contract has it.

    Raises:
        TwinError: the stored fit is unfinished.
    """
    try:
        found = fit(*from_lake.read(settings.lake_dir, contract.job, contract))
        return found.job, f"fitted to {found.batches} batches and {found.startups} start-ups in the lake"
    except (UnfinishedFitError, LakeError) as error:
        path = settings.var_dir / "twins" / f"{contract.job}.json"
        if path.is_file():
            return read_job(path), f"as stored by `tidecast twin fit` (lake: {error})"
        return of_contract(contract), f"the contract's guess (lake: {error})"


def setup_of(settings: Settings, contract: Contract, twin: TwinJob) -> Setup:
    """The setup of training and evaluation: the job's own load, on its own clock, under its own contract.

    Policies look as often as an agent decides about a live job; with the fewer looks of a backtest a job with a short
    lead time is unlike any that agents are trained on.
    """
    lead_s = max(contract.planning.lead_s, 1.0)
    return Setup(
        lead_s=lead_s, job=twin, as_is=True, speed=settings.speed(contract.job), own=contract,
        every_s=pace_for(lead_s, 1.0),
    )  # fmt: skip


def loads_of_others(settings: Settings, job: str) -> list[Shipped]:
    """The shipped series at their finest step, without the one that is replayed to the job: it holds what comes."""
    mine = settings.replay.trace if job in settings.replayed else ""
    others = (cell for cell in shipped() if mine not in (cell.name, cell.path.name, str(cell.path)))
    return list({cell.name: cell for cell in sorted(others, key=lambda cell: -cell.step_s)}.values())


def compared(known: TrainingSet, agent: DqnModel, champion: DqnModel | None, training: AgentTraining) -> TraceResult:
    """All policies on the newest part of the load, each with its knob swept; the present champion is among them.

    Raises:
        TwinError: the load is too short or has gaps.
    """
    job, series, setup = known.contract.job, known.source.series, known.setup
    found, _ = contenders(["all"], setup.contract, {AGENT: maker(agent)}, live=True)
    if champion is not None:
        # What is chosen for the agent on the first part is chosen for the champion too, or it would lose to itself.
        found += [replace(one, name=CHAMPION, learned=maker(champion)) for one in found if one.name == AGENT]
    case = BenchmarkCase(job, series, listened(job, series, setup))
    return judged([case], setup, found, Effort(training.knobs, training.seeds))[0]
