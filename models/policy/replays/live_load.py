"""How many live records a replay has to expect beside it: as many as come by now, and as many as the forecast says."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

from configs.contract import Contract
from models.policy.received.observation import Observation
from models.policy.received.outlook import SMOOTH_S, Outlook

HIGH = 0.9
"""Level of the forecast that live records may come to in the next interval (unified batch-stream runtime, 3.4)."""
CHANGE = 2.0
"""Standard deviations by which the newest seconds are above an interval's mean, as of Poisson arrivals, when the load
has risen."""


class Arrived(NamedTuple):
    """Live records/s since the newest interval was closed: the mean of what evaluations saw, and how many they were."""

    mean_rps: float = 0.0
    seen: int = 0

    def then(self, arrival_rps: float) -> Arrived:
        """Return it with one evaluation more."""
        return Arrived(self.mean_rps + (arrival_rps - self.mean_rps) / (self.seen + 1), self.seen + 1)

    def steady_rps(self, newest_rps: float) -> float:
        """Return the live records/s to go by: the interval's mean, or its newest seconds' where the load has risen.

        A rate that follows each few seconds' mean falls at once with its noise and rises again by small steps.

        Args:
            newest_rps: mean of the newest SMOOTH_S seconds.
        """
        noise = math.sqrt(self.mean_rps / SMOOTH_S)
        return newest_rps if not self.seen or newest_rps > self.mean_rps + CHANGE * noise else self.mean_rps


def as_admitted(seen: Observation, contract: Contract) -> Observation:
    """Return what replays are admitted by of an observed job: without its forecast, where the contract says so."""
    return seen if contract.admits_by_forecast else replace(seen, ahead=None)


def highest_ahead(ahead: Outlook | None) -> list[float]:
    """Return the most live records/s of each step of the forecast; of none nothing."""
    if not ahead or not ahead.rps:
        return []
    level = min(range(len(ahead.levels)), key=lambda at: abs(ahead.levels[at] - HIGH))
    return [row[level] for row in ahead.rps]


def highest_within(ahead: Outlook | None, within_s: float) -> float | None:
    """Return the most live records/s of the next seconds, by the forecast; None without one."""
    if not ahead or not ahead.rps:
        return None
    return max(highest_ahead(ahead)[: max(sum(offset < within_s for offset in ahead.offsets_s) + 1, 1)])
