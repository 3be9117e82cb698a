"""A registered agent's model card and plots: what it is, its training data, its executor-hours beside others'."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from models.dqn.agent.model import DqnModel
from models.dqn.evaluation import AGENT, CHAMPION, MARGINS, RIVALS
from models.twin.experiment.frontier import pareto_frontier
from models.twin.experiment.results import ALLOWED, TraceResult
from pipelines.train.agent.training_set import TrainingSet
from pipelines.train.card import describe_data, describe_making

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = {
    AGENT: "#c4713b", CHAMPION: "#8a5a9e", "mpc": "#2f6f9f", "forecast": "#5b9bc8", "reactive": "#7a8794",
    "hpa": "#b9c0c7", "true_future": "#4d8b57", "optimum": "#1f2933",
}  # fmt: skip
_LEAST = 1e-4  # share of the seconds; smaller ones are drawn as this, for the log scale


def describe_departures(agent: DqnModel) -> str:
    """Say at which prices of a second over the latency target the agent departs from what the policy `mpc` advises.

    Prices are in seconds of all executors per second over the target: the lowest and the highest are named, or none.
    """
    at = agent.prices[agent.margins < MARGINS[-1]]
    if not len(at):
        return "It does what it is advised: its own moves did not surely earn more, or cost more on the tuning part."
    return f"It departs where a second over the target costs {at.min():.2g} to {at.max():.2g} s of all executors."


def agent_card(
    agent: DqnModel, training_set: TrainingSet, result: TraceResult, serving: Mapping[str, float], allowed: float,
    reason: str, run: str, commit: str | None, note: str = "",
) -> str:  # fmt: skip
    """Write the model card of a trained agent: returns Markdown.

    Args:
        agent: the challenger.
        training_set: what it was trained on.
        result: its comparison with other policies on held-out load; the card has a table of executor-hours by policy at
            several shares of seconds over the latency target, cheapest policy first, empty where a policy violates
            more.
        serving: by name the knobs (log10 of the price of a second over the target) with which agents serve, and at
            which they stand in the table.
        allowed: share (0..1) of seconds over the latency target at which executor-hours were compared.
        reason: of the gate's verdict, in words.
        run: MLflow's id of the run that made it.
        commit: of the code that made it; None: nobody knows.
        note: a last paragraph; none where it is empty.
    """
    contract, source = training_set.contract, training_set.source
    promised = contract.error_budget * result.scenario.produced_share  # a budget is of the seconds of production
    levels = sorted({*ALLOWED, promised, allowed})
    met, rivals = (
        f"the contract's error budget, {contract.error_budget:.3g} of those of production",
        " and ".join(RIVALS),
    )
    if allowed != promised:
        met = f"nobody of {rivals} keeps {met}, which is {promised:.3g} of all"
    lines = [
        f"# dqn for {contract.job}",
        f"Chooses the change of the target of executors ({contract.executors.min} to {contract.executors.max}); what "
        "it observes and what it is paid is in `models/dqn`. `mpc` advises it at its own price, and it departs "
        "from that by an executor at most. Outside what it was trained on, the baseline "
        "answers; the target is raised to what the observed rate needs, in turns where the contract asks for them.",
        describe_departures(agent),
        f"Twin: {training_set.twin}. Executors take {training_set.setup.lead_s:g} s to come, as the contract says; "
        f"latency target {contract.latency_target_s:g} s.",
        f"{describe_data(source)} It learned from what lies before the parts on which policies are tuned and judged, "
        f"from {len(training_set.others)} recorded loads of others, and from drawn ones.",
        describe_making(
            run, commit, "retrain_agent", {"job": contract.job},
            f"the tables of the lake as of Delta version {source.delta_version} of `metrics`, and the same stored fit "
            "of the twin",
            "another job, or one whose service, start-up or contract has become another: costs are those of the twin. "
            "It knows the load's forecast and the job's state, no plans and no holidays.",
        ),
        f"Gate: on the newest {result.scenario.seconds:,} s of the job's clock, at {allowed:.3g} of them over the "
        f"target ({met}), the agent "
        f"must surely be cheaper than {rivals} by what the settings ask, and no dearer than the champion. {reason}.",
        _at_its_price(result, serving[AGENT]),
        _table(result, serving, levels),
        note,
    ]  # fmt: skip
    return "\n\n".join(filter(None, lines))


def _at_its_price(result: TraceResult, knob: float) -> str:
    late, hours = result.violation_with(AGENT, knob), result.hours_with(AGENT, knob, math.inf)
    of_production = late / (result.scenario.produced_share or 1.0)
    return (
        f"It serves at a price of {10**knob:.3g} s of all executors for a second over the target: there it took "
        f"{hours:.4g} executor-hours and was late in {100 * late:.3g} % of the seconds, {100 * of_production:.3g} % of "
        "those of production. In the table agents are at the price at which they serve, others at the best knob."
    )


def _table(result: TraceResult, serving: Mapping[str, float], levels: Sequence[float]) -> str:
    rows = [
        f"| executor-hours at | {' | '.join(f'{100 * a:.3g} %' for a in levels)} |",
        "|---" * (len(levels) + 1) + "|",
    ]

    def hours(name: str, allowed: float) -> float:
        known = serving.get(name)
        return result.hours_at(name, allowed) if known is None else result.hours_with(name, known, allowed)

    costs = {name: [hours(name, allowed) for allowed in levels] for name in result.results}
    for name in sorted(costs, key=lambda name: (math.isnan(costs[name][-1]), costs[name][-1])):
        rows.append(f"| {name} | {' | '.join(f'{c:.4g}' if math.isfinite(c) else '' for c in costs[name])} |")
    return "\n".join(rows)


def plot_frontiers(result: TraceResult, allowed: float) -> Figure:
    """Plot executor-hours against the seconds over the latency target (per cent, log scale), both means over the seeds.

    A line per policy, of those values of its tuned parameter that no other value beats in both. Nothing is saved.

    Args:
        result: on held-out load, by policy: hours and violation (that share of seconds), each (parameter values,
            seeds). Policies without a colour in this module are left out.
        allowed: share (0..1) at which costs are compared; drawn as a vertical line.
    """
    figure, (panel,) = _panels(1, (8, 5))
    for name, colour in _COLOURS.items():
        if name in result.results:
            share, paid = pareto_frontier(*result.results[name].means)
            panel.plot(100 * np.maximum(share, _LEAST), paid, marker="o", markersize=3, color=colour, label=name,
                       linewidth=2.2 if name == AGENT else 1.3)  # fmt: skip
    panel.axvline(100 * allowed, color="#1f2933", linewidth=0.8, linestyle=":", label="compared at")
    panel.set_xscale("log")
    panel.set_xlabel("% of the seconds over the latency target")
    panel.set_ylabel("executor-hours")
    panel.legend(frameon=False, fontsize=8)
    return figure


def plot_learning(curves: Mapping[str, Sequence[Mapping[str, float]]]) -> Figure:
    """Plot the evaluation score against thousands of transitions (one per run and decision); the figure is not saved.

    A panel per phase of the training, its rows with the keys `transitions` and `score` (mean reward per decision).

    Raises:
        KeyError: a row lacks one of these keys.
        ValueError: there is no phase.
    """
    figure, panels = _panels(len(curves), (8, 3.5))
    for panel, (phase, curve) in zip(panels, curves.items(), strict=True):
        panel.plot([row["transitions"] / 1000 for row in curve], [row["score"] for row in curve], color=_COLOURS[AGENT],
                   marker="o", markersize=3)  # fmt: skip
        panel.set_title(phase, loc="left", fontsize=10)
        panel.set_xlabel("thousand transitions")
        panel.set_ylabel("score on runs of its own")
    return figure


def _panels(count: int, size: tuple[float, float]) -> tuple[Figure, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(1, count, squeeze=False)[0]
    for panel in panels:
        panel.spines[["top", "right"]].set_visible(False)
    return figure, panels
