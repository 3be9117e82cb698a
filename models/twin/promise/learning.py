"""`mpc`, steered by a promise, in the twin: it learns its lead time from its own raises as a live job's does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from configs.contract import Contract
from models.policy.catalogue import build, entry
from models.policy.core.capacity import Floats, Integers
from models.policy.core.policy import decide
from models.policy.core.steered import Steered
from models.policy.core.view import Memory, View
from models.policy.live.learned_lead import LearnedLead, lead_quantiles, read_start
from models.policy.planners.mpc import Mpc
from models.twin.experiment.scenario import Scenario
from models.twin.promise.daily import DailyForecasts
from models.twin.sim.given import Load
from models.twin.sim.job import TwinJobs, stack
from models.twin.sim.raises import Agents
from models.twin.sim.run import SimOutcome, advance, begin_to_count, first_executors, observe, set_targets, summarise
from models.twin.sim.state import begin

POLICY = "mpc"


class LeadChange(NamedTuple):
    """From second `at_s` of the scenario on executors take these seconds to start, instead of the job's own."""

    at_s: int
    startup_s: tuple[float, ...]


class Raise(NamedTuple):
    """What one run has learned from one raise.

    Attributes:
        run: index.
        decided_s, told_s: seconds since the scenario began: of the decision, and when its outcome was known.
        seconds: from the decision until a batch had used what came, more than that if `censored`.
        executors: asked for at once.
        censored: they had not come by then.
        median_s, planned_s: the lead time as known afterwards: its median and the quantile that is planned for.
    """

    run: int
    decided_s: float
    told_s: float
    seconds: float
    executors: int
    censored: bool
    median_s: float
    planned_s: float


class Pass(NamedTuple):
    """Runs of a policy that learned its lead time.

    Attributes:
        outcome: cost and latency.
        late_s: (D, runs) seconds counted as late before each look (decision), since the seconds count.
        raises: what each run learned from, in the order of time.
    """

    outcome: SimOutcome
    late_s: Floats
    raises: list[Raise]


class _Learner:
    """The lead times of all runs as they know them, and the policy that decides by them.

    Attributes:
        leads_s: (runs,) seconds that are planned for.
    """

    def __init__(self, contracts: Sequence[Contract]) -> None:
        self._contracts = contracts
        self._known = [LearnedLead.guess(contract.planning) for contract in contracts]
        self._quantiles = [lead_quantiles(None, contract, 0.0) for contract in contracts]
        self._budgets = np.array([contract.error_budget for contract in contracts])
        self._begins = np.array([_mpc(contract).violation_cost for contract in contracts])
        self._policies: dict[bytes, Steered] = {}

    @property
    def leads_s(self) -> list[float]:
        return [one["planned_s"] for one in self._quantiles]

    def learn(self, run: int, outcome: dict[str, Any], busy: float) -> Raise | None:
        """Learn from an outcome as told to a live autoscaler; None where it says nothing of the lead time."""
        start = read_start(outcome)
        known = self._known[run].learn_outcome(outcome)
        if start is None or known is self._known[run]:
            return None
        said = lead_quantiles(known, self._contracts[run], busy)
        self._known[run], self._quantiles[run], self._policies = known, said, {}
        return Raise(run, outcome["decided_at"], outcome["wall_time"], start.seconds, start.executors, start.censored,
                     said["median_s"], said["planned_s"])  # fmt: skip

    def policy(self, runs: Integers) -> Steered:
        """Return the policy of some runs."""
        key = runs.tobytes()
        if key not in self._policies:
            leads_s, growth = (np.array([self._quantiles[run][of] for run in runs]) for of in ("planned_s", "growth"))
            planning = self._contracts[0].planning
            made = replace(_mpc(self._contracts[0]), violation_cost=self._begins[runs], lead_s=leads_s,
                           ahead_s=leads_s + planning.hold_s, growth=growth)  # fmt: skip
            ladder = np.array(entry(POLICY).values)
            self._policies[key] = Steered.of(made, ladder, self._budgets[runs], leads_s)
        return self._policies[key]


def run_learning(scenario: Scenario, contracts: Sequence[Contract], change: LeadChange | None = None) -> Pass:
    """Run the default policy over a scenario, a run per contract and draw of the arrivals, in this order.

    Every run begins with its contract's lead time and price, and knows of capacity, lead time and promise what its own
    batches, raises and late seconds tell, by the code of a live job. What it receives of the load ahead is in
    `DailyForecasts`.

    Args:
        scenario: with the blend's forecasts.
        contracts: of the job; they may differ in error budget, lead time and its growth.
        change: of the cluster in mid run; None: there is none.
    """
    setup, looks, draws = scenario.setup, scenario.setup.looks, np.arange(scenario.seeds)
    each = [contract for contract in contracts for _ in draws]
    draw, jobs = np.tile(draws, len(contracts)), stack([setup.twin_job] * len(each), setup.belief)
    load = Load(scenario.arrived, draw, counts=np.full(scenario.seeds, scenario.warm_s))
    state, learner, agents = begin(jobs, first_executors(jobs, load, looks), draw), _Learner(each), Agents(len(each))
    ahead = DailyForecasts(scenario, draw, setup.contract.planning)
    memory = learner.policy(np.arange(len(each))).fresh(len(each))
    targets, raises = np.zeros((looks.count(load.seconds), len(each))), list[Raise]()
    why, late_s = targets.astype(np.int64), targets.copy()
    for number, now in enumerate(range(0, load.seconds, looks.every_s)):
        if now == scenario.warm_s:
            begin_to_count(state, load, now)
        if change is not None and now >= change.at_s:
            jobs, change = _changed(scenario, change, len(each)), None
        ahead.follow(number, learner.leads_s)
        late_s[number] = state.x["over"]
        view = observe(state, jobs, load, looks, now, None)
        memory, targets[number], why[number] = _decide(learner, ahead, number, memory, view)
        set_targets(state, jobs, targets[number], now)
        busy = np.where(np.isfinite(view.busy), view.busy, 0.0)
        for run, outcome in agents.hear(state, now, now + looks.every_s, busy):
            learnt = learner.learn(run, outcome, float(busy[run]))
            raises += [] if learnt is None else [learnt]
        advance(state, jobs, load, now, min(now + looks.every_s, load.seconds))
    return Pass(summarise(state, jobs, load, targets, why), late_s, raises)


def _changed(scenario: Scenario, change: LeadChange, runs: int) -> TwinJobs:
    setup = scenario.setup
    return stack([replace(setup.twin_job, startup_s=change.startup_s)] * runs, setup.belief)


def _decide(
    learner: _Learner, ahead: DailyForecasts, number: int, memory: Memory, view: View
) -> tuple[Memory, Floats, Integers]:
    """Ask the policy for each group of runs: (runs,) targets and reasons."""
    if len(ahead.groups) == 1:
        group = ahead.groups[0]
        after, choice = decide(learner.policy(group.runs), memory, replace(view, ahead=ahead.at(group, number)))
        return after, choice.target, choice.why
    after, target, why = dict(memory), np.empty(view.runs), np.empty(view.runs, np.int64)
    for group in ahead.groups:
        runs = group.runs
        mine = {name: value[runs] for name, value in memory.items()}
        mine, choice = decide(learner.policy(runs), mine, view.select(runs, ahead.at(group, number)))
        target[runs], why[runs] = choice.target, choice.why
        for name, value in mine.items():
            after[name] = after[name].copy()
            after[name][runs] = value
    return after, target, why


def _mpc(contract: Contract) -> Mpc:
    made = build(POLICY, contract)
    assert isinstance(made, Mpc)
    return made
