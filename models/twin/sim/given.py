"""What a simulation is given beside jobs and a policy: the load, the forecasts of it, and when the policy looks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from models.policy.core.capacity import Floats, Integers
from models.policy.core.view import LoadAhead
from models.twin.sim.job import TwinError


class Produced(NamedTuple):
    """A load as compiled code takes it: `Load.arrived`, `Load.row`, and (runs,) the second at which each run ends."""

    arrived: Floats
    row: Integers
    ends: Integers


@dataclass(frozen=True, eq=False)
class Load:
    """The records that runs receive.

    Attributes:
        arrived: (rows, T + 1) records produced before each second, never falling, 0 first.
        row: (runs,) index of the row that a run receives.
        lasts: (rows,) seconds that each row lasts, where they differ; its runs then stand still. None: T.
        counts: (rows,) second from which on cost and latency of a row's runs count, a multiple of the look interval;
            None: 0.

    Raises:
        TwinError: a number of `arrived` that is not finite, or a row that falls.
    """

    arrived: Floats
    row: Integers
    lasts: Integers | None = None
    counts: Integers | None = None

    def __post_init__(self) -> None:
        if not np.isfinite(self.arrived).all() or (np.diff(self.arrived, axis=1) < 0).any():
            raise TwinError("arrived: records before each second must be finite and never fall; a rate was NaN or < 0")

    @property
    def seconds(self) -> int:
        """T, the length of the longest row."""
        return int(self.arrived.shape[1]) - 1

    @cached_property
    def produced(self) -> Produced:
        """The load as compiled code takes it."""
        ends = np.full(len(self.row), self.seconds) if self.lasts is None else self.lasts[self.row]
        return Produced(np.ascontiguousarray(self.arrived), self.row, ends)  # compiled for such arrays

    @cached_property
    def begins(self) -> Integers:
        """(runs,) second from which on each run counts."""
        return np.zeros(len(self.row), np.int64) if self.counts is None else self.counts[self.row]

    def produced_s(self, begin: int, end: int) -> Floats:
        """Return (runs,) seconds of `begin` to `end` in which anything was produced."""
        rises = self.arrived[:, begin + 1 : end + 1] > self.arrived[:, begin:end]
        return np.count_nonzero(rises, axis=1).astype(float)[self.row]


class Foresight(NamedTuple):
    """The forecasts that a policy receives, one per decision.

    Attributes:
        offsets_s: (K,) rising seconds from the decision; entry k covers the time since entry k - 1.
        levels: (Q,) quantile levels.
        rps: (rows, D, K, Q) records/s at the D decisions; NaN for runs that receive nothing.
        row: (runs,) index of the row that a run receives.
    """

    offsets_s: Floats
    levels: tuple[float, ...]
    rps: Floats
    row: Integers

    @property
    def decisions(self) -> int:
        """D."""
        return int(self.rps.shape[1])

    def at(self, decision: int) -> LoadAhead:
        """Return what all runs receive at a decision (index from 0).

        Raises:
            IndexError: there are fewer decisions.
        """
        return LoadAhead(self.offsets_s, self.levels, self.rps[self.row, decision].astype(float))


@dataclass(frozen=True)
class Looks:
    """When a policy observes its job, and how.

    Attributes:
        every_s: whole seconds between two looks.
        smooth_s: whole seconds over which the arrival rate is averaged at least (`arrival_rate`).
        batch_s: seconds that batches should take; an array has one per run.
    """

    every_s: int = 15
    smooth_s: int = 15
    batch_s: float = 2.0

    def count(self, seconds: int) -> int:
        """Return the number of looks in a run of so many seconds; the first is at second 0."""
        return int(-(-seconds // self.every_s))
