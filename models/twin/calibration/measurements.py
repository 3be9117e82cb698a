"""Measurements of a job: its batches and the start-ups of its executors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.policy.core.capacity import Floats, Integers

IDLE_S = 0.25
"""A batch that began more than this after the end of the one before waited for its trigger."""


class MeasuredBatches(NamedTuple):
    """Micro-batches in the order of their ends.

    Attributes:
        start_s, end_s: (B,) seconds on any one clock.
        rows: (B,) records.
        executors: (B,) executors that worked on the batch.
        number: (B,) batches with records that the query had done before; inf where that is unknown, as of a warm query.
    """

    start_s: Floats
    end_s: Floats
    rows: Floats
    executors: Floats
    number: Floats

    @property
    def duration_s(self) -> Floats:
        """(B,) seconds from start to end of each batch."""
        return self.end_s - self.start_s

    def select(self, which: Integers | NDArray[np.bool_]) -> MeasuredBatches:
        """Select batches by mask or indices."""
        return MeasuredBatches(*(part[which] for part in self))


class Startups(NamedTuple):
    """Executors that were requested or registered, those that had not come by the end of the observation included.

    Attributes:
        requested_s, registered_s: (S,) seconds on the clock of the batches; the request is NaN where nobody asked, as
            for a job's first executors.
        batch: (S,) the first batch it worked on, an index into `MeasuredBatches`; -1 for none.
        censored: (S,) whether it had not come; `registered_s` is then the end of the observation. None: all came.
    """

    requested_s: Floats
    registered_s: Floats
    batch: Integers
    censored: NDArray[np.bool_] | None = None

    @property
    def came(self) -> NDArray[np.bool_]:
        """(S,) whether it was registered."""
        return np.ones(len(self.batch), bool) if self.censored is None else ~self.censored

    def lead_times_s(self) -> Floats:
        """Return the rising seconds from request to registration of the executors that were requested; may be empty.

        One that had not come counts with the median of the known times longer than it was waited for, or, where there
        are none, with the time it was waited for (a coarse form of redistribution to the right, Efron 1967).
        """
        asked = np.isfinite(self.requested_s)
        leads, came = (self.registered_s - self.requested_s)[asked], self.came[asked]
        known = leads[came]
        longer = [known[known > least] for least in leads[~came]]
        late = [np.median(more) if len(more) else least for more, least in zip(longer, leads[~came], strict=True)]
        return np.sort(np.concatenate([known, np.array(late, float)]))


def concatenate_runs(parts: Sequence[tuple[MeasuredBatches, Startups]]) -> tuple[MeasuredBatches, Startups]:
    """Concatenate the measured batches and start-ups of several runs into one of each, in order.

    `Startups.batch` is shifted to match; times (seconds) are not, each run keeps its own clock.

    Raises:
        ValueError: no parts.
    """
    batches, startups = zip(*parts, strict=True)
    before = np.cumsum([0, *(len(one.rows) for one in batches[:-1])])
    rows = [
        (s.requested_s, s.registered_s, np.where(s.batch >= 0, s.batch + at, -1), ~s.came)
        for s, at in zip(startups, before, strict=True)
    ]
    every = (map(np.concatenate, zip(*some, strict=True)) for some in (batches, rows))
    return MeasuredBatches(*next(every)), Startups(*next(every))


def estimate_trigger_s(batches: MeasuredBatches) -> float | None:
    """Estimate the trigger interval: the median seconds between starts of batches that waited for their trigger.

    Two in a row make a pair; a batch waited if it began more than 0.25 s after the end of the one before.

    Returns:
        Seconds, to a tenth; None with fewer than three such pairs: the interval is then no longer than batches are.
    """
    idle = batches.start_s[1:] - batches.end_s[:-1] > IDLE_S
    both = idle[1:] & idle[:-1]
    between = np.diff(batches.start_s)[1:][both]
    return round(float(np.median(between)), 1) if len(between) >= 3 else None


def estimate_most_rows(batches: MeasuredBatches) -> float:
    """Estimate the limit of records per batch: the largest batch, if at least three are within 1 % of it; else inf."""
    highest = float(batches.rows.max(initial=0.0))
    return highest if (batches.rows >= 0.99 * highest).sum() >= 3 else math.inf
