"""Many jobs in the twin, one decision at a time: what the agent is trained in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.dqn.actions import allowed, moved
from models.dqn.foretold import Foretold, foretell
from models.dqn.observation import Facts, fresh, needs, observe, pace_for
from models.dqn.reward import Bill, parts
from models.dqn.shapes import Trace, shape
from models.policy.capacity import Capacity, Floats, Integers
from models.policy.view import View
from models.twin import run as twin
from models.twin import state as s
from models.twin.job import LEAST, MOST, OVERHEAD_S, PER_RECORD_S, TARGET_S, Job, Jobs, stack

LEADS_S = (5.0, 1800.0)
PRICES = (0.2, 300.0)
LATENCIES_S = (5.0, 10.0, 30.0)
LOOKS_S = (1, 2, 5, 15)
"""Jobs are looked at every so many seconds; longer lead times have longer looks."""


def some_job(lead_s: float, latency_s: float, chance: np.random.Generator) -> Job:
    """A job drawn from what is met in practice, with executors that take about `lead_s` to come."""
    delays = lead_s * np.exp(0.15 * chance.standard_normal(8))
    return Job(
        overhead_s=chance.uniform(0.02, 0.2) * latency_s,
        per_record_s=np.exp(chance.uniform(np.log(1e-4), np.log(1e-2))),
        most=int(chance.integers(4, 41)), cores=int(chance.choice([1, 2, 4])),
        tasks=int(chance.choice([40, 64, 200, 4000])),
        scaling=chance.uniform(0.8, 1.0), startup_s=tuple(delays), cold_s=chance.uniform(0, 2),
        noise=chance.uniform(0, 0.2), latency_target_s=latency_s,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Drawn:
    """Jobs and what will happen to them.

    Attributes:
        jobs: one per run.
        load: what is produced, one row per run.
        first: (runs,) executors to begin with, which carry the first step at full use.
        needed: (runs, D) executors that the expected load of each step needs.
        said: what is foretold at the D looks.
        facts: of the runs.
        looks: how they are looked at; one look per decision.
        lead_s: of all of them.
    """

    jobs: Jobs
    load: twin.Load
    first: Floats
    needed: Floats
    said: Foretold
    facts: Facts
    looks: twin.Looks
    lead_s: float

    @property
    def decisions(self) -> int:
        """D."""
        return int(self.needed.shape[1])


def drawn(
    runs: int, decisions: int, traces: Sequence[Trace], chance: np.random.Generator, jobs: Sequence[Job] = (),
    price: float | None = None, lead_s: float | None = None, pace_s: int | None = None,
) -> Drawn:  # fmt: skip
    """Runs that share their lead time and pace, and differ in all else.

    Args:
        runs: how many.
        decisions: D of a run.
        traces: real loads; made ones are drawn as well.
        chance: draws everything.
        jobs: what to draw from, with one lead time; empty for `some_job`.
        price: of violation, the same for all; None to draw it.
        lead_s: of drawn jobs; None to draw it.
        pace_s: seconds between two decisions; None for `pace_for`.
    """
    if jobs:
        lead = float(np.median(jobs[0].startup_s))
        chosen, batch_s = [jobs[i] for i in chance.integers(len(jobs), size=runs)], 0.4 * jobs[0].latency_target_s
    else:
        lead = float(math.exp(chance.uniform(math.log(LEADS_S[0]), math.log(LEADS_S[1])))) if lead_s is None else lead_s
        latency = float(chance.choice(LATENCIES_S))
        chosen, batch_s = [some_job(lead, latency, chance) for _ in range(runs)], chance.uniform(0.2, 0.5) * latency
    every = int(chance.choice([one for one in LOOKS_S if one <= max(lead / 2, 1)])) if lead < 60 else LOOKS_S[-1]
    pace = int(pace_for(lead, every)) if pace_s is None else pace_s
    looks = twin.Looks(every_s=pace, smooth_s=max(every, int(chance.choice([1, 10]))), batch_s=batch_s)
    rows = stack(chosen)
    reach, seconds = lead + 2 * pace, pace * decisions
    whole = seconds + int(3 * reach) + 2
    grid = np.arange(0.0, whole + pace, max(pace / 4, 1.0))
    curves = (shape(grid, pace, reach, traces, chance) for _ in range(runs))
    shares = np.array([np.interp(np.arange(whole), grid, curve) for curve in curves])
    capacity = Capacity(rows.speeds, rows.fact(OVERHEAD_S), rows.fact(PER_RECORD_S), looks.batch_s)
    peak = capacity.rps(rows.fact(MOST)) * chance.uniform(0.25, 0.95, runs)
    total = np.concatenate([np.zeros((runs, 1)), np.cumsum(shares * peak[:, None], axis=1)], axis=1)
    steps = np.arange(decisions + 1) * pace
    said = foretell(total, steps[:-1], lead, pace, chance)
    prices = np.exp(chance.uniform(math.log(PRICES[0]), math.log(PRICES[1]), runs))
    prices = prices if price is None else np.full(runs, price)
    facts = Facts(lead, rows.fact(TARGET_S), prices, float(pace))
    came = np.concatenate(
        [np.zeros((runs, 1)), np.cumsum(chance.poisson(np.diff(total[:, : seconds + 1], axis=1)), axis=1)], axis=1
    )
    load = twin.Load(came.astype(float), np.arange(runs))
    needed = needs(capacity, np.diff(total[:, steps], axis=1) / pace)
    first = capacity.executors_for(total[:, pace] / pace, rows.fact(LEAST), rows.fact(MOST))[0]
    return Drawn(rows, load, first, needed, said, facts, looks, lead)


class Fleet:
    """Drawn runs from their first decision to their last."""

    def __init__(self, drawn: Drawn, seeds: Integers) -> None:
        """At the first decision."""
        self.drawn, self.look = drawn, 0
        self._state = s.begin(drawn.jobs, drawn.first, seeds)
        self._memory = fresh(len(drawn.load.row))
        self.view: View
        self.seen: np.ndarray
        self.mask: np.ndarray
        self._look()

    @property
    def over(self) -> bool:
        """Whether the last decision has been made; the job itself would go on."""
        return self.look >= self.drawn.decisions

    @property
    def weight(self) -> Floats:
        """(runs, 2) worth of the reward's parts."""
        price = self.drawn.facts.of(len(self.drawn.load.row))[2]
        return np.stack([np.ones(len(price)), price], axis=1)

    def step(self, moves: Integers) -> Floats:
        """(runs, 2) the reward's parts of one decision; `seen` and `mask` are what comes then."""
        drawn, before = self.drawn, self._account()
        pace = drawn.looks.every_s
        now = self.look * pace
        twin.act(self._state, drawn.jobs, moved(self.view, moves), now)
        twin.advance(self._state, drawn.jobs, drawn.load, now, now + pace)
        self.look += 1
        needed = drawn.needed[:, self.look - 1]
        self._look()
        paid, over, changed = self._account() - before
        return parts(Bill(paid, np.clip(over, 0, pace), changed), needed, drawn.jobs.fact(MOST), float(pace))

    def _account(self) -> Floats:
        """(3, runs) executor-seconds, seconds over the target with those that still wait, changes; so far."""
        x, now = self._state.x, self.look * self.drawn.looks.every_s
        waits = np.maximum(now - x[:, s.OLDEST] - self.drawn.jobs.fact(TARGET_S), 0.0)
        return np.stack([x[:, s.PAID], x[:, s.OVER] + waits, x[:, s.CHANGES]])

    def _look(self) -> None:
        drawn = self.drawn
        now = self.look * drawn.looks.every_s
        ahead = drawn.said.at(min(self.look, drawn.decisions - 1))
        self.view = twin.view(self._state, drawn.jobs, drawn.load, drawn.looks, now, ahead)
        self._memory, self.seen = observe(self._memory, self.view, drawn.facts)
        least, most = drawn.jobs.fact(LEAST), drawn.jobs.fact(MOST)
        self.mask = allowed(self.view.target, least, most)
