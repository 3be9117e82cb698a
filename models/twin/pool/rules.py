"""Rules by which a pool may be divided: ours, and what teams do without one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from configs.pool import ClusterPool
from models.policy.core.capacity import Floats
from models.pool.divide import grant
from models.pool.wants import PoolMemory, Want


class DivisionRule(Protocol):
    """How executors are divided; pure, what it remembers is handed to it."""

    def fresh(self) -> Any:
        """Return what it remembers before the first division."""

    def cut(self, memory: Any, wants: Mapping[str, Want], now: float) -> tuple[Any, dict[str, int]]:
        """Return what it remembers afterwards, and the executors of each job."""


@dataclass(frozen=True)
class ByWorth:
    """Ours: `models.pool.divide.grant`."""

    pool: ClusterPool

    def fresh(self) -> PoolMemory:
        """Return a memory without grants."""
        return PoolMemory()

    def cut(self, memory: PoolMemory, wants: Mapping[str, Want], now: float) -> tuple[PoolMemory, dict[str, int]]:
        """Return the memory and the grants."""
        after, granted = grant(self.pool, memory, wants, now)
        return after, {job: one.executors for job, one in granted.items()}


@dataclass(frozen=True)
class FirstCome:
    """Who asks gets what is free, and keeps it while it asks for it, as on a cluster without a pool.

    Who has waited longest is served first.
    """

    cores: int

    def fresh(self) -> tuple[dict[str, int], dict[str, float]]:
        """Return that nobody has anything, and nobody waits."""
        return {}, {}

    def cut(
        self, memory: tuple[dict[str, int], dict[str, float]], wants: Mapping[str, Want], now: float
    ) -> tuple[tuple[dict[str, int], dict[str, float]], dict[str, int]]:
        """Return what each has, and since when who waits."""
        before, waiting = memory
        first = {job: want.running for job, want in wants.items()}
        given = {job: min(want.executors, (before or first)[job]) for job, want in wants.items()}
        since = {job: waiting.get(job, now) for job, want in wants.items() if want.executors > given[job]}
        room = self.cores - sum(given[job] * want.cores for job, want in wants.items())
        for job in sorted(since, key=lambda job: (since[job], job)):
            more = max(min(wants[job].executors - given[job], room // wants[job].cores), 0)
            given[job] += more
            room -= more * wants[job].cores
        still = {job: at for job, at in since.items() if given[job] < wants[job].executors}
        return (given, still), given


@dataclass(frozen=True)
class Fixed:
    """Each job has a share of its own, up to which it scales."""

    shares: Mapping[str, int]

    def fresh(self) -> None:
        """Return None: nothing is remembered."""

    def cut(self, memory: None, wants: Mapping[str, Want], now: float) -> tuple[None, dict[str, int]]:
        """Return what each asks for, at most its share."""
        return None, {job: min(want.executors, self.shares[job]) for job, want in wants.items()}


def split_by(parts: Floats, cores: int) -> list[int]:
    """Return whole cores by (J,) parts, at least 1 each, that come to all of J or more cores (largest remainders)."""
    exact = parts / parts.sum() * cores
    shares = np.maximum(np.floor(exact), 1.0)
    for at in np.argsort(shares - exact, kind="stable"):
        if shares.sum() < cores:
            shares[at] += 1
    while shares.sum() > cores:
        shares[np.argmax(np.where(shares > 1, shares - exact, -np.inf))] -= 1
    return [int(one) for one in shares]


def best_split(costs: Floats, cores: int) -> list[int]:
    """Return the shares, at least 1 each and at most `cores` together, whose costs are least: known in hindsight alone.

    Args:
        costs: (J, N) cost of each job with a share of 1 to N cores.
        cores: at least J.
    """
    jobs, most = costs.shape
    least = np.full((jobs + 1, cores + 1), np.inf)
    least[0] = 0.0
    chosen = np.zeros((jobs + 1, cores + 1), np.int64)
    for job in range(1, jobs + 1):
        for have in range(job, cores + 1):
            options = [least[job - 1, have - own] + costs[job - 1, own - 1] for own in range(1, min(most, have) + 1)]
            best = int(np.argmin(options))
            least[job, have], chosen[job, have] = options[best], best + 1
    shares, have = [], cores
    for job in range(jobs, 0, -1):
        shares.append(int(chosen[job, have]))
        have -= shares[-1]
    return shares[::-1]
