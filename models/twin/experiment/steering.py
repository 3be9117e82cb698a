"""What a policy that the promise steers comes to, beside the same policy with its knob chosen in hindsight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.policy.catalogue import build, entry, with_knob
from models.policy.core.steered import Steered
from models.twin.experiment.contenders import Sweep, Trial, make_contender
from models.twin.experiment.evaluation import run_sweeps
from models.twin.experiment.frontier import least_cost_at
from models.twin.experiment.lanes import collect_forecasts, collect_load
from models.twin.experiment.scenario import Scenario
from models.twin.sim.job import stack
from models.twin.sim.run import simulate

BUDGETS = (0.001, 0.01, 0.05)
"""Shares of the seconds that may be late, each a promise."""


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


def judge_steering(scenario: Scenario, budgets: Sequence[float] = BUDGETS) -> list[SteeredCell]:
    """Simulate `mpc` on a scenario steered by each promise, in one pass, and with every fixed value of its knob.

    Both hear the same forecasts and have the same hyper-parameters, the catalogue's; the steered one begins where its
    contract says and knows nothing of the load.

    Raises:
        KeyError: the scenario lacks the blend's forecasts.
    """
    setup, contender = scenario.setup, make_contender("mpc")
    ladder = np.array(entry("mpc").values)
    sweep = Sweep(scenario, contender.setting, ladder)
    late, hours = run_sweeps(contender, [sweep])[0].means
    each = np.repeat(budgets, scenario.seeds)
    mine = sweep._replace(knobs=np.array(budgets))
    contracts = [setup.contract.model_copy(update={"error_budget": budget}) for budget in each]
    begins = np.array([build("mpc", contract).violation_cost for contract in contracts])  # type: ignore[attr-defined]
    policy = Steered.of(with_knob(build("mpc", setup.contract), begins), ladder, each, setup.contract.planning.lead_s)
    jobs, chance = stack([setup.twin_job] * len(each), setup.belief), np.tile(np.arange(scenario.seeds), len(budgets))
    ahead = collect_forecasts([Trial(contender, mine)])
    outcome = simulate(jobs, collect_load([mine]), policy, setup.looks, chance, ahead)
    shape, counted_s = (len(budgets), scenario.seeds), scenario.seconds - scenario.warm_s
    found = zip(
        budgets, outcome.violation.reshape(shape).mean(axis=1), outcome.executor_s.reshape(shape).mean(axis=1) / 3600,
        strict=True,
    )  # fmt: skip
    best = [least_cost_at(late, hours, budget) for budget in budgets]
    return [
        SteeredCell(
            budget, float(share), float(paid), None if np.isnan(least) else float(least),
            budget * counted_s / setup.lead_s,
        )
        for (budget, share, paid), least in zip(found, best, strict=True)
    ]  # fmt: skip
