"""Run policies over simulated jobs, from the first second of a load to the last."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from models.policy.core.batches import measure_shares
from models.policy.core.capacity import Capacity, Floats, Integers
from models.policy.core.policy import Policy, decide
from models.policy.core.view import LoadAhead, View
from models.policy.received.arrival_rate import SPANS, steady_rate
from models.twin.sim import kernel
from models.twin.sim.actuate import retarget
from models.twin.sim.given import Foresight, Load, Looks
from models.twin.sim.job import ShortLoadError, TwinJobs
from models.twin.sim.state import KNOWN, SUMS, SimState, begin, latency_quantile

REPORTED = 500
"""Looks from one report of how far a simulation is to the next."""


class SimOutcome(NamedTuple):
    """Cost and latency of simulated runs.

    Attributes:
        executor_s: (runs,) executor-seconds paid, from the request of an executor on.
        violation: (runs,) share of the seconds, 0 to 1, in which a record took longer than the latency target.
        p99_s, worst_s: (runs,) seconds: 99 % quantile and maximum of the latency of a second's slowest record.
        changes: (runs,) changes of the target.
        targets: (D, runs) executors asked for at each look.
        why: (D, runs) flags of `Why`.
    """

    executor_s: Floats
    violation: Floats
    p99_s: Floats
    worst_s: Floats
    changes: Floats
    targets: Floats
    why: Integers


def simulate(
    jobs: TwinJobs, load: Load, policy: Policy, looks: Looks, seeds: Integers, foresight: Foresight | None = None,
    report_share: Callable[[float], None] = lambda share: None,
) -> SimOutcome:  # fmt: skip
    """Run a policy over simulated jobs and return what it cost; the same arguments give the same outcome.

    Each run begins with the executors that sustain its first minute at full use, so no policy starts with a backlog.

    Args:
        jobs: of the runs.
        load: of the runs: `arrived` (rows, T + 1) records before each second, `row` (runs,).
        policy: with parameters that are numbers, or arrays with one entry per run.
        looks: when the policy decides.
        seeds: (runs,) seeds of start-up delays and batch noise; their number is not checked.
        foresight: forecasts for every look (decision); None where the policy receives none.
        report_share: called every `REPORTED` looks and at the end with the share of the load, 0 to 1, simulated.

    Returns:
        (runs,) executor-seconds, violation (share of seconds over the latency target), 99 % and highest latency (s) and
        changes; (D, runs) targets (executors) and reasons (flags).

    Raises:
        ShortLoadError: the load is shorter than one look.
        IndexError: `foresight` has fewer decisions than there are looks.
    """
    if load.seconds < looks.every_s:
        short = f"{load.seconds} s of load: shorter than one look every {looks.every_s} s; take a longer trace"
        raise ShortLoadError(short)
    state, memory = begin(jobs, first_executors(jobs, load, looks), seeds), policy.fresh(len(load.row))
    targets = np.zeros((looks.count(load.seconds), len(load.row)))
    why = np.zeros(targets.shape, np.int64)
    begins = set() if load.counts is None else set(load.begins.tolist())
    for number, now in enumerate(range(0, load.seconds, looks.every_s)):
        if now in begins:
            begin_to_count(state, load, now)
        if number % REPORTED == 0:
            report_share(now / load.seconds)
        ahead = foresight.at(number) if foresight else None
        memory, choice = decide(policy, memory, observe(state, jobs, load, looks, now, ahead))
        set_targets(state, jobs, np.where(now < load.produced.ends, choice.target, state.x["target"]), now)
        targets[number], why[number] = choice.target, choice.why
        advance(state, jobs, load, now, min(now + looks.every_s, load.seconds))
    report_share(1.0)
    return summarise(state, jobs, load, targets, why)


def set_targets(state: SimState, jobs: TwinJobs, targets: Floats, now: float) -> None:
    """Set (runs,) targets at second `now` of the runs, executors within the bounds of each job (they are not cut here).

    `state` changes in place.
    """
    retarget(state, jobs, targets.astype(float), float(now))


def advance(state: SimState, jobs: TwinJobs, load: Load, begin: float, end: float) -> None:
    """Simulate from second `begin`, where the last call ended, to `end`; `state` changes in place."""
    kernel.advance(state, jobs, load.produced, float(begin), float(end))


def summarise(state: SimState, jobs: TwinJobs, load: Load, targets: Floats, why: Integers) -> SimOutcome:
    """Close runs at the end of their load and summarise them; `state` changes in place, so call it once.

    Records that still wait count with the latency they have by then; a run without counting seconds violates NaN.

    Args:
        state: of the runs, advanced to the end.
        jobs: of the runs.
        load: of the runs.
        targets: (D, runs) executors asked for, passed on.
        why: (D, runs) flags of `Why`, passed on.
    """
    kernel.close(state, jobs, load.produced)
    x, p99_s = state.x, latency_quantile(state.latencies, 0.99)
    violation = x["over"] / (load.produced.ends - load.begins)
    return SimOutcome(x["paid"], violation, p99_s, x["worst"], x["changes"], targets, why)


def observe(state: SimState, jobs: TwinJobs, load: Load, looks: Looks, now: int, ahead: LoadAhead | None) -> View:
    """Return what a policy observes at second `now`, (runs,) each, measured by the same code as in a live job.

    Call it once per look, before `set_targets` resets the sums: what it has told stays in `state`.

    Args:
        state: of the runs.
        jobs: of the runs.
        load: of the runs.
        looks: interval of looks, averaging of the arrival rate, batch length.
        now: whole seconds since the runs began, at most the length of the load (IndexError).
        ahead: the forecast that the policy receives; None for none.
    """
    x, facts, table = state.x, jobs.facts, state.table
    so_far = load.arrived[load.row, now]
    lag, new = so_far - x["done"], so_far if now else load.arrived[load.row, 1]
    known = table[:, KNOWN] = measure_shares(table[:, SUMS], table[:, KNOWN], x["ended_at"] > -np.inf, lag)
    before, until = max(now - looks.every_s, 0), max(now, 1)
    since_s, counted_s = float(until - before), load.produced_s(before, until)
    late_s, x["read"] = np.maximum(x["over"] - x["read"], 0.0), x["over"]
    return View(
        now_s=float(now), since_s=since_s, late_s=late_s, counted_s=counted_s,
        arrival_rps=_arrival_rate(load, new, now, looks.smooth_s),
        lag_records=lag, processed_rps=known[:, 0], busy=known[:, 1], busiest=known[:, 1], in_batch=known[:, 2],
        batch_s=np.where(x["batches"] > 0, x["batch_s"] / np.maximum(x["batches"], 1), np.nan),
        executors=x["executors"].copy(), starting=x["waiting"].copy(), leaving=x["leaving"].copy(),
        target=x["target"].copy(), since_change_s=np.minimum(now - x["changed_at"], 1e6),
        since_raise_s=np.minimum(now - x["raised_at"], 1e6), least=facts["least"], most=facts["most"],
        capacity=Capacity(jobs.worth, x["overhead_s"].copy(), x["per_record_s"].copy(), looks.batch_s), ahead=ahead,
    )  # fmt: skip


def _arrival_rate(load: Load, new: Floats, now: int, smooth_s: int) -> Floats:
    """(runs,) records/s that arrive at second `now`, by which `new` have come."""
    starts = np.array([max(now - span * smooth_s, 0) for span in SPANS])[:, None]
    return steady_rate((new - load.arrived[load.row, starts]) / np.maximum(now - starts, 1), smooth_s)


def begin_to_count(state: SimState, load: Load, now: int) -> None:
    """Forget cost and latency of the runs that count from second `now` on; the state changes in place.

    What came before and still waits is late on nobody's account.
    """
    new = load.begins == now
    for name, value in (("paid", 0.0), ("over", 0.0), ("worst", 0.0), ("changes", 0.0), ("counts", now)):
        state.x[name][new] = value
    state.latencies[new] = 0


def first_executors(jobs: TwinJobs, load: Load, looks: Looks) -> Floats:
    """Return (runs,) the fewest executors that sustain the mean load of the first minute at full use, within bounds."""
    upto, facts = min(60, load.seconds), jobs.facts
    rate = load.arrived[load.row, upto] / upto
    return jobs.capacity(looks.batch_s).executors_for(rate, facts["least"], facts["most"])[0]
