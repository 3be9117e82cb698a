"""What becomes of what was learned, and of the promise, when executors begin to take another time to start."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from configs.bounds import DAY_S, HOUR_S
from models.policy.core.capacity import Floats
from models.policy.live.learned_lead import LEVEL
from models.twin.experiment.scenario import Scenario
from models.twin.experiment.setup import SPREAD
from models.twin.promise.learning import LeadChange, Pass, Promises, Raise, run_learning

STARTS = 8
"""Start-ups after a change by which the new lead time should be known."""
MEDIAN_WITHIN, PLANNED_WITHIN, WITHIN = 0.2, 0.3, 1.25
"""Shares of the true median and of the true 0.9 quantile within which those learned are near; late seconds, as a
multiple of the budget, within which an account is on its line."""


@dataclass(frozen=True)
class LearnedChange:
    """What one run has learned after a change.

    Attributes:
        budget: share of the seconds that may be late.
        starts: start-ups that had been asked for after the change and told of when median and 0.9 quantile were first
            near the true ones; None if they never were.
        median, planned: learned ÷ true after `STARTS` of them, or after all if there were fewer.
    """

    budget: float
    starts: int | None
    median: float
    planned: float


@dataclass(frozen=True)
class ChangedAccount:
    """The account of a promise around a change; shares of the seconds, means over the draws of the arrivals.

    Attributes:
        budget: share that may be late.
        before: share that was, before the change.
        first_day: in the 24 hours from the change on.
        later: from then to the end: the account that is to be on its line again.
        back_h: whole hours after the change from which on to the end no more than 1.25 × the budget was late; None if
            not a day before the end.
        leads: new lead times that the budget of these later seconds lasts.
    """

    budget: float
    before: float
    first_day: float
    later: float
    back_h: int | None
    leads: float


def judge_change(
    scenario: Scenario, believed_s: float, lead_s: float, at_s: int, budgets: Sequence[float]
) -> tuple[list[LearnedChange], list[ChangedAccount]]:
    """Run `mpc` steered by each promise over a scenario in which the time that executors take to start changes.

    True are the quantiles over all raises of one executor after the change, of all runs.

    Args:
        scenario: at the lead time of before; with the blend's forecasts.
        believed_s: lead time that the contract states, seconds.
        lead_s: seconds that executors take to start afterwards, within 15 %.
        at_s: seconds from the first that counts to the change; at least a day follows the day after it.
        budgets: shares of the seconds that may be late.

    Returns:
        What every run learned, and an account per budget.

    Raises:
        KeyError: the scenario lacks the blend's forecasts.
        ValueError: no raise of one executor follows the change.
    """
    contract = scenario.setup.contract.planned_for(believed_s)
    contracts = [contract.model_copy(update={"error_budget": budget}) for budget in budgets]
    change = LeadChange(scenario.warm_s + at_s, tuple(lead_s * share for share in SPREAD))
    (found,) = run_learning([Promises(scenario, contracts)], change)
    after = [one for one in found.raises if one.decided_s >= change.at_s]
    took = [one.seconds for one in after if one.executors == 1 and not one.censored]
    if not took:
        raise ValueError(f"{scenario.name}: no executor was asked for after the change; take a livelier load")
    true_s = float(np.median(took)), float(np.quantile(took, LEVEL))
    runs = np.repeat(budgets, scenario.seeds).tolist()
    learned = [
        learned_after(budget, [one for one in after if one.run == run], true_s) for run, budget in enumerate(runs)
    ]
    late_s = _by_hour(found, scenario, len(budgets))
    return learned, [
        account_around(budget, late, at_s, budget / lead_s) for budget, late in zip(budgets, late_s.T, strict=True)
    ]


def learned_after(budget: float, raises: Iterable[Raise], true_s: tuple[float, float]) -> LearnedChange:
    """Judge what one run had learned after each start-up since the change; `true_s` are median and 0.9 quantile.

    An outcome that takes the place of one of the same raise is no further start-up.
    """
    starts, known, decided = None, (np.nan, np.nan), set[float]()
    for one in raises:
        decided.add(one.decided_s)
        ratios = one.median_s / true_s[0], one.planned_s / true_s[1]
        if starts is None and abs(ratios[0] - 1) <= MEDIAN_WITHIN and abs(ratios[1] - 1) <= PLANNED_WITHIN:
            starts = len(decided)
        if len(decided) <= STARTS:
            known = ratios
    return LearnedChange(budget, starts, *known)


def account_around(budget: float, late_s: Floats, at_s: float, leads_per_s: float) -> ChangedAccount:
    """Judge the account around a change.

    Args:
        budget: share of the seconds that may be late.
        late_s: (H + 1,) late seconds until each hour since the first that counts.
        at_s: seconds from there to the change.
        leads_per_s: lead times that the budget of a second lasts.
    """
    first, day, last = round(at_s / HOUR_S), round(DAY_S / HOUR_S), len(late_s) - 1

    def share(begin: int, end: int) -> float:
        return float((late_s[end] - late_s[begin]) / ((end - begin) * HOUR_S))

    back = (h for h in range(last - day - first + 1) if share(first + h, last) <= WITHIN * budget)
    return ChangedAccount(
        budget, share(0, first), share(first, first + day), share(first + day, last), next(back, None),
        (last - first - day) * HOUR_S * leads_per_s,
    )  # fmt: skip


def _by_hour(found: Pass, scenario: Scenario, budgets: int) -> Floats:
    """(H + 1, budgets) late seconds until each hour that counts, means over the draws."""
    every = scenario.setup.looks.every_s
    looks = (scenario.warm_s + np.arange(0, scenario.seconds - scenario.warm_s, HOUR_S)) // every
    late = found.late_s[looks.astype(np.int64)]
    late[0] = 0.0  # what was late before counts no longer
    hourly: Floats = late.reshape(len(looks), budgets, -1).mean(axis=2)
    return hourly
