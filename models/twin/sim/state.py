"""The state of simulated runs, as arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.policy.core.batch_time import GUESS_WEIGHT
from models.policy.core.capacity import Floats, Integers
from models.twin.sim.job import TwinJobs

PENDING = 32
"""Executors of one run that can be on their way at once, or as many as the job may have where these are more."""
LINEAR, FINE_S, BINS = 128, 0.25, 192
"""Latencies are counted in bins of a quarter of a second up to 32 s, then in sixteenths of a doubling."""
FIELDS = (
    "executors", "leaving", "waiting", "next_ready", "target", "changed_at", "raised_at", "halt_until", "batch_end",
    "batch_start", "rows", "next_start", "done", "oldest", "cold", "untaught", "overhead_s", "per_record_s",
    "sure_overhead", "sure_both", "sure_record", "paid", "over", "changes", "worst", "newest", "join_until", "reread",
    "longer", "counts", "read", "used_at", "ended_at",
    "batches", "processed", "batch_s", "span_s", "work", "slots", "known_rps", "known_busy", "known_in_batch",
)  # fmt: skip
RUN = np.dtype([(name, float) for name in FIELDS], align=True)
"""A record of `SimState.x`; the last nine are `sums` and `last` of `models.policy.core.batches.measure_shares`."""
SUMS, KNOWN = slice(-9, -3), slice(-3, None)


class SimState(NamedTuple):
    """Simulation state, one row per run; the kernel changes the arrays in place.

    Attributes:
        x: (runs,) records of `RUN`, times in seconds since the run began. In the order of `FIELDS`: executors that run
            (those that leave included), executors that leave when the batch in flight has ended, executors on their way
            and when the first of them arrives; the target, when it last changed and when it last rose; until when a
            restarting engine processes nothing; end (inf without one), start and rows of the batch in flight; earliest
            start of the next one; records committed; the first second with a record that is not; 1 while an executor
            waits for its first batch, 2 while one is in it, 3 for both; batches still to come that teach no capacity
            because an executor is new; the batch time as a policy has learned it (the first five of `BatchTime`);
            executor-seconds paid, from the request on; seconds over the latency target; changes of the target; slowest
            latency so far, and of the newest batch; until when the batch in flight has tasks left for an executor that
            joins; 1 after a restart until records are read again; share by which the next batch takes longer while the
            query warms up; the first second whose latency counts; seconds over the target that a policy was told; end
            of the newest batch that used a new executor (-inf before one); and what it measures: end of the newest
            batch (-inf before one), sums since the last look and shares at that look, both as in
            `batches.measure_shares`.
        ready_at: (runs, pending) seconds at which executors on their way arrive; inf where there is none.
        latencies: (runs, BINS) histogram: seconds of arrival by the latency of their slowest record.
        chance: (runs,) state of each run's random numbers.
    """

    x: Any
    ready_at: Floats
    latencies: NDArray[np.int32]
    chance: NDArray[np.uint64]

    @property
    def table(self) -> Floats:
        """(runs, FIELDS) view of `x` as floats; writing to it changes `x`."""
        return self.x.view(float).reshape(len(self.x), -1)


def begin(jobs: TwinJobs, executors: Floats, seeds: Integers, batches: int = 0) -> SimState:
    """Create the state of runs at second 0: nothing waits, no batch runs, nothing is measured.

    Args:
        jobs: of the runs.
        executors: (runs,) executors that run from the beginning.
        seeds: (runs,) seeds of the random numbers.
        batches: batches that each query has done already, which shortens its warm-up (first slow batches).
    """
    runs, facts = len(executors), jobs.facts
    x = np.zeros(runs, RUN)
    x["executors"] = x["target"] = executors
    x["next_ready"] = x["batch_end"] = np.inf
    x["changed_at"] = x["raised_at"] = x["ended_at"] = x["used_at"] = -np.inf
    for name in ("overhead_s", "per_record_s"):
        x[name] = facts[f"guessed_{name}"]
    x["sure_overhead"] = x["sure_record"] = GUESS_WEIGHT
    x["longer"] = facts["warmup"] * facts["warmup_kept"] ** batches
    ready = np.full((runs, max(PENDING, int(facts["most"].max(initial=0)))), np.inf)
    state = SimState(x, ready, np.zeros((runs, BINS), np.int32), _scattered(seeds))
    state.table[:, KNOWN] = np.nan
    return state


def _scattered(seeds: Integers) -> NDArray[np.uint64]:
    """Seeds that lie near each other give states that do not (splitmix64, Steele et al. 2014)."""
    z = seeds.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def latency_quantile(latencies: NDArray[np.int32], level: float) -> Floats:
    """Compute a quantile of latency per run from the histograms.

    Args:
        latencies: (runs, 192) as in `SimState`: bins of 0.25 s up to 32 s, then 16 per doubling.
        level: between 0 and 1.

    Returns:
        (runs,) seconds, the upper edge of the bin that holds the quantile, over seconds with an arrival; 0 without any.
    """
    total = latencies.sum(axis=1)
    at = (np.cumsum(latencies, axis=1) >= (level * total)[:, None]).argmax(axis=1)
    return np.where(total > 0, _upper_edges(at), 0.0)


def mean_latency(latencies: NDArray[np.int32]) -> Floats:
    """Compute the mean latency per run from the histograms, each second at its bin's upper edge.

    Args:
        latencies: (runs, 192) as in `SimState`.

    Returns:
        (runs,) seconds; NaN of a run without any.
    """
    total = latencies.sum(axis=1)
    edges = _upper_edges(np.arange(latencies.shape[1]))
    return np.where(total > 0, latencies @ edges / np.maximum(total, 1), np.nan)


def _upper_edges(bins: NDArray[np.int64]) -> Floats:
    return np.where(bins < LINEAR, (bins + 1) * FINE_S, LINEAR * FINE_S * 2.0 ** ((bins - LINEAR + 1) / 16))
