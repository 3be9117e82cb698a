"""A challenger: an agent that is trained, compared with other policies on held-out load, and registered."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

from configs.sections import AgentTraining
from models.dqn.agent.model import DqnModel
from models.dqn.evaluation import AGENT, comparison_level, judge_agent, select_rivals
from models.dqn.learner.settings import FINE, TrainingLength
from models.policy.core.capacity import Floats
from models.twin.experiment.results import TraceResult
from pipelines.backtest.load import NamedLoad
from pipelines.backtest.report import backtest_to_json
from pipelines.figures.written import find_commit
from pipelines.registry import CHALLENGER, AgentRegistry, TrackedRun
from pipelines.train.agent.card import agent_card, plot_frontiers, plot_learning
from pipelines.train.agent.training_set import TrainingSet, compare_policies, serving_knobs
from pipelines.train.promotion import load_champion

LOOKS = 12
"""About how many evaluations a phase of the training has."""
FULL_TRIAL = 50_000
"""Transitions from which on evaluations are in full size; with fewer they would take longer than the training."""
GENERAL, FINE_TUNING = "drawn jobs and loads", "its own twin"


def challenge(
    registry: AgentRegistry, run: TrackedRun, training: AgentTraining, training_set: TrainingSet,
    lineage: dict[str, Any],
) -> str:  # fmt: skip
    """Train, compare on held-out load and register as challenger; returns the outcome in words.

    Raises:
        TwinError: the load is too short, negative or has gaps.
        Exception: else as `pipelines.train.agent.run.train_challenger`.
    """
    job = training_set.contract.job
    version, champion, remark = load_champion(registry, job)  # before hours of training that an outage would lose
    agent, curves = train_in_two_phases(training_set, training)
    result = compare_policies(training_set, agent, champion, training)
    agent = with_chosen_margin(agent, result)
    serving = serving_knobs(training_set.contract, agent, champion)
    budget = training_set.contract.error_budget * result.scenario.produced_share
    allowed = comparison_level(result.hours_at, budget, result.violation_with(AGENT, serving[AGENT]))
    reason = _judge(run, result, allowed, training.gain, serving)
    _keep(run, training_set, curves, result, allowed)
    card = agent_card(agent, training_set, result, serving, allowed, reason, run.id, find_commit(), remark)
    run.text(card, "card.md")
    challenger = registry.register(run, job, agent, card, lineage, alias=CHALLENGER)
    run.tags({"challenger": challenger, "champion": version or ""})
    return f"challenger version {challenger}. {reason}. {remark}".strip()


def _judge(run: TrackedRun, result: TraceResult, allowed: float, gain: float, serving: dict[str, float]) -> str:
    """Judge the agent at an allowed share of late seconds, and keep by what, for `decide_on_challenger`; says why.

    Agents are judged with the knob with which they serve (`serving`), which nothing corrects later; a promise steers
    their rivals.
    """

    def seeds(name: str) -> Floats:
        knob = serving.get(name)
        return result.seeds_at(name, allowed) if knob is None else result.seeds_with(name, knob, allowed)

    costs = {name: swept.hours_at(allowed) for name, swept in result.results.items()}
    costs |= {name: result.hours_with(name, knob, allowed) for name, knob in serving.items()}
    rivals = select_rivals(seeds, result.results, gain)
    costs |= {name: one.cost for name, one in rivals.items()}  # a rival may keep to it with most seeds, not in the mean
    run.metrics({"gate.violation": allowed})
    run.metrics({f"gate.{name}": one.ratio_bound for name, one in rivals.items() if math.isfinite(one.ratio_bound)})
    run.metrics({f"hours.{name}": cost for name, cost in costs.items() if math.isfinite(cost)})
    return judge_agent(costs[AGENT], rivals, allowed).reason


def _keep(
    run: TrackedRun, training_set: TrainingSet, curves: dict[str, Any], result: TraceResult, allowed: float
) -> None:
    """Keep how the agent learned, and what the comparison came to, as metrics, plots and `contest.json`."""
    for number, curve in enumerate(curves.values()):
        run.curve((int(row["transitions"]), {f"phase{number}.score": row["score"]}) for row in curve)
    run.figure(plot_learning(curves), "plots/learning.png")
    run.figure(plot_frontiers(result, allowed), "plots/frontier.png")
    load = NamedLoad(training_set.contract.job, "records/s", training_set.source.series)
    run.text(json.dumps(backtest_to_json(load, result, {}), indent=1), "contest.json")


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
    jobs, as_promised = training_set.twin_variants(training.seed), replace(FINE, batch_s=training_set.contract.batch_s)
    fine = learn(jobs, loads[:1], _budgeted(as_promised, training.fine_transitions), training.seed + 1, wide)
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
