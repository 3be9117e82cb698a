"""What the twin carries of every run from second to second."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.policy.core.capacity import Floats, Integers
from models.twin.sim.job import GUESS_S, MOST, WARMUP, WARMUP_KEPT, TwinJobs

PENDING = 32
"""Executors of one run that can be on their way at once, or as many as the job may have where these are more."""
LINEAR, FINE_S, BINS = 128, 0.25, 192
"""Latencies are counted in bins of a quarter of a second up to 32 s, then in sixteenths of a doubling."""


FIELDS = (
    "executors", "leaving", "pending", "next_ready", "target", "changed_at", "halt_until", "batch_end", "batch_start",
    "batch_rows", "next_start", "done", "oldest", "cold", "untaught", "per_record_s", "xx", "xd", "paid", "over",
    "changes", "worst", "newest", "join_until", "reread", "longer", "counts", "ended_at",
    "batches", "processed", "batch_s", "span_s", "work", "slots", "known_rps", "known_busy", "known_in_batch",
)  # fmt: skip
"""Columns of `SimState.x`."""
(
    EXECUTORS, LEAVING, WAITING, NEXT_READY, TARGET, CHANGED_AT, HALT_UNTIL, BATCH_END, BATCH_START,
    ROWS, NEXT_START, DONE, OLDEST, COLD, UNTAUGHT, SLOPE_S, XX, XD, PAID, OVER,
    CHANGES, WORST, NEWEST, JOIN_UNTIL, REREAD, LONGER, COUNTS, ENDED_AT,
    BATCHES, PROCESSED, BATCH_S, SPAN_S, WORK, SLOTS, KNOWN_RPS, KNOWN_BUSY, KNOWN_IN_BATCH,
) = range(len(FIELDS))  # fmt: skip
SUMS, KNOWN = slice(BATCHES, SLOTS + 1), slice(KNOWN_RPS, KNOWN_IN_BATCH + 1)
"""As `models.policy.core.batches.shares` takes them."""


@dataclass(frozen=True, eq=False)
class SimState:
    """Arrays with one row per run; the kernel changes them in place, so a run that goes on twice needs a `copy`.

    Attributes:
        x: (runs, 38) `FIELDS`: executors that run (those that leave included), those that go when the batch in flight
            has ended, those on their way and when the first of them arrives; the target and when it last changed;
            until when a restarting engine processes nothing; end (inf without one), start and rows of the batch in
            flight; earliest start of the next one; records committed; the first second with a record that is not; 1
            while an executor waits for its first batch, 2 while one is in it, 3 for both; batches that teach no
            capacity because an executor is new; the service time as a policy has learned it and the sums behind it
            (`capacity.slope`); executor-seconds paid, from the request on; seconds over the target; changes of the
            target; slowest latency so far and of the newest batch; until when the batch in flight has tasks left for
            an executor that joins; 1 after a restart, until records are read again; the share by which the next batch
            takes longer while the query warms up; the first second whose latency counts; and what a policy measures,
            as of `batches.Batches`: the newest end (-inf before one), the sums since the last look, the shares of then.
        ready_at: (runs, pending) seconds at which executors on their way arrive; inf where there is none.
        latencies: (runs, BINS) seconds of arrival by the latency of their slowest record.
        chance: (runs,) state of the run's random numbers.
    """

    x: Floats
    ready_at: Floats
    latencies: NDArray[np.int32]
    chance: NDArray[np.uint64]

    def of(self, column: int) -> Floats:
        """(runs,) a copy of one of `FIELDS`."""
        return self.x[:, column].copy()

    def copy(self) -> SimState:
        """For going on twice from the same moment."""
        return SimState(self.x.copy(), self.ready_at.copy(), self.latencies.copy(), self.chance.copy())


def begin(jobs: TwinJobs, executors: Floats, seeds: Integers, batches: int = 0) -> SimState:
    """Calm runs with so many executors each, of which nothing is measured yet, of queries that did so many batches."""
    runs = len(executors)
    x = np.zeros((runs, len(FIELDS)))
    x[:, EXECUTORS] = x[:, TARGET] = executors
    x[:, [NEXT_READY, BATCH_END]] = np.inf
    x[:, CHANGED_AT] = -np.inf
    x[:, SLOPE_S] = jobs.fact(GUESS_S)
    x[:, ENDED_AT] = -np.inf
    x[:, KNOWN] = np.nan
    x[:, LONGER] = jobs.fact(WARMUP) * jobs.fact(WARMUP_KEPT) ** batches
    ready = np.full((runs, max(PENDING, int(jobs.fact(MOST).max(initial=0)))), np.inf)
    return SimState(x, ready, np.zeros((runs, BINS), np.int32), _scattered(seeds))


def _scattered(seeds: Integers) -> NDArray[np.uint64]:
    """Seeds that lie near each other give states that do not (splitmix64, Steele et al. 2014)."""
    z = seeds.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def latency_quantile(latencies: NDArray[np.int32], level: float) -> Floats:
    """(runs,) seconds: the upper edge of the bin that holds the quantile, over seconds with an arrival; 0 without."""
    total = latencies.sum(axis=1)
    reached = np.cumsum(latencies, axis=1) >= (level * total)[:, None]
    at = reached.argmax(axis=1)
    edge = np.where(at < LINEAR, (at + 1) * FINE_S, LINEAR * FINE_S * 2.0 ** ((at - LINEAR + 1) / 16))
    found: Floats = np.where(total > 0, edge, 0.0)
    return found
