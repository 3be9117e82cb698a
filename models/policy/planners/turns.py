"""Starts in turns: of executors that slow each other's start down, or of which few may start at once.

With k at once a start takes k ** growth times as long as one. A need that is several turns away must be begun while
there is time for all of them, so a plan looks as many turns further as executors are missing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from models.policy.core.capacity import Floats
from models.policy.core.view import View

TURN = 0.75
"""Share of the lead time that is planned for, its 0.9 quantile, after which a start is over in the median and the next
one begins. Sooner it would slow the first tasks of those that have come, and the batch that waits for them: on two
cores a batch with one start in it took 5 s, with two that overlapped 10 s."""


@lru_cache(maxsize=1024)
def starts_at_once(most: int, growth: float) -> Floats:
    """Return (most + 1,) how many of 0 to `most` missing executors should start at once, to be soonest of use.

    The number that is least in the time for which executors are missing, summed over these, where each turn begins when
    the one before is over; of equals the highest.
    """
    found = np.zeros(most + 1)
    sizes, takes = np.arange(1, most + 1), np.array([k**growth for k in range(1, most + 1)])
    for missing in range(1, most + 1):  # of thousands, in a minute's CPU if number by number, which all jobs waited for
        k = sizes[:missing]
        turns = -(-missing // k)
        waits = takes[:missing] * (turns * missing - k * (turns * (turns - 1) // 2))  # missing, missing - k, ...
        found[missing] = np.flatnonzero(waits <= waits.min() * (1 + 1e-9))[-1] + 1
    return found


@lru_cache(maxsize=256)
def _start_tables(most: int, growths: tuple[float, ...]) -> Floats:
    """(G, most + 1) `starts_at_once` of each growth."""
    return np.stack([starts_at_once(most, growth) for growth in growths])


def at_once(missing: Floats, growth: Floats | float, step_up: float) -> Floats:
    """Return (runs,) how many of (runs,) missing executors, whole numbers, start at once.

    Args:
        missing: at least 0.
        growth: exponent by which a start takes longer with the executors that start at once; a number or one per run.
        step_up: most that may; infinite for no bound.
    """
    if not np.any(growth):
        return np.minimum(missing, step_up)
    enough = 1 << int(missing.max(initial=0)).bit_length()
    tables = _start_tables(enough, tuple(np.ravel(growth).tolist()))
    soonest = tables[np.arange(len(tables)) if len(tables) > 1 else 0, missing.astype(np.int64)]
    return np.minimum(soonest, step_up)


def one_by_one(growth: float) -> bool:
    """Whether executors slow each other's start down so much that two are of use sooner one after the other.

    So it is where they share a computer.

    Args:
        growth: exponent by which a start takes longer with the executors that start at once.
    """
    return bool(starts_at_once(2, growth)[2] < 2)


def quiet_s(lead_s: float, growth: float) -> float:
    """Return for how many seconds after a raise batches teach nothing of a job, unless its executors have come.

    For a lead time where starts are made in turns because they slow each other down: what they take is taken from the
    batches as well. For none where all start at once, each on a computer of its own.
    """
    return lead_s if one_by_one(growth) else 0.0


def pace_s(
    missing: Floats, started: Floats, growth: Floats | float, step_up: float, lead_s: Floats | float
) -> Floats | float:
    """Return (runs,) seconds from one start to the next one; 0 where all that are missing may start at once.

    Args:
        missing: (runs,) whole numbers, at least 0.
        started: (runs,) executors that are under way, whole numbers.
        growth: as in `at_once`.
        step_up: likewise.
        lead_s: seconds from now until what is asked for now works; a number or one per run.
    """
    several = np.maximum(missing, 2.0)  # a single one that is missing waits, too, for one that was begun before it
    turns = at_once(several, growth, step_up) < several
    return np.where(turns, TURN * lead_s * np.maximum(started, 1.0) ** growth, 0.0)


def raise_in_turns(
    view: View, wanted: Floats, growth: Floats | float, step_up: float, lead_s: Floats | float
) -> Floats:  # fmt: skip
    """Return (runs,) executors to ask for now on the way up to (runs,) wanted, at least the target.

    As many as are soonest of use start at once, at most `step_up`; the next ones when these should work. Nothing starts
    in a lowering: it is no turn. The arguments are those of `pace_s`.
    """
    missing = np.maximum(wanted - view.ready, 0.0)
    waited = view.since_raise_s >= pace_s(missing, view.starting, growth, step_up, lead_s)
    next_up = np.where(waited, view.ready + at_once(missing, growth, step_up), view.target)
    begun: Floats = np.clip(next_up, view.target, wanted)
    return begun


class Turns(NamedTuple):
    """The turns in which missing executors would start, (runs,) each.

    Attributes:
        many: turns until none is missing, at least 1.
        size: executors in each.
        seconds: from the beginning of one to that of the next, above 0.
    """

    many: Floats
    size: Floats
    seconds: Floats

    def within(self, reach_s: Floats | float) -> int:
        """Return how many turns have to be looked at, those of all runs, where the forecast reaches so much further."""
        if self.many.max(initial=1) <= 1:
            return 1  # the most frequent case, as in `plan_turns`
        further = np.maximum(np.ceil(reach_s / self.seconds), 0.0)
        return int(np.minimum(self.many, 1 + further).max(initial=1))

    def first(self, needs: Sequence[Floats]) -> Floats:
        """Return (runs,) executors that must have been asked for with the first turn, so that each later need is met.

        Args:
            needs: (runs,) executors by the end of what the first, second, ... turn's plan looks at.
        """
        if len(needs) == 1:
            return needs[0]
        by_turn = [np.where(turn < self.many, need - turn * self.size, 0.0) for turn, need in enumerate(needs)]
        asked: Floats = np.max(by_turn, axis=0)
        return asked


def plan_turns(missing: Floats, growth: Floats | float, step_up: float, lead_s: Floats | float) -> Turns:
    """Plan the turns in which (runs,) executors would start, were they all needed; a single one if all start at once.

    Args:
        missing: whole numbers, at least 0.
        growth: as in `at_once`.
        step_up: likewise.
        lead_s: seconds from now until what is asked for now works; a number or one per run.
    """
    if not np.any(growth) and math.isinf(step_up):
        return Turns(np.ones(1), missing, np.ones(1))  # the most frequent case: nothing to work out
    size = np.maximum(at_once(missing, growth, step_up), 1.0)
    seconds = np.maximum(TURN * lead_s * size**growth, 1e-9)
    return Turns(np.maximum(np.ceil(missing / size), 1.0), size, seconds)


@lru_cache(maxsize=1024)
def turns_of(missing: int, growth: float, step_up: float) -> tuple[tuple[float, float], ...]:
    """Return (executors, lead times of one until these work) of each turn in which so many missing ones start."""
    turns = plan_turns(np.array([float(missing)]), growth, step_up, 1.0)
    many, size, seconds = (float(np.max(part)) for part in turns)
    sizes = [min(size, missing - turn * size) for turn in range(int(many))]
    return tuple((each, turn * seconds + size**growth) for turn, each in enumerate(sizes))
