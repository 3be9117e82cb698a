"""A policy drives simulated jobs from the first second to the last."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from models.policy.core.batches import shares
from models.policy.core.capacity import Capacity, Floats, Integers
from models.policy.core.view import Ahead, Policy, View, decide
from models.twin.sim import kernel
from models.twin.sim import state as s
from models.twin.sim.actuate import retarget
from models.twin.sim.job import BELIEVED_OVERHEAD_S, LEAST, MOST, OVERHEAD_S, PER_RECORD_S, TwinError, TwinJobs
from models.twin.sim.state import SimState, begin, latency_quantile

SEEN = ("lag", "executors", "starting", "oldest_s", "latency_s", "done")
"""What a recording holds of every second: records not committed, executors that run, those on their way, age of the
oldest record that waits, latency of the newest batch's slowest record, records committed so far."""


@dataclass(frozen=True, eq=False)
class Load:
    """What is produced.

    Attributes:
        arrived: (rows, T + 1) records before each second, never falling, 0 first.
        row: (runs,) which row a run has.
        lasts: (rows,) seconds that each row lasts, where they differ; its runs then stand still.
        counts: (rows,) seconds, of looks, from which on cost and latency of a row's runs count; None: all do.
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
        """T."""
        return int(self.arrived.shape[1]) - 1

    @cached_property
    def ends(self) -> Integers:
        """(runs,) the second at which each run ends."""
        return np.full(len(self.row), self.seconds) if self.lasts is None else self.lasts[self.row]

    @cached_property
    def begins(self) -> Integers:
        """(runs,) the second from which on each run counts."""
        return np.zeros(len(self.row), np.int64) if self.counts is None else self.counts[self.row]


@dataclass(frozen=True, eq=False)
class Foresight:
    """What a forecaster says at every decision.

    Attributes:
        offsets_s: (K,) as of `Ahead`.
        levels: (Q,) quantile levels.
        rps: (rows, D, K, Q) records/s at the D decisions.
        row: (runs,) which row a run hears.
    """

    offsets_s: Floats
    levels: tuple[float, ...]
    rps: Floats
    row: Integers

    def at(self, decision: int) -> Ahead:
        """What the runs hear at a decision."""
        return Ahead(self.offsets_s, self.levels, self.rps[self.row, decision].astype(float))


@dataclass(frozen=True)
class Looks:
    """How a policy looks at its job.

    Attributes:
        every_s: whole seconds between two looks.
        smooth_s: seconds over which the arrival rate is averaged.
        batch_s: seconds that batches should take.
    """

    every_s: int = 15
    smooth_s: int = 15
    batch_s: float = 2.0

    def count(self, seconds: int) -> int:
        """How many looks a run of so many seconds has; the first is at its beginning."""
        return int(-(-seconds // self.every_s))


@dataclass(frozen=True, eq=False)
class SimOutcome:
    """What became of the runs.

    Attributes:
        executor_s: (runs,) executor-seconds paid, from the request on.
        violation: (runs,) share of the seconds in which a record took longer than the target.
        p99_s, worst_s: (runs,) latency of a second's slowest record: its 99 % quantile and the highest.
        changes: (runs,) of the target.
        targets: (D, runs) what was asked for.
        why: (D, runs) flags.
        seen: (runs or 0, T, 6) `SEEN`: what happened every second, where it was to be recorded.
    """

    executor_s: Floats
    violation: Floats
    p99_s: Floats
    worst_s: Floats
    changes: Floats
    targets: Floats
    why: Integers
    seen: Floats


def simulate(
    jobs: TwinJobs, load: Load, policy: Policy, looks: Looks, seeds: Integers, foresight: Foresight | None = None,
    record: bool = False,
) -> SimOutcome:  # fmt: skip
    """Run a policy over jobs; the same arguments give the same outcome.

    The runs begin with the executors that carry their first minute at full use, so that no policy starts in a hole.

    Raises:
        TwinError: a load that is shorter than one look.
    """
    if load.seconds < looks.every_s:
        raise TwinError(f"{load.seconds} s of load: shorter than one look every {looks.every_s} s; take a longer trace")
    state, memory = begin(jobs, first_executors(jobs, load, looks), seeds), policy.fresh(len(load.row))
    seen = np.zeros((len(load.row) if record else 0, load.seconds, len(SEEN)))
    targets = np.zeros((looks.count(load.seconds), len(load.row)))
    why = np.zeros(targets.shape, np.int64)
    for number, now in enumerate(range(0, load.seconds, looks.every_s)):
        if load.counts is not None:
            _begin_to_count(state, load, now)
        ahead = foresight.at(number) if foresight else None
        memory, choice = decide(policy, memory, view(state, jobs, load, looks, now, ahead))
        act(state, jobs, choice.target if load.lasts is None else _running(state, load, choice.target, now), now)
        targets[number], why[number] = choice.target, choice.why
        until = min(now + looks.every_s, load.seconds)
        for second in range(now, until, 1 if record else looks.every_s):
            advance(state, jobs, load, second, second + 1 if record else until)
            if record:
                seen[:, second] = _seen(state, load, second + 1)
    return ended(state, jobs, load, targets, why, seen)


def act(state: SimState, jobs: TwinJobs, targets: Floats, now: int) -> None:
    """Ask for the targets at second `now`; the state changes in place."""
    retarget(state.x, state.ready_at, state.chance, jobs.startup_s, jobs.restart_s, targets.astype(float), float(now))


def advance(state: SimState, jobs: TwinJobs, load: Load, begin: int, end: int) -> None:
    """Let the seconds [begin, end) pass; the state changes in place."""
    kernel.advance(
        state.x, state.ready_at, state.latencies, state.chance, jobs.facts, jobs.speeds, jobs.believed, load.arrived,
        load.row, float(begin), float(end), load.lasts,
    )  # fmt: skip


def ended(state: SimState, jobs: TwinJobs, load: Load, targets: Floats, why: Integers, seen: Floats) -> SimOutcome:
    """What became of runs that have come to their end; records that still wait count with the latency they have."""
    kernel.close(state.x, state.latencies, jobs.facts, load.arrived, load.row, load.seconds, load.lasts)
    x = state.x
    return SimOutcome(
        x[:, s.PAID], x[:, s.OVER] / (load.ends - load.begins), latency_quantile(state.latencies, 0.99), x[:, s.WORST],
        x[:, s.CHANGES], targets, why, seen,
    )  # fmt: skip


def view(state: SimState, jobs: TwinJobs, load: Load, looks: Looks, now: int, ahead: Ahead | None) -> View:
    """What a policy has measured by second `now`, by the code of a live job; the shares are kept in the state."""
    since = max(min(looks.every_s, now), 1)
    lag = load.arrived[load.row, now] - state.x[:, s.DONE]
    known = state.x[:, s.KNOWN] = shares(state.x[:, s.SUMS], state.x[:, s.KNOWN], state.x[:, s.ENDED_AT] > -np.inf, lag)
    start = max(now - looks.smooth_s, 0)
    ends = load.arrived[load.row, max(now, 1)], load.arrived[load.row, start]
    batches = state.x[:, s.BATCHES]
    return View(
        now_s=float(now), since_s=float(since), arrival_rps=(ends[0] - ends[1]) / max(now - start, 1),
        lag_records=lag, processed_rps=known[:, 0], busy=known[:, 1], in_batch=known[:, 2],
        batch_s=np.where(batches > 0, state.x[:, s.BATCH_S] / np.maximum(batches, 1), np.nan),
        executors=state.of(s.EXECUTORS), starting=state.of(s.WAITING), leaving=state.of(s.LEAVING),
        target=state.of(s.TARGET), since_change_s=np.minimum(now - state.x[:, s.CHANGED_AT], 1e6),
        least=jobs.fact(LEAST), most=jobs.fact(MOST),
        capacity=Capacity(jobs.worth, jobs.fact(BELIEVED_OVERHEAD_S), state.of(s.SLOPE_S), looks.batch_s), ahead=ahead,
    )  # fmt: skip


def _seen(state: SimState, load: Load, second: int) -> Floats:
    """(runs, 6) `SEEN` at the end of a second."""
    x = state.x
    lag, oldest = load.arrived[load.row, second] - x[:, s.DONE], second - x[:, s.OLDEST]
    return np.stack([lag, x[:, s.EXECUTORS], x[:, s.WAITING], oldest, x[:, s.NEWEST], x[:, s.DONE]], axis=1)


def _begin_to_count(state: SimState, load: Load, now: int) -> None:
    """Forget cost and latency of the runs that count from this second on; the state changes in place.

    What came before and still waits is late on nobody's account.
    """
    new = load.begins == now
    if new.any():
        state.x[np.ix_(new, [s.PAID, s.OVER, s.WORST, s.CHANGES])] = 0.0
        state.x[new, s.COUNTS] = now
        state.latencies[new] = 0


def _running(state: SimState, load: Load, targets: Floats, now: int) -> Floats:
    """The targets, and as they are of runs that have come to their end."""
    kept: Floats = np.where(now < load.ends, targets, state.x[:, s.TARGET])
    return kept


def first_executors(jobs: TwinJobs, load: Load, looks: Looks) -> Floats:
    """(runs,) executors that carry the first minute at full use."""
    upto = min(60, load.seconds)
    rate = load.arrived[load.row, upto] / upto
    capacity = Capacity(jobs.speeds, jobs.fact(OVERHEAD_S), jobs.fact(PER_RECORD_S), looks.batch_s)
    return capacity.executors_for(rate, jobs.fact(LEAST), jobs.fact(MOST))[0]
