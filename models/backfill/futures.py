"""What may come: draws of live load, capacity, cost of a replayed record and lead time, with a fixed seed.

The same seed gives the same normals, so that two schedules are compared under the same futures, and a replanning a
minute later under nearly the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from models.backfill.climb import AT_ONCE, Climb
from models.backfill.given import Fleet, LiveOutlook, LivePromise, ReplayWork, SlotRate
from models.backfill.joint import JointErrors, rates_of
from models.policy.core.capacity import Floats, Integers
from models.policy.replays.start import FREE, GOING_FREE, NEAR

COUNT = 256
"""Futures that are drawn: half of them, and their mirror images."""


@dataclass(frozen=True, eq=False)
class Futures:
    """S futures over K steps.

    Attributes:
        live: (S, K) live records/s.
        held: (S, K) executors that the live promise holds, within the fleet's bounds.
        slot_rps: (S,) live records/s that a slot serves, what stays idle taken off.
        cost: (S,) work of a replayed record ÷ that of a live one.
        lead_s: (S,) seconds from a request until executors work.
        step_s: seconds per step.
        fleet: whose bounds hold.
        running: executors that run when the first step begins.
        most_rps: replayed records/s at most.
        high_rps: (K,) or (S, K) live records/s that are counted at least when a replay is admitted.
        climb: how the replay comes to what is left over.
        reading_s: since its first batch was begun; None: it has not, and waits until it may.
        reached: share of the rate that it is admitted with that the replay comes to.
    """

    live: Floats
    held: Integers
    slot_rps: Floats
    cost: Floats
    lead_s: Floats
    step_s: float
    fleet: Fleet
    running: int
    most_rps: float = math.inf
    high_rps: Floats | float = 0.0
    climb: Climb = AT_ONCE
    reading_s: float | None = 0.0
    reached: float = 1.0

    @property
    def steps(self) -> int:
        """K."""
        return self.live.shape[1]

    def executors(self, extra: Integers) -> Integers:
        """Return (..., S, K) executors under schedules of (..., K) extra ones; never above the fleet's `most`."""
        return np.minimum(self.held + extra[..., None, :], self.fleet.most)

    def replay_rps(self, extra: Integers) -> Floats:
        """Return (..., S, K) replayed records/s that (..., K) extra executors leave room for, live records first.

        Executors that are added when a step begins work once their lead time is over, and several of them one turn
        after the other, where they start in turns; whoever takes longer than a step is away in the next ones, too.
        The replay reads where enough is left; one that has not begun waits for more, and has a slow start.
        """
        executors = self.executors(extra)
        slots = self.fleet.worth[executors]
        slots = slots - self._under_way(executors, slots)
        served, live = slots * self.slot_rps[:, None], np.maximum(self.live, self.high_rps)
        rps = self.climb.admitted_rps(self._begun_s(served, live), self.step_s, served, live) / self.cost[:, None]
        return self.reached * np.minimum(rps, self.most_rps) * self._is_enough(GOING_FREE, served, live)

    def _under_way(self, executors: Integers, slots: Floats) -> Floats:
        """(..., S, K) of the slots of (..., S, K) executors that do not work yet.

        Those that came last are given back first. What is added while others are under way has turns of its own.
        """
        before = np.empty_like(slots)
        before[..., 1:], before[..., 0] = slots[..., :-1], self.fleet.worth[self.running]
        gained, found = np.maximum(slots - before, 0.0), np.zeros_like(slots)
        for later, share in enumerate(self._shares_away(executors)):
            if later:
                kept = np.maximum(slots[..., later:] - before[..., :-later], 0.0)
                gained = np.minimum(gained[..., :-1], kept)
            found[..., later:] += gained * share
        return found

    def _shares_away(self, executors: Integers) -> Iterator[Floats]:
        """Shares of a step that those of (..., S, K) executors that are added in each are away in it, the next one, ...

        (S, 1), or (..., S, K - j) of the first steps, of which the step j after them is looked at.
        """
        if not self.fleet.in_turns:
            leads = self.lead_s / self.step_s
            for later in range(min(max(math.ceil(leads.max()), 1), self.steps)):
                yield np.clip(leads - later, 0.0, 1.0)[:, None]
            return
        away, which = self._away
        added = np.maximum(np.diff(executors, axis=-1, prepend=self.running), 0)
        for later, share in enumerate(away):
            found = share[which[:, None], added[..., : self.steps - later]]
            if not found.any():
                return
            yield found

    @cached_property
    def _away(self) -> tuple[Floats, Integers]:
        """`Fleet.share_away` of each lead time that was drawn, and (S,) which of them is a future's."""
        leads, which = np.unique(self.lead_s / self.step_s, return_inverse=True)
        return self.fleet.share_away(leads, self.steps), which

    def _begun_s(self, served: Floats, live: Floats) -> Floats:
        """(K,) or (..., S, K) seconds at the end of each step since the replay's first batch was begun, 0 before it."""
        if self.reading_s is not None:
            ends: Floats = self.reading_s + np.arange(1.0, self.steps + 1) * self.step_s
            return ends
        may_begin = self._is_enough(FREE, served * self.climb.stages[0][1], live)
        return np.logical_or.accumulate(may_begin, axis=-1).cumsum(axis=-1) * self.step_s

    def _is_enough(self, share: float, served: Floats, live: Floats) -> NDArray[np.bool_]:
        """(..., S, K) whether a replay may read, as `policy.replays.start.is_enough` has it.

        Of a calmer time that comes only what is expected is known, the same in all futures.
        """
        left, expected = np.maximum(served - live, 0.0), np.median(live, axis=0)
        better = expected - np.minimum.accumulate(expected[::-1])[::-1]
        return ((left > 0) & (left >= NEAR * (left + better))) | (left >= share * served)


def held_for(rps: Floats, slot_rps: float, idle: float, fleet: Fleet) -> Integers:
    """Return the fewest executors that serve (...) live records/s with the promise's share idle, within the bounds."""
    slots = rps / (slot_rps * (1 - idle)) * (1 - 1e-12)
    return np.clip(np.searchsorted(fleet.worth, slots), fleet.least, fleet.most)


def draw_futures(
    outlook: LiveOutlook, joint: JointErrors, promise: LivePromise, slot: SlotRate, work: ReplayWork, fleet: Fleet,
    running: int, seed: int = 0, count: int = COUNT,
) -> Futures:  # fmt: skip
    """Draw futures of all that a finishing time depends on.

    Args:
        outlook: live load, (K, L) quantiles.
        joint: how its errors hang together, for at least K steps.
        promise: what live records need first.
        slot: what a slot serves.
        work: of which the cost per record is drawn.
        fleet: executors, and quantiles of their lead time.
        running: executors that run now.
        seed: of the normals.
        count: even number of futures, at least 2.

    Returns:
        The futures; executors for live records are held for the higher of a step and the next, as they must work then.
    """
    steps = len(outlook.quantiles)
    half = np.random.default_rng(seed).standard_normal((count // 2, steps + 3))
    normals = np.concatenate([half, -half])
    live = rates_of(joint.head(steps).draw(normals[:, 3:]), outlook.quantiles, outlook.levels)
    ahead = np.maximum(live, np.concatenate([live[:, 1:], live[:, -1:]], axis=1))
    counted = slot.rps * (1 - promise.idle) if slot.held_rps is None else slot.held_rps
    held = held_for(ahead * promise.headroom, counted, 0.0, fleet)
    place = np.clip((ndtr(normals[:, 2]) * len(fleet.lead_s)).astype(int), 0, len(fleet.lead_s) - 1)
    return Futures(
        live, held, slot.rps * np.exp(slot.deviation * normals[:, 0]) * (1 - promise.idle),
        work.cost * np.exp(work.cost_deviation * normals[:, 1]), np.sort(fleet.lead_s)[place], outlook.step_s, fleet,
        running,
    )  # fmt: skip
