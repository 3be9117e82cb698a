"""A drawn backfill beside a load: what it is truly like, and what is known of it at any moment."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from models.backfill.futures import held_for
from models.backfill.given import Fleet, LiveOutlook, LivePromise, ReplayWork
from models.backfill.joint import JointErrors, fit_errors
from models.backfill.live.issued import learn_errors
from models.policy.core.capacity import Floats, Integers, speed_table
from models.twin.experiment.foresight import LEVELS, IssuedForecasts, correct_at_looks
from models.twin.experiment.setup import TASKS
from models.twin.sim.arrivals import draw_arrivals

PARTS = 10
"""Parts of a plan's step in which the truth is followed."""
LONGER = 1.5
"""How long a backfill is followed, in units of its deadline."""
HELD_LEVEL = 0.95
"""Forecast quantile that the live job's executors are held for."""
PAST = 300
"""Past forecasts that their errors are learned from, at most."""


class DrawnJob(NamedTuple):
    """The job that live records and the backfill share.

    Attributes:
        peak: executors that carry the load's 99.9 % quantile; twice as many are allowed.
        scaling: exponent of capacity in executors.
        lead_s: (Q,) quantiles of the seconds until executors work, seconds.
        slot_rps: what a slot truly serves, live records/s.
        idle: share of the capacity that stays free for live latency.
        fixed: whether the live job always holds its peak's executors, as one without an autoscaler does.
    """

    peak: int
    scaling: float
    lead_s: Floats
    slot_rps: float
    idle: float
    fixed: bool = False

    @property
    def fleet(self) -> Fleet:
        """Executors and bounds; of 4 times the peak the worth is known."""
        least = self.peak if self.fixed else 1
        return Fleet(speed_table(4 * self.peak, 1, TASKS, self.scaling), least, 2 * self.peak, self.lead_s)


@dataclass(frozen=True, eq=False)
class DrawnBackfill:
    """A backfill as it was drawn.

    Attributes:
        job: whose executors it uses.
        work: as believed.
        true_cost: work of a replayed record ÷ that of a live one.
        begins_s: epoch seconds.
        step_s: seconds per step of its plan, a multiple of `PARTS`.
        steps: until its deadline.
        total: (T,) live records before moments of the trace, from its first second to long after the deadline.
        moments_s: (T,) epoch seconds of them, rising.
        issued: forecasts, live records/s.
        seed: of the arrivals and of all that is measured.
    """

    job: DrawnJob
    work: ReplayWork
    true_cost: float
    begins_s: float
    step_s: float
    steps: int
    total: Floats
    moments_s: Floats
    issued: IssuedForecasts
    seed: int

    @property
    def horizon(self) -> int:
        """Steps that it is followed for."""
        return int(np.ceil(LONGER * self.steps))

    @property
    def by_s(self) -> float:
        """Seconds from its beginning to the deadline."""
        return self.steps * self.step_s

    @cached_property
    def live_rps(self) -> Floats:
        """(horizon, PARTS) live records/s that truly come, Poisson around the trace."""
        edges = self.begins_s + np.arange(self.horizon * PARTS + 1) * self.part_s
        mean = np.diff(np.interp(edges, self.moments_s, self.total))
        return (np.diff(draw_arrivals(mean, self.seed)) / self.part_s).reshape(-1, PARTS)

    @property
    def part_s(self) -> float:
        """Seconds of a part of a step."""
        return self.step_s / PARTS

    def mean_rps(self, begin_s: Floats, end_s: Floats) -> Floats:
        """Return the trace's mean records/s between (...) moments, epoch seconds."""
        ends = (np.interp(at, self.moments_s, self.total) for at in (end_s, begin_s))
        return (next(ends) - next(ends)) / (end_s - begin_s)

    def outlook_at(self, step: int) -> LiveOutlook:
        """Return what is forecast when a step begins, until the last that is followed."""
        now = self.begins_s + step * self.step_s
        recent = float(self.mean_rps(np.array([now - self.part_s]), np.array([now]))[0])
        if step:
            recent = float(self.live_rps[step - 1, -1])
        return LiveOutlook(self._said(np.array([now]), np.array([recent]), self.horizon - step)[0], LEVELS, self.step_s)

    def _said(self, moments_s: Floats, rates: Floats, steps: int) -> Floats:
        """(N, steps, L) forecasts of the steps' means, corrected by the rate that was just seen."""
        middles = np.asarray((np.arange(steps) + 0.5) * self.step_s, np.float64)
        said = correct_at_looks(self.issued, moments_s, rates, middles, self.issued.step_s, None)
        # Beyond the median's noise the levels of two steps that are mixed may cross by rounding.
        return np.maximum.accumulate(said, axis=2)

    @cached_property
    def past(self) -> tuple[JointErrors, float]:
        """How past forecasts erred together, and by how much executors were held for more than came.

        Only forecasts whose last step ended before the beginning are used.
        """
        reach = self.horizon * self.step_s
        first, last = self.issued.begins_s + self.part_s, self.begins_s - reach
        count = int(np.clip((last - first) / self.step_s, 0, PAST))
        if count < 2:
            return fit_errors(np.zeros((0, self.horizon)), 0.0), 1.1
        moments = np.linspace(first, last, count)
        rates = self.mean_rps(moments - self.part_s, moments)
        said = self._said(moments, rates, self.horizon)
        edges = moments[:, None] + np.arange(self.horizon + 1) * self.step_s
        came = self.mean_rps(edges[:, :-1], edges[:, 1:])
        return learn_errors(said, came, LEVELS, (last - first) / reach, HELD_LEVEL)

    @property
    def promise(self) -> LivePromise:
        """What live records need, as a plan takes it."""
        return LivePromise(self.job.idle, self.past[1])

    @cached_property
    def held(self) -> Integers:
        """(horizon,) executors that the live job holds on its own, by the forecast of each step's beginning."""
        found = np.empty(self.horizon, np.int64)
        for step in range(self.horizon):
            said = self.outlook_at(step).quantiles[:2, LEVELS.index(HELD_LEVEL)].max()
            found[step] = held_for(said, self.job.slot_rps, self.job.idle, self.job.fleet)
        return found
