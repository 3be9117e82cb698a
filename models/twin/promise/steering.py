"""What a policy that the promise steers comes to, beside its knob chosen in hindsight, and beside shipped defaults."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.forecast.core.series import Series
from models.policy.catalogue import entry
from models.twin.experiment.contenders import DEFAULTS, Sweep, Trial, make_contender
from models.twin.experiment.evaluation import run_trials
from models.twin.experiment.frontier import least_cost_at
from models.twin.experiment.scenario import Scenario
from models.twin.experiment.setup import DAY_S, Setup
from models.twin.promise.learning import run_learning
from models.twin.sim.job import TwinError

BUDGETS = (0.001, 0.01, 0.05)
"""Shares of the seconds that may be late, each a promise."""
HISTORY_DAYS, HISTORY_SHARE = 8.0, 1 / 3
"""Days of a load, and share of it, that come before the first second that counts, whichever are longer."""
COMPARABLE = (1e-4, 0.5)
"""Shares of late seconds between which a shipped default's is taken for a promise."""


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
    """One load served by a policy as its vendor ships it, and by `mpc` steered by as many late seconds as that had.

    Attributes:
        policy: that is shipped.
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
    scenario: Scenario, believed_s: float, budgets: Sequence[float] = BUDGETS, defaults: Sequence[str] = DEFAULTS
) -> tuple[list[SteeredCell], list[DefaultCell]]:
    """Simulate `mpc` on a scenario steered by each promise, in one pass, and with every fixed value of its knob.

    All have the same forecaster and the same hyper-parameters, the catalogue's. The steered one begins where its
    contract says, knows nothing of the load and learns its lead time from its raises; the others are told it.

    Args:
        scenario: with the blend's forecasts.
        believed_s: lead time that the steered one's contract states, seconds.
        budgets: shares of the seconds that may be late.
        defaults: policies with a vendor's default; those late in a share of `COMPARABLE` are answered by `mpc` steered
            by that share.

    Returns:
        A cell per budget, and one per policy of `defaults` that is comparable.

    Raises:
        KeyError: the scenario lacks the blend's forecasts.
        TypeError: a policy of `defaults` has no vendor's default.
    """
    ours = make_contender("mpc")
    trials = [Trial(ours, Sweep(scenario, ours.setting, np.array(entry("mpc").values)))]
    for name in defaults:
        other = make_contender(name)
        trials.append(Trial(other, Sweep(scenario, other.setting, np.array([entry(name).vendor_default], float))))
    (late, hours), *shipped = (result.means for result in run_trials(trials))
    beside = [
        (name, float(share[0]), float(paid[0]))
        for name, (share, paid) in zip(defaults, shipped, strict=True)
        if COMPARABLE[0] <= share[0] <= COMPARABLE[1]
    ]
    found = _steered(scenario, [*budgets, *(share for _, share, _ in beside)], believed_s)
    counted_s = scenario.seconds - scenario.warm_s
    best = [least_cost_at(late, hours, budget) for budget in budgets]
    cells = [
        SteeredCell(
            budget, share, paid, None if math.isnan(least) else least, budget * counted_s / scenario.setup.lead_s
        )
        for budget, (share, paid), least in zip(budgets, found, best, strict=False)
    ]  # fmt: skip
    others = [DefaultCell(*one, *mine) for one, mine in zip(beside, found[len(budgets) :], strict=True)]
    return cells, others


def _steered(scenario: Scenario, budgets: Sequence[float], believed_s: float) -> list[tuple[float, float]]:
    """Share of late seconds and executor-hours under each budget, means over the draws."""
    contract = scenario.setup.contract.planned_for(believed_s)
    contracts = [contract.model_copy(update={"error_budget": budget}) for budget in budgets]
    outcome, shape = run_learning(scenario, contracts).outcome, (len(budgets), scenario.seeds)
    late, paid = (of.reshape(shape).mean(axis=1) for of in (outcome.violation, outcome.executor_s))
    return [(float(share), float(seconds) / 3600) for share, seconds in zip(late, paid, strict=True)]
