"""A registered agent's model card and pictures: what it is, what it learned on, what it costs beside others."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from models.dqn.agent.model import DqnModel
from models.dqn.evaluation.gate import AGENT, CHAMPION, RIVALS
from models.dqn.evaluation.trial import MARGINS
from models.twin.experiment.frontier import frontier
from models.twin.experiment.results import ALLOWED, TraceResult
from pipelines.train.agent.lesson import TrainingSet

_COLOURS = {
    AGENT: "#c4713b", CHAMPION: "#8a5a9e", "mpc": "#2f6f9f", "forecast": "#5b9bc8", "reactive": "#7a8794",
    "hpa": "#b9c0c7", "true_future": "#4d8b57", "optimum": "#1f2933",
}  # fmt: skip
_LEAST = 1e-4


def departing(agent: DqnModel) -> str:
    """In words, at which prices it departs from its advice."""
    at = agent.prices[agent.margins < MARGINS[-1]]
    if not len(at):
        return "It does what it is advised: its own moves did not surely earn more, or cost more on the tuning part."
    return f"It departs where a second over the target costs {at.min():.2g} to {at.max():.2g} s of all executors."


def agent_card(
    agent: DqnModel, lesson: TrainingSet, result: TraceResult, allowed: float, reason: str, note: str = ""
) -> str:
    """The card as Markdown."""
    contract, setup, data = lesson.contract, lesson.setup, lesson.source.lineage()
    levels = sorted({*ALLOWED, contract.error_budget, allowed})
    met = (
        "the contract's error budget"
        if allowed == contract.error_budget
        else (f"nobody of {' and '.join(RIVALS)} keeps the contract's error budget of {contract.error_budget:.3g}")
    )
    lines = [
        f"# dqn for {contract.job}",
        f"Chooses the change of the target of executors ({contract.executors.min} to {contract.executors.max}); what "
        "it observes and what it is paid is in `models/dqn`. `mpc` advises it at its own price, and it departs "
        "from that by an executor at most. Outside what it was trained on, the baseline "
        "answers; the target is never below what the observed rate needs.",
        departing(agent),
        f"Twin: {lesson.twin}. Executors take {setup.lead_s:g} s to come, as the contract says; latency target "
        f"{contract.latency_target_s:g} s.",
        f"Data: {data['data.steps']} steps ({data['data.missing']} missing), {data['data.from']} to {data['data.to']} "
        f"UTC, Delta version {data['data.delta_version']}, digest {data['data.digest']}. It learned from what lies "
        "before the parts on which policies are tuned and judged, from "
        f"{len(lesson.others)} recorded loads of others, and from drawn ones.",
        f"Gate: on the newest {result.scenario.seconds:,} s of the job's clock, at {allowed:.3g} of them over the "
        f"target ({met}), the agent "
        f"may not be dearer than the cheaper of {' and '.join(RIVALS)}, nor than the champion. {reason}.",
        _table(result, levels),
        "Limits: costs are those of the twin. It knows the load's forecast and the job's state, no plans and no "
        "holidays.",
    ]
    return "\n\n".join([*lines, note] if note else lines)


def _table(result: TraceResult, levels: Sequence[float]) -> str:
    rows = [
        f"| executor-hours at | {' | '.join(f'{100 * a:.3g} %' for a in levels)} |",
        "|---" * (len(levels) + 1) + "|",
    ]
    for name in sorted(result.sheets, key=lambda name: _rank(result.hours_at(name, levels[-1]))):
        costs = (result.hours_at(name, allowed) for allowed in levels)
        rows.append(f"| {name} | {' | '.join(f'{c:.4g}' if math.isfinite(c) else '' for c in costs)} |")
    return "\n".join(rows)


def _rank(cost: float) -> float:
    return cost if math.isfinite(cost) else math.inf


def frontiers(result: TraceResult, allowed: float) -> Figure:
    """Executor-hours against the share of seconds over the target, a line per policy."""
    figure = Figure(figsize=(8, 5), layout="constrained")
    panel = figure.subplots()
    for name, colour in _COLOURS.items():
        if name in result.sheets:
            sheet = result.sheets[name]
            share, paid = frontier(sheet.violation.mean(axis=1), sheet.hours.mean(axis=1))
            width = 2.2 if name == AGENT else 1.3
            panel.plot(
                100 * np.maximum(share, _LEAST),
                paid,
                marker="o",
                markersize=3,
                color=colour,
                label=name,
                linewidth=width,
            )
    panel.axvline(100 * allowed, color="#1f2933", linewidth=0.8, linestyle=":", label="compared at")
    panel.set_xscale("log")
    panel.set_xlabel("% of the seconds over the latency target")
    panel.set_ylabel("executor-hours")
    panel.spines[["top", "right"]].set_visible(False)
    panel.legend(frameon=False, fontsize=8)
    return figure


def learning(curves: Mapping[str, Sequence[Mapping[str, float]]]) -> Figure:
    """Score by transitions, a panel per phase of the training."""
    figure = Figure(figsize=(8, 3.5), layout="constrained")
    panels = figure.subplots(1, len(curves), squeeze=False)[0]
    for panel, (phase, curve) in zip(panels, curves.items(), strict=True):
        panel.plot([row["transitions"] / 1000 for row in curve], [row["score"] for row in curve], color=_COLOURS[AGENT],
                   marker="o", markersize=3)  # fmt: skip
        panel.set_title(phase, loc="left", fontsize=10)
        panel.set_xlabel("thousand transitions")
        panel.set_ylabel("score on runs of its own")
        panel.spines[["top", "right"]].set_visible(False)
    return figure
