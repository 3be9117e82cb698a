"""Choice among a few whole configurations (fusion plan, placement, presets) by what each has earned.

Unified batch-stream runtime paper, choosing among configurations; the rule is UCB1 (Auer, Cesa-Bianchi and Fischer
2002) with half its width, and a dwell time because every change restarts a query.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from configs.configurations import MOST_CONFIGURATIONS
from models.contract.objective import objective
from models.contract.terms import Terms

WIDTH = 0.5
"""Factor of the confidence width."""
DWELL = 30
"""Intervals that a configuration is kept at least."""


@dataclass(frozen=True)
class Configurations:
    """What is known of each configuration.

    Attributes:
        names: at most eight.
        counts: intervals that each ran.
        means: mean reward of each; 0 before the first.
        current: place in `names` of the one that runs.
        dwelt: intervals since it was chosen.
    """

    names: tuple[str, ...]
    counts: tuple[int, ...]
    means: tuple[float, ...]
    current: int = 0
    dwelt: int = 0

    @classmethod
    def untried(cls, names: Sequence[str]) -> Configurations:
        """Start with the first of these names, none of them tried.

        Raises:
            ValueError: there is none, more than eight, or two of one name.
        """
        if not 1 <= len(names) <= MOST_CONFIGURATIONS or len(set(names)) < len(names):
            raise ValueError(f"names={tuple(names)}: 1 to {MOST_CONFIGURATIONS} that differ are expected")
        return cls(tuple(names), (0,) * len(names), (0.0,) * len(names))

    @property
    def running(self) -> str:
        """Name of the configuration that runs."""
        return self.names[self.current]


def reward_of(terms: Terms, latency_s: float, within: float) -> float:
    """Return what an interval earns, −J (eq. 3.1): less latency, more records within their limit.

    How many records come and how many executors serve them is not the configuration's doing: goodput counts as a share
    of what came, and energy is left out.

    Args:
        terms: weights and scales.
        latency_s: mean of the interval's records, seconds.
        within: share of them that came out within the latency target.
    """
    return -objective(terms, 1000 * latency_s, 0.0, 0.0, within * terms.scales.goodput_rps)


def score(known: Configurations, at: int) -> float:
    """Return mean + 0.5·√(2·ln t/n) of a configuration, t being all intervals; infinite for one that never ran."""
    count, total = known.counts[at], sum(known.counts)
    return known.means[at] + WIDTH * math.sqrt(2 * math.log(total) / count) if count else math.inf


def choose_next(known: Configurations, feasible: Collection[str], recovering: bool = False) -> Configurations:
    """Choose the configuration of the next interval.

    It stays for 30 intervals, during a recovery, and where no configuration is feasible.

    Args:
        known: so far.
        feasible: names whose hard constraints hold at the low quantile of the service rates.
        recovering: whether the job works off an outage.
    """
    able = [other for other, name in enumerate(known.names) if name in feasible]
    if recovering or known.dwelt < DWELL or not able:
        return known
    best = max(able, key=lambda other: (score(known, other), other == known.current))
    return known if best == known.current else replace(known, current=best, dwelt=0)


def advance_configurations(
    known: Configurations, reward: float, feasible: Collection[str], recovering: bool = False
) -> Configurations:
    """Count an interval of the configuration that runs, and choose the next one, as `choose_next` does.

    Args:
        known: so far.
        reward: −J of the interval; NaN is not counted.
        feasible: as for `choose_next`.
        recovering: likewise.
    """
    at, counts, means = known.current, list(known.counts), list(known.means)
    if not math.isnan(reward):
        counts[at] += 1
        means[at] += (reward - means[at]) / counts[at]
    learned = replace(known, counts=tuple(counts), means=tuple(means), dwelt=known.dwelt + 1)
    return choose_next(learned, feasible, recovering)
