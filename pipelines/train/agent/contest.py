"""A trained agent against other policies on a job's held-out load, each with its knob swept, at equal violation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from configs.sections import AgentTraining
from models.dqn.agent.model import DqnModel
from models.dqn.agent.policy import maker
from models.dqn.evaluation.gate import AGENT, CHAMPION
from models.twin.experiment.benchmark import BenchmarkCase, Effort, judged, listened
from models.twin.experiment.contenders import contenders
from models.twin.experiment.results import TraceResult
from pipelines.backtest.load import NamedLoad
from pipelines.backtest.report import TraceReport, figures
from pipelines.train.agent.lesson import TrainingSet


def contest(lesson: TrainingSet, agent: DqnModel, champion: DqnModel | None, training: AgentTraining) -> TraceResult:
    """The result of all policies on the newest part of the load, the present champion and the yardsticks among them.

    Raises:
        TwinError: the load is too short or has gaps.
    """
    job, series, setup = lesson.contract.job, lesson.source.series, lesson.setup
    found, _ = contenders(["all"], setup.contract, {AGENT: maker(agent)}, live=True)
    if champion is not None:
        # What is chosen for the agent on the first part is chosen for the champion too, or it would lose to itself.
        found += [replace(one, name=CHAMPION, learned=maker(champion)) for one in found if one.name == AGENT]
    case = BenchmarkCase(job, series, listened(job, series, setup))
    return judged([case], setup, found, Effort(training.knobs, training.seeds))[0]


def hours(result: TraceResult, allowed: float) -> dict[str, float]:
    """Executor-hours of every policy at a violation; NaN for those that always break more."""
    return {name: result.hours_at(name, allowed) for name in result.sheets}


def told(lesson: TrainingSet, result: TraceResult) -> dict[str, Any]:
    """The result as JSON values, as `tidecast backtest --json` writes them."""
    trace = NamedLoad(lesson.contract.job, "records/s", lesson.source.series)
    return figures(TraceReport(trace, lesson.setup, result, {}, {}))
