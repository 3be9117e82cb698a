"""What an agent is trained and judged on: the twin of a job, the job's load, and other loads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from configs.contract import Contract, load_contract
from configs.sections import AgentTraining
from configs.settings import Settings
from models.dqn.agent.model import DqnModel
from models.dqn.agent.policy import Dqn, maker
from models.dqn.environment.recorded import with_forecasts
from models.dqn.environment.synthetic_loads import RecordedLoad
from models.dqn.evaluation import AGENT, CHAMPION
from models.forecast.core.series import Series
from models.twin.experiment.benchmark import BenchmarkCase, Effort, forecast_trace, run_benchmark
from models.twin.experiment.contenders import select_contenders
from models.twin.experiment.results import TraceResult
from models.twin.experiment.scenario import split_trace
from models.twin.experiment.setup import Setup
from models.twin.sim.job import TwinJob
from pipelines.lake.load import LakeSeries, read_lake
from pipelines.traces.shipped import ShippedSeries, list_shipped
from pipelines.train.twin import fit_twin, twin_setup

FARTHEST_S = 1860.0
"""Seconds of lead time and hold that the forecasts of others' loads reach."""
ALIKE, SPREAD = 7, 0.1
"""Number of variants of the twin, and standard deviation of the logarithms of their parameters about its own."""


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """What an agent is trained and judged on.

    Attributes:
        contract: of the job.
        source: the job's load.
        setup: the twin (the simulated job) and how policies are run in it. Start-ups take the contract's lead time, as
            the job's live policies plan with it.
        twin: in words, where the twin's figures come from.
        others: recorded loads of others, learned from as well.
    """

    contract: Contract
    source: LakeSeries
    setup: Setup
    twin: str
    others: Sequence[RecordedLoad] = ()

    def training_loads(self) -> list[RecordedLoad]:
        """Return the loads to learn from: the job's own up to the parts for tuning and judging, then those of others.

        Each with forecasts, or without where it is too short for them; gaps are interpolated linearly.

        Raises:
            TwinError: steps under a second of the job's clock, a negative or infinite rate, or parts for tuning and
                judging that are no longer than lead time and hold or lack over 3 steps in a row.
            SeriesError: steps longer than a day.
        """
        series = self.source.series
        tune, _ = split_trace(self.contract.job, series, self.setup)
        own = Series(series.start, series.step_s, series.values[: tune.start])
        return [with_forecasts(own, sum(self.setup.planned_s), self.setup.speed), *self.others]

    def twin_variants(self, seed: int) -> list[TwinJob]:
        """Return the twin (simulator of the job) and 7 (`ALIKE`) variants with batch and record times drawn about its.

        Args:
            seed: the same gives the same jobs.
        """
        job, chance = self.setup.twin_job, np.random.default_rng(seed)
        both = np.exp(SPREAD * chance.standard_normal((ALIKE, 2))) * (job.overhead_s, job.per_record_s)
        return [job, *(replace(job, overhead_s=a, per_record_s=b) for a, b in both.tolist())]


def read_training_set(settings: Settings, job: str) -> TrainingSet:
    """Read a job's contract (YAML of latency target and executor bounds), load and twin (simulator), and others' loads.

    Blocks for seconds. Loads of others are those shipped with the code.

    Raises:
        SettingsError, MessageError: the job has no valid contract, or no job can have its name.
        LakeError: nothing was ever ingested.
        SeriesError, TraceError: the times of the job span over a million steps, or a shipped file is gone or damaged.
        TwinError: the stored fit of the twin is unfinished or cannot be read.
        JavaError, JarsError: the lake is read by Spark, as on HDFS; no usable Java, or Delta's jars are missing.
        OSError, ValueError: the lake cannot be read.
    """
    contract = load_contract(job, settings.contracts_dir)
    source = read_lake(settings, job, settings.training.step_s)
    twin, _, origin = fit_twin(settings, contract, source)
    others = [with_forecasts(cell.series(), FARTHEST_S) for cell in loads_of_others(settings, job)]
    return TrainingSet(contract, source, twin_setup(settings, contract, twin), origin, others)


def loads_of_others(settings: Settings, job: str) -> list[ShippedSeries]:
    """List the shipped series at their finest step, without those that are the job's own load, which hold its future.

    Its own are the series replayed to it, and the newcomer's (`replay.newcomer`), each left out at all steps.
    """
    newcomer = settings.replay.newcomer
    own = {settings.replay.trace} if job in settings.replayed else set()
    own |= {newcomer.trace} if newcomer is not None and newcomer.job == job else set()
    shipped = list_shipped()
    mine = {c.name for c in shipped if own & {c.name, c.label, c.path.stem, c.path.name, str(c.path)}}
    others = (cell for cell in shipped if cell.name not in mine)
    return list({cell.name: cell for cell in sorted(others, key=lambda cell: -cell.step_s)}.values())


def serving_knobs(contract: Contract, agent: DqnModel, champion: DqnModel | None) -> dict[str, float]:
    """Return the knobs (log10 of the price of a second over the target) with which agents would serve a contract.

    Args:
        contract: whose error budget chooses the price.
        agent: the challenger.
        champion: the agent that serves; None: left out.

    Returns:
        By name, `AGENT` and `CHAMPION`.

    Raises:
        AgentError: one was never tried at any price.
    """
    both = {AGENT: agent} if champion is None else {AGENT: agent, CHAMPION: champion}
    return {name: float(np.max(Dqn.of(name, contract, one).violation_cost)) for name, one in both.items()}


def compare_policies(
    training_set: TrainingSet, agent: DqnModel, champion: DqnModel | None, training: AgentTraining
) -> TraceResult:
    """Run all policies in the twin (simulator of the job), each over a range of its one tuned parameter.

    They run on the newest fifth of the load, at most 5 days of the job's clock, with the hyper-parameters of the job's
    contract; how rarely an agent departs from advice is chosen on the part before it, at most 4 days. Agents run at the
    price at which they would serve, too. Blocks for minutes to hours.

    Args:
        training_set: the job, its load and its twin.
        agent: the challenger, under the name `AGENT`.
        champion: the agent that serves, under the name `CHAMPION`; None: left out.
        training: numbers of values of the tuned parameter (`knobs`) and of random seeds.

    Returns:
        By policy, executor-hours paid and share of seconds over the latency target, each (parameter values, seeds).

    Raises:
        TwinError, SeriesError: the load is too short, negative or infinite, has gaps of over 3 steps, or long steps.
    """
    job, series, setup = training_set.contract.job, training_set.source.series, training_set.setup
    found, _ = select_contenders(["all"], setup.contract, {AGENT: maker(agent)}, live=True)
    if champion is not None:
        # What is chosen for the agent on the first part is chosen for the champion too, or it would lose to itself.
        found += [replace(one, name=CHAMPION, learned=maker(champion)) for one in found if one.name == AGENT]
    knobs = serving_knobs(training_set.contract, agent, champion)
    found = [replace(one, beside=(knobs[one.name],)) if one.name in knobs else one for one in found]
    case = BenchmarkCase(job, series, forecast_trace(job, series, setup))
    return run_benchmark([case], setup, found, Effort(training.knobs, training.seeds))[0]
