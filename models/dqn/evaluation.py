"""Evaluate trained agents, and decide whether one may be promoted.

A price is what a second over the latency target costs, in seconds of all executors; violation is the share of such
seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from models.dqn.agent.model import DqnModel
from models.dqn.environment.randomisation import REAL_FORECAST_LEADS_S, DrawnRuns, draw_runs
from models.dqn.environment.synthetic_loads import RecordedLoad
from models.dqn.environment.vector import VectorEnvironment
from models.dqn.learner.settings import TrainingLength
from models.forecast.selection.gate import Rival, Verdict, decide_promotion
from models.policy.core.capacity import Floats, Integers
from models.twin.sim.given import Load
from models.twin.sim.job import TwinJob

Choose = Callable[[VectorEnvironment], Integers]
MARGINS = (0.1, 0.3, 1.0, 1e9)
"""Candidates for `DqnModel.margins`; with the last one the agent follows the advice."""
SURE = 2.0
"""Standard errors by which departures must earn more than the advice, on runs that nothing was learned from."""
RIVALS = ("forecast", "mpc")
"""Policies of ours without training, that an agent must be cheaper than."""
AGENT, CHAMPION = "dqn", "champion"
EASIER = (0.01, 0.05, 0.1, 0.2, 0.5)
"""Violations to compare at instead, where none of `RIVALS` keeps the budget."""
FEWEST = 3
"""Seeds with which a rival has to keep to a violation in order to be one there, as many as a training has at least."""


def draw_trials(
    training: TrainingLength, jobs: Sequence[TwinJob], loads: Sequence[RecordedLoad], seed: int
) -> list[DrawnRuns]:
    """Draw the groups of runs on which agents are evaluated, the same for the same arguments.

    Args:
        training: how many runs and decisions.
        jobs: to draw from; empty for all kinds.
        loads: real ones, mixed with synthetic ones.
        seed: of everything.

    Returns:
        One group per lead time; a single one if jobs or `training.lead_s` are given.
    """
    chance = np.random.default_rng(seed)
    leads = (training.lead_s,) if jobs or training.lead_s else REAL_FORECAST_LEADS_S
    return [draw_runs(*training.trial, loads, chance, jobs, training.price, lead, training.batch_s) for lead in leads]


def score(agent: DqnModel, trial: Sequence[DrawnRuns]) -> float:
    """Return the mean of `scores`; higher is better.

    Raises:
        ValueError: no groups.
    """
    return float(np.mean(scores(agent, trial)))


def scores(agent: DqnModel, trial: Sequence[DrawnRuns]) -> Floats:
    """Return (all runs,) the mean weighted reward per decision of an agent, divided by `1 + price / 30`.

    The division keeps runs with high prices from outweighing all others.

    Raises:
        ValueError: no groups.
    """
    found = (run_to_end(made, _moves(agent)) for made in trial)
    return np.concatenate([(reward * weight).sum(axis=1) / (1 + weight[:, 1] / 30) for reward, weight in found])


def measure_cost(agent: DqnModel, trial: Sequence[DrawnRuns]) -> tuple[float, float]:
    """Run an agent on groups of runs and return its cost and its violation.

    Returns:
        Executors paid (and 2 executor-seconds per change of the target) divided by executors that the expected load
        needs, each the mean of a group's runs and decisions, summed over the groups; and the share, 0 to 1, of seconds
        of production over the latency target, the mean of the groups' means.

    Raises:
        ZeroDivisionError: no groups.
        ValueError: the agent was trained on other features.
    """
    reward = [run_to_end(made, _moves(agent))[0] for made in trial]
    need = sum(made.needed.mean() for made in trial)
    beyond = (one[:, 0] * made.jobs.facts["most"] for made, one in zip(trial, reward, strict=True))
    paid = sum((made.needed.mean(axis=1) - more).mean() for made, more in zip(trial, beyond, strict=True))
    late = (one[:, 1].mean() / _produced_share(made.load) for made, one in zip(trial, reward, strict=True))
    return paid / need, -sum(late) / len(trial)


def _produced_share(load: Load) -> float:
    """Share of the seconds of all runs in which anything is produced; above 0."""
    return max(float(load.produced_s(0, load.seconds).mean()), 1.0) / load.seconds


def choose_margin(made: DqnModel, price: float, trial: Sequence[DrawnRuns]) -> float:
    """Choose the margin at a price: the one that earns most, if it surely earns more than following the advice.

    Surely: the mean advantage over the runs is above 2 of its standard errors (`SURE`).

    Args:
        made: the agent.
        price: of a second over the target, in seconds of all executors.
        trial: groups of runs at this price.

    Returns:
        0.1, 0.3 or 1 (`MARGINS`), in units of sqrt(1 + price); 1e9, with which the advice is followed, where none of
        these is surely better.

    Raises:
        ValueError: no groups, or the agent was trained on other features.
    """

    def earned(margin: float) -> Floats:
        return scores(replace(made, prices=np.array([price]), margins=np.array([margin])), trial)

    advised, best, most = earned(MARGINS[-1]), MARGINS[-1], 0.0
    for margin in MARGINS[:-1]:
        more = earned(margin) - advised
        if more.mean() > max(most, SURE * float(more.std()) / np.sqrt(len(more))):
            best, most = margin, float(more.mean())
    return best


def run_to_end(made: DrawnRuns, choose: Choose) -> tuple[Floats, Floats]:
    """Run drawn groups to their last decision; the same moves give the same result at every call.

    Args:
        made: the runs.
        choose: from the environment to (runs,) moves, indices of `MOVES`; called once per decision.

    Returns:
        (runs, 2) the reward's parts (`actions.reward_parts`), mean over the decisions; and (runs, 2) their weights, 1
        and the price.

    Raises:
        IndexError: `choose` gives no such move. What it raises comes through.
    """
    vector, total = VectorEnvironment(made, np.arange(len(made.needed))), np.zeros((len(made.needed), 2))
    while not vector.over:
        total += vector.step(choose(vector))
    return total / made.decisions, vector.weight


def _moves(agent: DqnModel) -> Choose:
    return lambda at: agent.choose_moves(at.seen, at.weight[:, 1], at.mask, at.advice)


def comparison_level(hours_at: Callable[[str, float], float], budget: float, late: float) -> float:
    """Return the violation (share of seconds over the target) at which agent and rivals are compared.

    It is the budget, or the lowest of `EASIER` that one of `RIVALS` keeps, or the budget again where none keeps any.
    Where the agent is late less often than at an easier one, it is the agent's own, at least the budget: at an easier
    one rivals would be cheaper by breaking the promise.

    Args:
        hours_at: executor-hours of a policy at a violation; NaN where it always violates more.
        budget: the contract's.
        late: the agent's violation at the price at which it would serve.
    """
    easier = (budget, *(allowed for allowed in EASIER if allowed > budget))
    kept = (allowed for allowed in easier if any(math.isfinite(hours_at(name, allowed)) for name in RIVALS))
    return min(next(kept, budget), max(late, budget))


def select_rivals(costs: Callable[[str], Floats], names: Iterable[str], gain: float) -> dict[str, Rival]:
    """Select the policies that an agent is compared with: `RIVALS` and the champion, as far as they took part.

    Args:
        costs: (seeds,) executor-hours of a policy at the compared violation; NaN where it violates more.
        names: of the policies that took part.
        gain: share by which the agent must be cheaper than `RIVALS`; than the champion it must be no dearer.

    Returns:
        Rivals by name; one that keeps to the violation with fewer than FEWEST (3) seeds has a NaN cost and is skipped
        by `judge_agent`: the bound beside it would be the wider the fewer. Beside the others the bound is infinite
        where the agent has no costs.
    """
    there = [name for name in (*RIVALS, CHAMPION) if name in names]
    return {name: _beside(costs(AGENT), costs(name), most_of(name, gain), len(there)) for name in there}


def _beside(mine: Floats, theirs: Floats, max_ratio: float, rivals: int) -> Rival:
    kept = theirs[np.isfinite(theirs)]
    if len(kept) < FEWEST:
        return Rival(math.nan, math.nan, max_ratio)
    if not np.isfinite(mine).all():
        return Rival(float(kept.mean()), math.inf, max_ratio)
    return Rival.compare(mine, theirs, max_ratio, rivals)


def most_of(rival: str, gain: float) -> float:
    """Return how many times a rival's cost an agent may have: 1 for the champion, else 1 less the gain."""
    return 1.0 if rival == CHAMPION else 1.0 - gain


def judge_agent(cost: float, rivals: Mapping[str, Rival], allowed: float) -> Verdict:
    """Decide whether an agent may be promoted: surely as cheap as asked beside each rival, at equal violation.

    Args:
        cost: its executor-hours at the price at which it serves; NaN, where it violates more than allowed, is rejected.
        rivals: of `select_rivals`; without any that has a cost it is promoted, beside an infinite bound rejected.
        allowed: the compared violation, for the reason's text.
    """
    if math.isnan(cost):
        late = f"more than {allowed:.3g} of the seconds are over the target"
        return Verdict(False, f"rejected: at the price at which it would serve, {late}")
    return decide_promotion(cost, rivals, f"executor-hours at {allowed:.3g} of the seconds over the target, ")
