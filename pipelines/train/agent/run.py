"""What the DAG retrain_agent calls: train an agent in a job's twin, judge it on held-out load, promote it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from configs.sections import AgentTraining
from configs.settings import Settings, load
from models.dqn.evaluation import AGENT, CHAMPION, RIVALS, judge_agent, most_of
from models.forecast.selection.gate import Rival, Verdict
from models.twin.sim.job import TwinError
from pipelines.backtest.on_lake import jobs_with_enough_load
from pipelines.lake.load import format_minute
from pipelines.registry import AgentRegistry
from pipelines.train.agent.challenge import challenge
from pipelines.train.agent.training_set import TrainingSet, read_training_set
from pipelines.train.form import with_form_values
from pipelines.train.promotion import (
    decide,
    promote_winner,
    verdict_record,
)
from pipelines.train.turns import longest_waiting_first


def jobs_to_train(jobs: Iterable[str]) -> list[str]:
    """Return those jobs that have load enough in the lake, who waits longest first; without Spark.

    Raises:
        SettingsError: the settings are wrong.
        OSError, ValueError: the table's log cannot be read.
        RegistryError: MLflow does not answer, where there are several jobs.
    """
    return longest_waiting_first(jobs_with_enough_load(jobs), (), lambda: AgentRegistry(load()).last_trained())


def train(job: str, settings: Settings | None = None, **form: Any) -> str:
    """Train an agent for a job, compare it on held-out load, register it as `challenger`; returns the MLflow run's id.

    Reads job, load and twin (simulator of the job) from the lake, for which it starts and stops Spark twice; blocks for
    minutes to hours. `train_challenger` says what is written.

    Args:
        job: its name.
        settings: as `load()` reads them, where not given.
        form: keys of `agent_training` and their values, which override the settings.

    Raises:
        SettingsError, MessageError: a setting, a value of the form, the contract or the job's name is wrong.
        LakeError: nothing was ever ingested.
        SeriesError, TwinError: the job's times span over a million steps, or the stored fit of the twin is unfinished.
        RegistryError, MlflowException: MLflow does not answer, or refuses what is written.
        JavaError, JarsError: no usable Java, or Delta's jars are missing.
        OSError, ValueError: the lake's log or `var/mlflow` cannot be read or written, or transitions are too few.
    """
    settings = settings or load()
    training = with_form_values(settings.agent_training, "agent_training", form)
    return train_challenger(AgentRegistry(settings), training, read_training_set(settings, job))


def train_challenger(registry: AgentRegistry, training: AgentTraining, training_set: TrainingSet) -> str:
    """Train an agent on a training set, compare it with other policies, and register it with the alias `challenger`.

    The run gets parameters, metrics, plots, `card.md` and `contest.json`. Its tag `outcome` says in words what was
    registered, or why nothing: a load that is too short, negative or has gaps. The alias `champion` does not move.

    Returns:
        The MLflow run's id.

    Raises:
        RegistryError, MlflowException: MLflow does not answer, or refuses what is written.
        SeriesError, ValueError: an infinite load, steps longer than a day, or transitions too few for one decision.
        MessageError: no job can have the name.
    """
    job, source = training_set.contract.job, training_set.source
    lineage = {**source.lineage(), "twin": training_set.twin[:500]}
    with registry.training(job, f"agent of {job} {format_minute(source.series.end)}") as run:
        run.parameters({
            **training.model_dump(), "error_budget": training_set.contract.error_budget,
            "lead_s": training_set.setup.lead_s, "loads": 1 + len(training_set.others),
        })  # fmt: skip
        run.tags({**lineage, "kind": registry.what})
        try:
            outcome = challenge(registry, run, training, training_set, lineage)
        except TwinError as error:
            outcome = f"no challenger: {error}"
        run.tags({"outcome": outcome})
        return run.id


def decide_on_challenger(job: str, run_id: str, settings: Settings | None = None) -> dict[str, Any]:
    """Decide whether a run's challenger becomes champion (the version that serves); stores the verdict, moves no alias.

    It is kept as tag `verdict` of run, model and version; one that the run has already is returned as it is.

    Args:
        job: its name.
        run_id: that `train` returned.
        settings: as `load()` reads them, where not given.

    Returns:
        `job`, `promoted` (bool), `reason` (words), `version` (text; None without a challenger, and then nothing is
        stored), `champion` (version compared with, text; None without one), `run`, and `hours`: executor-hours by
        policy, where known, at the share of seconds over the latency target that is the run's metric `gate.violation`.

    Raises:
        RegistryError: MLflow does not answer, or the run is gone.
        MlflowException: MLflow refuses to store the verdict.
        KeyError, ValueError: the run has a challenger, but not the figures of an agent's run; its verdict is no JSON.
        SettingsError, MessageError, OSError: a setting or the job's name is wrong, or `var/mlflow` cannot be written.
    """
    registry = AgentRegistry(settings or load())
    metrics, parameters, tags = registry.figures(run_id)
    if said := tags.get("verdict"):
        return dict(json.loads(said))
    costs = {name.removeprefix("hours."): cost for name, cost in metrics.items() if name.startswith("hours.")}

    def by_figures() -> Verdict:
        gain = float(parameters["gain"])
        rivals = {
            name: Rival(costs[name], metrics.get(f"gate.{name}", math.inf), most_of(name, gain))  # left out is infinite
            for name in (*RIVALS, CHAMPION)
            if name in costs
        }
        return judge_agent(costs.get(AGENT, math.nan), rivals, metrics["gate.violation"])

    decided = decide(registry, job, tags, by_figures)
    compared = {name: costs[name] for name in (AGENT, CHAMPION, *RIVALS) if name in costs}
    record = verdict_record(job, run_id, tags, decided, hours=compared)
    if record["version"] is not None:
        registry.write_verdict(job, run_id, record)
    return record


def promote(verdict: Mapping[str, Any], settings: Settings | None = None) -> Mapping[str, Any]:
    """Point the alias `champion` at a verdict's challenger if it won, see `pipelines.train.promotion.promote_winner`.

    Returns:
        The verdict as it stands: `promoted` says whether the challenger serves.

    Raises:
        RegistryError, MlflowException: MLflow does not answer, or there is no such version.
        KeyError: the verdict lacks a key of `decide_on_challenger`.
        SettingsError, OSError: a setting is wrong, or `var/mlflow` cannot be written.
    """
    return promote_winner(AgentRegistry(settings or load()), verdict)
