"""How a replay comes to what is left over: nothing in its slow start, then half of it, nearly all a little later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from models.policy.core.capacity import Floats
from models.policy.replays.level import levels, share_of_left
from models.policy.replays.start import SLOW_START_S


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

    def means(self, until_s: Floats, step_s: float) -> tuple[Floats, Floats]:
        """Return (...) means of a share of live records, and of capacity, over the step that ends after (...) seconds.

        A replay's rate is the second times what the slots serve in the last stage, less the first times live records.
        """
        live, served = np.zeros_like(until_s), np.zeros_like(until_s)
        low, high = (np.maximum(until_s - back - self.start_s, 0.0) for back in (step_s, 0.0))
        for stage, (share, rate) in enumerate(self.stages):
            last = stage == len(self.stages) - 1
            begins, ends = stage * self.interval_s, np.inf if last else (stage + 1) * self.interval_s
            part = share * (np.clip(high, begins, ends) - np.clip(low, begins, ends)) / step_s
            live += part
            served += part * rate
        return live, served


AT_ONCE = Climb(0.0, 1.0, ((1.0, 1.0),))
"""All that is left over, from the first moment on."""
