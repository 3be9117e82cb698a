"""What a policy that the promise steers comes to, beside its knob chosen in hindsight, and beside others' settings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from configs.bounds import DAY_S
from models.forecast.core.series import Series
from models.policy.catalogue import entry
from models.policy.core.capacity import Floats
from models.twin.experiment.contenders import DEFAULTS, Sweep, Trial, make_contender
from models.twin.experiment.evaluation import run_trials
from models.twin.experiment.frontier import least_cost_at
from models.twin.experiment.scenario import Scenario
from models.twin.experiment.setup import Setup
from models.twin.promise.learning import Pass, Promises, run_learning
from models.twin.sim.job import TwinError

BUDGETS = (0.001, 0.01, 0.05)
"""Shares of the seconds that may be late, each a promise."""
HISTORY_DAYS, HISTORY_SHARE = 8.0, 1 / 3
"""Days of a load, and share of it, that come before the first second that counts, whichever are longer."""
COMPARABLE = (1e-4, 0.5)
"""Shares of late seconds between which that of a policy at its usual setting is taken for a promise."""


@dataclass(frozen=True)
class SteeredCell:
    """One load under one promise; means over the draws of its arrivals.

    Attributes:
        budget: share of the seconds that may be late.
        late: share that was.
        hours: executor-hours.
        hindsight_hours: those of the best fixed value of the knob that keeps the promise; None where none does.
        leads: lead times that the whole budget lasts: with a handful one bad raise decides.
    """

    budget: float
    late: float
    hours: float
    hindsight_hours: float | None
    leads: float


@dataclass(frozen=True)
class DefaultCell:
    """One load served by another policy at its usual setting, and by `mpc` steered by as many late seconds as that had.

    Attributes:
        policy: the other one.
        late, hours: its share of late seconds, and executor-hours.
        steered_late, steered_hours: those of `mpc`.
    """

    policy: str
    late: float
    hours: float
    steered_late: float
    steered_hours: float


def steps_after_history(name: str, series: Series, setup: Setup, days: float) -> range:
    """Return the steps from the later of day 8 and the first third on, at most so many days of the job's clock.

    Raises:
        TwinError: fewer than one day is left.
    """
    day = DAY_S / setup.step_s(series)
    first = max(math.ceil(HISTORY_DAYS * day), math.ceil(HISTORY_SHARE * len(series)))
    last = min(first + round(days * day), len(series))
    if last - first < day:
        raise TwinError(f"{name}: {len(series) / day:.1f} days; a promise is judged after {first / day:.0f}, for a day")
    return range(first, last)


def judge_steering(
    every: Sequence[tuple[Scenario, float]], budgets: Sequence[float] = BUDGETS
) -> list[tuple[list[SteeredCell], list[DefaultCell]]]:
    """Simulate `mpc` on scenarios steered by each promise, in one pass, and with every fixed value of its knob.

    All have the same forecaster and the same hyper-parameters, the catalogue's. The steered one begins where its
    contract says, knows nothing of the load and learns its lead time from its raises; the others are told it. All
    scenarios share a simulation, which changes nothing in any of them.

    Args:
        every: scenarios with the blend's forecasts, of one setup, each with the lead time that the steered one's
            contract states, seconds.
        budgets: shares of the seconds that may be late.

    Returns:
        For each scenario a cell per budget, and one per policy of `DEFAULTS` that is late in a share of
        `COMPARABLE`, which `mpc` steered by that share answers.

    Raises:
        KeyError: a scenario lacks the blend's forecasts.
    """
    ours, others = make_contender("mpc"), [make_contender(name) for name in DEFAULTS]
    trials = []
    for scenario, _ in every:
        trials.append(Trial(ours, Sweep(scenario, ours.setting, np.array(entry("mpc").values))))
        for other in others:
            usual = np.array([entry(other.policy).usual_setting], float)
            trials.append(Trial(other, Sweep(scenario, other.setting, usual)))
    means = [result.means for result in run_trials(trials)]
    swept, beside = means[:: 1 + len(others)], []
    for at in range(len(every)):
        of_it = means[at * (1 + len(others)) :][1 : 1 + len(others)]
        shares = [(name, float(late[0]), float(paid[0])) for name, (late, paid) in zip(DEFAULTS, of_it, strict=True)]
        beside.append([one for one in shares if COMPARABLE[0] <= one[1] <= COMPARABLE[1]])
    promises = [
        _promises(*one, [*budgets, *(share for _, share, _ in near)]) for one, near in zip(every, beside, strict=True)
    ]
    passes = run_learning(promises)
    return [
        _cells(one.scenario, budgets, swept[at], beside[at], _means(passes[at], one))
        for at, one in enumerate(promises)
    ]  # fmt: skip


def _promises(scenario: Scenario, believed_s: float, budgets: Sequence[float]) -> Promises:
    contract = scenario.setup.contract.planned_for(believed_s)
    return Promises(scenario, [contract.model_copy(update={"error_budget": budget}) for budget in budgets])


def _means(found: Pass, promises: Promises) -> list[tuple[float, float]]:
    """Share of late seconds and executor-hours under each contract, means over the draws."""
    outcome, shape = found.outcome, (len(promises.contracts), promises.scenario.seeds)
    late, paid = (of.reshape(shape).mean(axis=1) for of in (outcome.violation, outcome.executor_s))
    return [(float(share), float(seconds) / 3600) for share, seconds in zip(late, paid, strict=True)]


def _cells(
    scenario: Scenario, budgets: Sequence[float], swept: tuple[Floats, Floats],
    beside: Sequence[tuple[str, float, float]], steered: Sequence[tuple[float, float]],
) -> tuple[list[SteeredCell], list[DefaultCell]]:  # fmt: skip
    """The cells of one scenario: `swept` are late shares and hours by the knob, `steered` those that `_means` gives."""
    counted_s = scenario.seconds - scenario.warm_s
    best = [least_cost_at(*swept, budget) for budget in budgets]
    cells = [
        SteeredCell(
            budget, share, paid, None if math.isnan(least) else least, budget * counted_s / scenario.setup.lead_s
        )
        for budget, (share, paid), least in zip(budgets, steered, best, strict=False)
    ]  # fmt: skip
    return cells, [DefaultCell(*one, *mine) for one, mine in zip(beside, steered[len(budgets) :], strict=True)]
