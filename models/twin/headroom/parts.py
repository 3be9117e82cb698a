"""Actions on the planner's parameters, simulated one by one for whole loads and put together by part of a load.

For a price of a late second each part takes the action that was cheapest in it: what a policy could gain by setting the
parameters anew in every part, did it know each outcome beforehand. Nobody chooses so well: who only observes knows
neither the load nor the draws of the start-ups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from models.policy.core.capacity import Floats, Integers
from models.policy.core.choice import Choice
from models.policy.core.policy import decide
from models.policy.core.view import Memory, View
from models.policy.planners.mpc import Mpc
from models.twin.experiment.contenders import Sweep, Trial, make_contender
from models.twin.experiment.lanes import collect_forecasts, collect_load
from models.twin.experiment.scenario import Scenario
from models.twin.sim import kernel
from models.twin.sim.given import Foresight
from models.twin.sim.job import stack
from models.twin.sim.run import advance, first_executors, observe, set_targets
from models.twin.sim.state import begin

PRICES = np.geomspace(30.0, 300_000.0, 12)
"""Executor-seconds that a late second is worth, for each of which the parts' actions are chosen."""


class Actions(NamedTuple):
    """Settings of the planner, (A,) each.

    Attributes:
        violation_cost, utilisation, hold_s: of `Mpc`.
        more: executors above the plan; below 0: fewer.
    """

    violation_cost: Floats
    utilisation: Floats
    hold_s: Floats
    more: Floats


class PartOutcomes(NamedTuple):
    """What runs of a scenario came to, by part of the load.

    Attributes:
        late, paid: (parts, runs) late seconds, from a lead time after the part begins to one after it ends, as what
            is asked for in it is of use then; and executor-seconds paid in it.
        trace: (D, 6) what the first run observed at every look: executors that are ready and starting, and the target;
            records that wait; records/s of a slot, as believed; late seconds since the look before.
        ahead: (D, 4) what it was told: the forecast peak's median, its 0.9 quantile and its highest, and the present
            rate, records/s.
    """

    late: Floats
    paid: Floats
    trace: Floats
    ahead: Floats


@dataclass(frozen=True, eq=False)
class Timetabled:
    """The planner with an action for each part of the load.

    Attributes:
        baseline: the planner.
        actions: to choose from.
        table: (parts, runs) index of the action.
        begins_s: (runs,) second at which the first part begins.
        part_s: seconds of a part.
    """

    baseline: Mpc
    actions: Actions
    table: Integers
    begins_s: Integers
    part_s: float

    @property
    def name(self) -> str:
        """Name of the planner."""
        return self.baseline.name

    def fresh(self, runs: int) -> Memory:
        """Return the planner's own memory, and the executors above its plan."""
        return {**self.baseline.fresh(runs), "more": np.zeros(runs)}

    def decide(self, memory: Memory, view: View) -> tuple[Memory, Choice]:
        """Return the planner's choice under the action of this part; it takes the target without what was added."""
        now = Actions._make(each[self.table[self.part(view.now_s), np.arange(view.runs)]] for each in self.actions)
        cost, utilisation, hold_s, more = now
        planner = replace(self.baseline, violation_cost=cost, utilisation=utilisation, hold_s=hold_s)
        own = {name: value for name, value in memory.items() if name != "more"}
        after, choice = planner.decide(own, replace(view, target=view.target - memory["more"]))
        target = np.clip(choice.target + more, view.least, view.most)
        return {**after, "more": target - choice.target}, replace(choice, target=target)

    def part(self, now_s: float) -> Integers:
        """Return (runs,) the part at a time; before the first it is the first, after the last the last."""
        return np.clip((now_s - self.begins_s) // self.part_s, 0, len(self.table) - 1).astype(np.int64)


def simulate_parts(
    scenarios: Sequence[Scenario], actions: Actions, tables: Sequence[Integers], part_s: float
) -> list[PartOutcomes]:
    """Simulate timetables of actions on scenarios, under the first draw of their arrivals.

    Args:
        scenarios: with the same setup, and the blend's forecasts.
        actions: to choose from.
        tables: (parts, runs) indices of the actions, per scenario; the last part's holds to the end.
        part_s: seconds of a part.

    Returns:
        One per scenario; the warm-up is in no part.

    Raises:
        KeyError: a scenario lacks the blend's forecasts.
    """
    setup, contender = scenarios[0].setup, make_contender("mpc")
    trials = [
        Trial(contender, Sweep(one, contender.setting, np.zeros(table.shape[1])))
        for one, table in zip(scenarios, tables, strict=True)
    ]
    load, ahead = collect_load([trial.sweep for trial in trials]), collect_forecasts(trials)
    runs, parts = len(load.row), max(len(table) for table in tables)
    table = np.concatenate([np.pad(one, ((0, parts - len(one)), (0, 0)), mode="edge") for one in tables], axis=1)
    jobs, looks, each = stack([setup.twin_job] * runs, setup.belief), setup.looks, np.arange(runs)
    policy = Timetabled(Mpc.of("mpc", setup.contract), actions, table, load.begins, part_s)
    firsts = np.cumsum([0, *(one.shape[1] for one in tables)])
    state, memory = begin(jobs, first_executors(jobs, load, looks), np.zeros(runs, np.int64)), policy.fresh(runs)
    spent, before, trace = np.zeros((2, parts, runs)), np.zeros((2, runs)), []
    for number, now in enumerate(range(0, load.seconds, looks.every_s)):
        view = observe(state, jobs, load, looks, now, ahead.at(number))
        memory, choice = decide(policy, memory, view)
        seen = (view.ready, view.starting, view.target, view.lag_records, view.capacity.per_slot_rps, view.late_s)
        trace.append(np.stack([column[firsts[:-1]] for column in seen], axis=1))
        set_targets(state, jobs, np.where(now < load.produced.ends, choice.target, state.x["target"]), now)
        advance(state, jobs, load, now, min(now + looks.every_s, load.seconds))
        after = np.stack([state.x["over"], state.x["paid"]])
        for column, at in enumerate((policy.part(now - setup.lead_s), policy.part(now))):
            spent[column, at, each] += np.where(now >= load.begins, after[column] - before[column], 0.0)
        before = after
    kernel.close(state, jobs, load.produced)
    spent[0, policy.part(load.seconds), each] += state.x["over"] - before[0]
    found, seen_all = np.split(spent, firsts[1:-1], axis=2), np.stack(trace)
    return [
        PartOutcomes(both[0, : len(own)], both[1, : len(own)], seen_all[:, at], told(ahead, int(firsts[at]), one))
        for at, (one, both, own) in enumerate(zip(scenarios, found, tables, strict=True))
    ]


def told(ahead: Foresight, run: int, scenario: Scenario) -> Floats:
    """Return (D, 4) what a run was told at every look of its scenario: see `PartOutcomes.ahead`."""
    levels = np.array(ahead.levels)
    columns = [int(np.argmin(np.abs(levels - level))) for level in (0.5, 0.9, 1.0)]
    within = np.arange(len(ahead.offsets_s)) <= np.searchsorted(ahead.offsets_s, scenario.setup.lead_s - 1e-9)
    rate = scenario.looked_back[0][0]
    peaks = ahead.rps[ahead.row[run], : len(rate)][:, within][:, :, columns].max(axis=1)
    return np.column_stack([peaks, rate]).astype(np.float64)


def best_by_part(parts: PartOutcomes, allowed: Integers, together: int) -> Integers:
    """Return (parts, P) indices of the actions that cost least in each part, for each price of `PRICES`.

    Args:
        parts: of runs with one action each, in the order of the actions.
        allowed: (N,) indices of the actions that may be chosen.
        together: so many parts in a row have one action.
    """
    first = np.arange(0, len(parts.late), together)
    late, paid = (np.add.reduceat(each[:, allowed], first, axis=0) for each in (parts.late, parts.paid))
    best = allowed[(paid[:, None, :] + PRICES[:, None] * late[:, None, :]).argmin(axis=2)]
    return np.repeat(best, together, axis=0)[: len(parts.late)]
