"""What the DAG retrain_agent calls: train an agent in a job's twin, judge it on held-out load, promote it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from configs.sections import AgentTraining
from configs.settings import Settings, load
from models.dqn.agent.model import DqnModel
from models.dqn.evaluation import AGENT, CHAMPION, RIVALS, comparison_level, judge_agent, most_of, select_rivals
from models.dqn.learner.settings import FINE, TrainingLength
from models.forecast.selection.gate import Rival
from models.twin.experiment.results import TraceResult
from models.twin.sim.job import TwinError
from pipelines.backtest.load import NamedLoad
from pipelines.backtest.on_lake import jobs_with_enough_load
from pipelines.backtest.report import backtest_to_json
from pipelines.figures.written import find_commit
from pipelines.lake.load import format_minute
from pipelines.registry import CHALLENGER, AgentRegistry, TrackedRun
from pipelines.train.agent.card import agent_card, plot_frontiers, plot_learning
from pipelines.train.agent.training_set import TrainingSet, compare_policies, read_training_set
from pipelines.train.form import with_form_values
from pipelines.train.promotion import (
    hold_after_rollback,
    load_champion,
    promote_winner,
    verdict_record,
    verdict_without_figures,
)
from pipelines.train.turns import longest_waiting_first

LOOKS = 12
"""About how many evaluations a phase of the training has."""
FULL_TRIAL = 50_000
"""Transitions from which on evaluations are in full size; with fewer they would take longer than the training."""
GENERAL, FINE_TUNING = "drawn jobs and loads", "its own twin"


def jobs_to_train(jobs: Iterable[str], settings: Settings | None = None) -> list[str]:
    """Return those jobs that have load enough in the lake, who waits longest first; without Spark.

    Raises:
        SettingsError: the settings are wrong.
        OSError, ValueError: the table's log cannot be read.
        RegistryError: MLflow does not answer, where there are several jobs.
    """
    settings = settings or load()
    return longest_waiting_first(jobs_with_enough_load(jobs), (), lambda: AgentRegistry(settings).last_trained())


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
            outcome = _challenge(registry, run, training, training_set, lineage)
        except TwinError as error:
            outcome = f"no challenger: {error}"
        run.tags({"outcome": outcome})
        return run.id


def _challenge(
    registry: AgentRegistry, run: TrackedRun, training: AgentTraining, training_set: TrainingSet,
    lineage: dict[str, Any],
) -> str:  # fmt: skip
    """Train, compare on held-out load and register as challenger; returns the outcome in words."""
    job, series = training_set.contract.job, training_set.source.series
    version, champion, remark = load_champion(registry, job)  # before hours of training that an outage would lose
    agent, curves = train_in_two_phases(training_set, training)
    result = compare_policies(training_set, agent, champion, training)
    agent = with_chosen_margin(agent, result)
    allowed = comparison_level(result.hours_at, training_set.contract.error_budget)
    costs = {name: swept.hours_at(allowed) for name, swept in result.results.items()}
    rivals = select_rivals(lambda name: result.seeds_at(name, allowed), result.results, training.gain)
    reason = judge_agent(costs[AGENT], rivals, allowed).reason
    run.metrics({"gate.violation": allowed})
    run.metrics({f"gate.{name}": one.ratio_bound for name, one in rivals.items() if math.isfinite(one.ratio_bound)})
    run.metrics({f"hours.{name}": cost for name, cost in costs.items() if math.isfinite(cost)})
    for number, curve in enumerate(curves.values()):
        for row in curve:
            run.metrics({f"phase{number}.score": row["score"]}, int(row["transitions"]))
    run.figure(plot_learning(curves), "plots/learning.png")
    run.figure(plot_frontiers(result, allowed), "plots/frontier.png")
    run.text(json.dumps(backtest_to_json(NamedLoad(job, "records/s", series), result, {}), indent=1), "contest.json")
    card = agent_card(agent, training_set, result, allowed, reason, run.id, find_commit(), remark)
    run.text(card, "card.md")
    challenger = registry.register(run, job, agent, card, lineage, alias=CHALLENGER)
    run.tags({"challenger": challenger, "champion": version or ""})
    return f"challenger version {challenger}. {reason}. {remark}".strip()


def train_in_two_phases(training_set: TrainingSet, training: AgentTraining) -> tuple[DqnModel, dict[str, Any]]:
    """Train an agent on drawn jobs and loads, then fine-tune it on the job's own twin (simulator of the job).

    Which observations count as familiar to it is taken from the first phase. Torch runs on one thread meanwhile.

    Args:
        training_set: the twin and the loads.
        training: numbers of transitions (one per run and decision) of both phases, and the seed.

    Returns:
        The agent, and by phase (`GENERAL`, `FINE_TUNING`) a list of about 12 evaluations: dicts of `updates`,
        `transitions`, `loss` (NaN in the first) and `score` (mean reward per decision, higher is better).

    Raises:
        TwinError, SeriesError: the load is too short, negative or infinite, has gaps of over 3 steps, or long steps.
        ValueError: too few transitions for a single decision.
    """
    # With torch, which takes seconds to import; the DAG's other tasks, each a process of its own, do without.
    from models.dqn.training import train as learn

    loads = training_set.training_loads()
    wide = learn((), loads, _budgeted(TrainingLength(), training.transitions), training.seed)
    jobs = training_set.twin_variants(training.seed)
    fine = learn(jobs, loads[:1], _budgeted(FINE, training.fine_transitions), training.seed + 1, wide)
    return replace(fine, familiar=wide.familiar), {GENERAL: wide.curve, FINE_TUNING: fine.curve}


def with_chosen_margin(agent: DqnModel, result: TraceResult) -> DqnModel:
    """Return the agent with the extra margin added to `margins` that the comparison chose for it on the tuning part.

    The larger the margin, the rarer another move than the advised one.

    Raises:
        KeyError: the agent took no part in the comparison.
    """
    margin = dict(result.settings[AGENT].fields).get("margin", 0.0)
    return replace(agent, margins=agent.margins + margin)


def _budgeted(training: TrainingLength, transitions: int) -> TrainingLength:
    """Return the length with so many transitions, and about `LOOKS` evaluations, smaller ones below `FULL_TRIAL`.

    Runs are drawn for no more decisions than are made: drawing loads takes longest of a short training.
    """
    runs = training.groups * training.runs
    updates = transitions / runs * training.learner.updates
    learner = replace(training.learner, warm=min(training.learner.warm, transitions // 4))
    share = min(1.0, transitions / FULL_TRIAL)
    trial = tuple(max(4, round(share * size)) for size in training.trial)
    return replace(
        training, transitions=transitions, evaluate_every=max(1, math.ceil(updates / LOOKS)), learner=learner,
        trial=(trial[0], trial[1]), decisions=min(training.decisions, math.ceil(transitions / runs) + 1),
    )  # fmt: skip


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
    decided = verdict_without_figures(registry, job, tags)
    if decided is None:
        gain = float(parameters["gain"])
        rivals = {
            name: Rival(costs[name], metrics.get(f"gate.{name}", math.inf), most_of(name, gain))  # left out is infinite
            for name in (*RIVALS, CHAMPION)
            if name in costs
        }
        decided = judge_agent(costs.get(AGENT, math.nan), rivals, metrics["gate.violation"])
        decided = hold_after_rollback(registry, job, tags, decided)
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
