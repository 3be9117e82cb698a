"""`mpc`, steered by promises, in the twin: each run learns its lead time from its own raises as a live job does."""

from __future__ import annotations

import itertools
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
from models.policy.planners.turns import quiet_s
from models.twin.experiment.lanes import load_of
from models.twin.experiment.scenario import Scenario
from models.twin.promise.daily import DailyForecasts
from models.twin.promise.heard import Heard
from models.twin.sim.job import TwinJob, TwinJobs, stack
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
        run: index among the runs of its scenario.
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
        self._mpc = _mpc(contracts[0])
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

    def quiet_s(self, run: int) -> float:
        """Return for how many seconds after a raise of a run batches teach nothing."""
        return quiet_s(self._quantiles[run]["planned_s"], self._quantiles[run]["growth"])

    def policy(self, runs: Integers) -> Steered:
        """Return the policy of some runs."""
        key = runs.tobytes()
        if key not in self._policies:
            leads_s, growth = (np.array([self._quantiles[run][of] for run in runs]) for of in ("planned_s", "growth"))
            planning = self._contracts[0].planning
            made = replace(self._mpc, violation_cost=self._begins[runs], lead_s=leads_s,
                           ahead_s=leads_s + planning.hold_s, growth=growth)  # fmt: skip
            ladder = np.array(entry(POLICY).values)
            self._policies[key] = Steered.of(made, ladder, self._budgets[runs], leads_s)
        return self._policies[key]


class Promises(NamedTuple):
    """Contracts of a job that differ in error budget, lead time and its growth, on one scenario."""

    scenario: Scenario
    contracts: Sequence[Contract]

    @property
    def runs(self) -> int:
        """One per contract and draw of the arrivals, in this order."""
        return len(self.contracts) * self.scenario.seeds


def run_learning(every: Sequence[Promises], change: LeadChange | None = None) -> list[Pass]:
    """Run the default policy over scenarios, a run per contract and draw of the arrivals.

    Every run begins with its contract's lead time and price, and knows of capacity, lead time and promise what its own
    batches, raises and late seconds tell, by the code of a live job. What it receives of the load ahead is in
    `DailyForecasts`. A run comes to the same whatever others are beside it. How long executors are kept
    is what a made contract (`Setup`) states; where a job's own does not, it goes with the lead time (`plan_contract`).

    Args:
        every: with the blend's forecasts, the same setup and as many draws each.
        change: of the cluster in mid run; None: there is none.

    Returns:
        A pass per scenario, in their order.
    """
    setup, seeds = every[0].scenario.setup, every[0].scenario.seeds
    looks, runs = setup.looks, [one.runs for one in every]
    each = [contract for one in every for contract in one.contracts for _ in range(seeds)]
    draw = np.concatenate([np.tile(np.arange(seeds), len(one.contracts)) for one in every])
    jobs, first = stack([setup.twin_job] * len(each), setup.belief), np.repeat(np.arange(len(every)) * seeds, runs)
    load = load_of([one.scenario for one in every], first + draw)
    state, learner, agents = begin(jobs, first_executors(jobs, load, looks), draw), _Learner(each), Agents(len(each))
    jobs.facts["quiet_s"] = [learner.quiet_s(run) for run in range(len(each))]
    draws = np.split(draw, np.cumsum(runs)[:-1])
    heard = Heard(
        [DailyForecasts(one.scenario, of, setup.contract.planning) for one, of in zip(every, draws, strict=True)], runs
    )
    memory = learner.policy(np.arange(len(each))).fresh(len(each))
    targets, raises = np.zeros((looks.count(load.seconds), len(each))), list[Raise]()
    why, late_s, begins = targets.astype(np.int64), targets.copy(), set(load.begins.tolist())
    for number, now in enumerate(range(0, load.seconds, looks.every_s)):
        if now in begins:
            begin_to_count(state, load, now)
        if change is not None and now >= change.at_s:
            jobs, change = _changed(setup.twin_job, change, jobs), None
        heard.follow(number, learner.leads_s)
        late_s[number], lasts = state.x["over"], now < load.produced.ends
        view = observe(state, jobs, load, looks, now, None)
        memory, targets[number], why[number] = _decide(learner, heard, number, memory, view)
        set_targets(state, jobs, np.where(lasts, targets[number], state.x["target"]), now)
        busy = np.where(np.isfinite(view.busy), view.busy, 0.0)
        for run, told in agents.hear(state, now, now + looks.every_s, busy):
            learnt = learner.learn(run, told, float(busy[run])) if lasts[run] else None
            raises += [] if learnt is None else [learnt]
            jobs.facts["quiet_s"][run] = learner.quiet_s(run)
        advance(state, jobs, load, now, min(now + looks.every_s, load.seconds))
    outcome = summarise(state, jobs, load, targets, why)
    ends = list(itertools.accumulate(runs, initial=0))
    return [
        _pass(one.scenario, slice(*at), outcome, late_s, raises)
        for one, at in zip(every, itertools.pairwise(ends), strict=True)
    ]


def _pass(scenario: Scenario, runs: slice, outcome: SimOutcome, late_s: Floats, raises: Sequence[Raise]) -> Pass:
    """Take the runs of one scenario."""
    looks = len(scenario.looks_s)
    mine = outcome._replace(
        executor_s=outcome.executor_s[runs], violation=outcome.violation[runs], p99_s=outcome.p99_s[runs],
        worst_s=outcome.worst_s[runs], changes=outcome.changes[runs], targets=outcome.targets[:looks, runs],
        why=outcome.why[:looks, runs],
    )  # fmt: skip
    own = [one._replace(run=one.run - runs.start) for one in raises if runs.start <= one.run < runs.stop]
    return Pass(mine, late_s[:looks, runs], own)


def _changed(job: TwinJob, change: LeadChange, jobs: TwinJobs) -> TwinJobs:
    startup_s = stack([replace(job, startup_s=change.startup_s)]).startup_s
    return jobs._replace(startup_s=np.repeat(startup_s, len(jobs.facts), axis=0))


def _decide(
    learner: _Learner, heard: Heard, number: int, memory: Memory, view: View
) -> tuple[Memory, Floats, Integers]:
    """Ask the policy for each group of runs: (runs,) targets and reasons."""
    if len(heard.groups) == 1:
        group = heard.groups[0]
        after, choice = decide(learner.policy(group.runs), memory, replace(view, ahead=heard.at(group, number)))
        return after, choice.target, choice.why
    after, target, why = dict(memory), np.empty(view.runs), np.empty(view.runs, np.int64)
    for group in heard.groups:
        runs = group.runs
        mine = {name: value[runs] for name, value in memory.items()}
        mine, choice = decide(learner.policy(runs), mine, view.select(runs, heard.at(group, number)))
        target[runs], why[runs] = choice.target, choice.why
        for name, value in mine.items():
            after[name] = after[name].copy()
            after[name][runs] = value
    return after, target, why


def _mpc(contract: Contract) -> Mpc:
    made = build(POLICY, contract)
    assert isinstance(made, Mpc)
    return made
