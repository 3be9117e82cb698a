"""How a replay comes to what is left over: nothing in its slow start, then half of it, nearly all a little later."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from models.policy.core.capacity import Floats
from models.policy.replays.level import levels, share_of_left
from tidecast.replay.pace import SLOW_START_S

ENOUGH = 0.8
"""Share of a stage's rate from which on a replay is taken to be in it: what is left over is known no better."""


@dataclass(frozen=True)
class Climb:
    """What a replay is admitted with, by the seconds since its first batch was begun.

    Attributes:
        start_s: in which it reads next to nothing.
        interval_s: of the controller, each of which a stage lasts; the last stage stays.
        stages: (share of what is left over that it has, what a slot is taken to serve ÷ the same in the last stage).
    """

    start_s: float
    interval_s: float
    stages: tuple[tuple[float, float], ...]

    @classmethod
    def admitted(cls, interval_s: float, slot_rps: Callable[[float], float]) -> Climb:
        """Return what the controller of a replay's rate does where live records bear it (`policy.replays.level`).

        Args:
            interval_s: of the controller.
            slot_rps: what a slot serves at a level of its quantile.
        """
        rising = levels()
        last = slot_rps(rising[-1])
        stages = tuple((share_of_left(level), slot_rps(level) / last) for level in rising)
        return cls(SLOW_START_S, interval_s, stages)

    def admitted_rps(self, until_s: Floats, step_s: float, served_rps: Floats, live_rps: Floats) -> Floats:
        """Return (...) records/s that a replay has beside live ones, mean of the steps that end after (...) seconds.

        Args:
            until_s: since its first batch was begun; 0: it was not.
            step_s: length of the steps.
            served_rps: what the executors serve, as they are taken to in the last stage, live records/s.
            live_rps: what is counted for live records.
        """
        low, high = (np.maximum(until_s - back - self.start_s, 0.0) for back in (step_s, 0.0))
        found = np.zeros(np.broadcast_shapes(served_rps.shape, live_rps.shape))
        for stage, (share, rate) in enumerate(self.stages):
            last = stage == len(self.stages) - 1
            begins, ends = stage * self.interval_s, np.inf if last else (stage + 1) * self.interval_s
            part = share * (np.clip(high, begins, ends) - np.clip(low, begins, ends)) / step_s
            found = found + part * np.maximum(rate * served_rps - live_rps, 0.0)
        return found

    def reached_s(self, admitted_rps: float, served_rps: float, live_rps: float) -> float:
        """Return the seconds since its first batch at which a replay would be that has such a rate; infinite: no less.

        Where live records did not bear it, its rate has fallen: it climbs from there, here as at first.

        Args:
            admitted_rps: that it has, in live records/s.
            served_rps: what the executors serve, as they are taken to in the last stage.
            live_rps: what is counted for live records.
        """
        rates = [share * max(rate * served_rps - live_rps, 0.0) for share, rate in self.stages]
        if admitted_rps >= ENOUGH * rates[-1]:
            return math.inf
        reached = max((stage for stage, rate in enumerate(rates) if admitted_rps >= ENOUGH * rate), default=0)
        return self.start_s + reached * self.interval_s


AT_ONCE = Climb(0.0, 1.0, ((1.0, 1.0),))
"""All that is left over, from the first moment on."""
