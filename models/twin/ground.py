"""The ground on which policies meet: a part of a trace, scaled to a job, at one lead time."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from configs.contract import Contract, Executors, Planning
from models.forecast.series import Series
from models.policy.capacity import Capacity, Floats, Integers, speeds
from models.policy.peaks import Peaks
from models.twin.arrivals import drawn, filled, rates
from models.twin.foresight import Told, offsets
from models.twin.job import Job, TwinError
from models.twin.run import Looks
from models.twin.schooling import DAYS as SCHOOL_DAYS
from models.twin.schooling import schooled

DAY_S = 86400.0
SPREAD = tuple(np.linspace(0.85, 1.15, 8).tolist())
"""Start-up delays and restarts as shares of the lead time."""
HOLD_S = 30.0
"""Seconds after the lead time for which capacity asked for now must still do: two decisions."""
TEST_SHARE = 0.2
GAP_STEPS = 3
"""A gap of so many steps is filled by a line; a longer one hides too much of what is judged."""
PEAK_QUANTILE = 0.999
TASKS = 4000
"""Of the heavy stage: so many that the last wave does not count."""


@dataclass(frozen=True)
class Terms:
    """What is the same for every policy.

    Attributes:
        lead_s: from the request of an executor to its first task; with an engine that restarts, what a restart takes.
        executors: that carry the trace's 99.9 % quantile at full use; None: of a job given, half of its most, else 20.
        peak_rps: the rate that this quantile becomes, where no job is given.
        latency_target_s: event time to result.
        restarts: whether the engine restarts at every change.
        job: a fitted job; its own start-up delays hold where `lead_s` is their median.
        as_is: the trace is in records/s of the job already and is not scaled.
        dispersion: variance over mean of a second's records.
        test_days, tune_days: most of the trace's newest part, and of what lies before it.
    """

    lead_s: float = 60.0
    executors: int | None = None
    peak_rps: float = 3000.0
    latency_target_s: float = 10.0
    restarts: bool = False
    job: Job | None = None
    as_is: bool = False
    dispersion: float = 1.0
    test_days: float = 5.0
    tune_days: float = 4.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.lead_s) and 0 < self.lead_s <= DAY_S):
            raise TwinError(f"lead_s={self.lead_s}: seconds above 0 and at most a day are expected")

    @cached_property
    def peak_executors(self) -> int:
        """As of `executors`."""
        if self.executors is not None:
            return self.executors
        return max(1, self.job.most // 2) if self.job else 20

    @cached_property
    def looks(self) -> Looks:
        """Every 15 s, more often where executors come sooner; batches of 0.4 of the target.

        A record may wait for one batch and be in the next.
        """
        every = int(np.clip(self.lead_s // 2, 1, 15))
        return Looks(every, max(every, 10), 0.4 * self.the_job.latency_target_s)

    @cached_property
    def the_job(self) -> Job:
        """The job, with start-up delays around the lead time."""
        times = tuple(self.lead_s * share for share in SPREAD)
        if self.job is not None:
            own = abs(float(np.median(self.job.startup_s)) - self.lead_s) < 0.01 * self.lead_s
            found = self.job if own else replace(self.job, startup_s=times)
            return replace(found, restart_s=times) if self.restarts and not self.job.restart_s else found
        overhead, batch_s = 0.5, 0.4 * self.latency_target_s
        return Job(
            overhead_s=overhead, per_record_s=self.peak_executors * (1 - min(overhead / batch_s, 0.9)) / self.peak_rps,
            most=2 * self.peak_executors, tasks=TASKS, startup_s=times, cold_s=2.0,
            restart_s=times if self.restarts else (), latency_target_s=self.latency_target_s,
        )  # fmt: skip

    @cached_property
    def contract(self) -> Contract:
        """What policies are built from."""
        job, most = self.the_job, self.the_job.most
        planning = Planning(
            lead_s=self.lead_s, hold_s=HOLD_S, catch_up_s=60.0, batch_s=self.looks.batch_s, scale_down_delay_s=300.0,
            cooldown_s=0.0, max_step_up=most, max_step_down=most, overhead_s=job.overhead_s,
            per_record_s=job.per_record_s, scaling=job.scaling, static_executors=min(self.peak_executors, most),
        )  # fmt: skip
        bounds = Executors(min=job.least, max=most, cores=job.cores)
        return Contract(job="backtest", latency_target_s=job.latency_target_s, executors=bounds, planning=planning)

    def factor(self, series: Series) -> float:
        """By which the trace's values become records/s."""
        if self.as_is:
            return 1.0
        job = self.the_job
        capacity = Capacity(
            speeds(job.most, job.cores, job.tasks, job.scaling)[None], np.array([job.overhead_s]),
            np.array([job.per_record_s]), self.looks.batch_s,
        )  # fmt: skip
        high = float(np.quantile(filled(series.values), PEAK_QUANTILE))
        if high <= 0:
            raise TwinError(f"the trace's {PEAK_QUANTILE:.1%} quantile is {high:g}: it cannot be scaled to a job")
        return float(capacity.rps(np.array([float(self.peak_executors)]))[0]) / high


@dataclass(frozen=True, eq=False)
class Ground:
    """A part of a trace.

    Attributes:
        name: of the trace.
        terms: of the contest.
        begins_s: epoch seconds of its first second.
        rate: (T,) records/s at every second, and (A,) `after` it as far as the trace goes.
        arrived: (S, T + 1) records before each second, a row per seed.
        past: the trace before it, records/s.
        told: what forecasters said, records/s.
        peaks: how its past says that peaks are forecast, by forecaster; those with too short a past are not there.
    """

    name: str
    terms: Terms
    begins_s: float
    rate: Floats
    after: Floats
    arrived: Floats
    past: Series
    told: dict[str, Told] = field(default_factory=dict)
    peaks: dict[str, Peaks] = field(default_factory=dict)

    @property
    def seeds(self) -> int:
        """S."""
        return len(self.arrived)

    @property
    def seconds(self) -> int:
        """T."""
        return len(self.rate)

    @cached_property
    def looks_s(self) -> Integers:
        """(D,) seconds of the decisions."""
        return np.arange(0, self.seconds, self.terms.looks.every_s)

    @cached_property
    def rate_now(self) -> Floats:
        """(S, D) records/s of the last seconds, as `run.view` shows them."""
        now = self.looks_s
        start = np.maximum(now - self.terms.looks.smooth_s, 0)
        seen: Floats = (self.arrived[:, np.maximum(now, 1)] - self.arrived[:, start]) / np.maximum(now - start, 1)
        return seen


def parts(name: str, series: Series, terms: Terms) -> tuple[range, range]:
    """Steps of the series in which hyper-parameters are chosen, and those in which policies are judged.

    The latter are the newest fifth, at most `test_days`; the former as many before it, at most `tune_days`.

    Raises:
        TwinError: the trace is too short for the lead time, a rate in these parts is missing or negative.
    """
    day, step = DAY_S / series.step_s, series.step_s
    if step < 1 or step % 1:
        raise TwinError(f"{name}: steps of {step:g} s; whole seconds are expected. Choose another --step.")
    steps = len(series)
    test = max(min(int(TEST_SHARE * steps), round(terms.test_days * day)), 0)
    tune = min(test, max(1, round(terms.tune_days * day)))
    reach = terms.lead_s + HOLD_S
    if test * step <= reach:
        needed = math.ceil((reach / step + 1) / TEST_SHARE)
        raise TwinError(
            f"{name}: {steps} steps of {step:g} s, of which the newest fifth, {test * step:g} s, is the test: no "
            f"longer than the horizon of {reach:g} s (lead time and {HOLD_S:g} s). Take {needed} steps or more, or a "
            "shorter lead time."
        )
    _check(name, series, steps - test - tune)
    return range(steps - test - tune, steps - test), range(steps - test, steps)


def _check(name: str, series: Series, first: int) -> None:
    """Every rate from a step on is known, but for short gaps, and none is negative.

    Raises:
        TwinError: names the step and the value.
    """
    values = series.values
    if (values < 0).any():
        at = int(np.argmax(values < 0))
        raise TwinError(f"{name}: step {at} is {values[at]:g}; a rate is at least 0. Correct it, or leave the row out.")
    missing = np.isnan(values[first:])
    edges = np.flatnonzero(np.diff(np.concatenate([[0], missing.astype(np.int8), [0]])))
    gaps = edges[1::2] - edges[::2]
    if len(gaps) and gaps.max() > GAP_STEPS:
        at = first + int(edges[::2][np.argmax(gaps)])
        raise TwinError(
            f"{name}: from step {at} on {gaps.max()} rates are missing, in the part that is judged; at most "
            f"{GAP_STEPS} can be filled. Take a longer --step, or cut the trace."
        )


def ground(
    name: str, series: Series, steps: range, terms: Terms, seeds: range, said: dict[str, Told] | None = None
) -> Ground:
    """Those steps of a series as a ground; `said` is in the series' own unit.

    Raises:
        TwinError: negative rates.
    """
    factor, step = terms.factor(series), int(series.step_s)
    values = filled(series.values) * factor
    more = math.ceil((terms.lead_s + HOLD_S) / step) + 1
    low, high = max(steps.start - 1, 0), min(steps.stop + more, len(values))
    every = rates(values[low:high], step)[(steps.start - low) * step :]
    rate, after = every[: len(steps) * step], every[len(steps) * step :]
    arrived = np.stack([drawn(rate, seed, terms.dispersion) for seed in seeds])
    past = Series(series.start, series.step_s, series.values[: steps.start] * factor)
    told = {forecaster: one.scaled(factor) for forecaster, one in (said or {}).items()}
    before = rates(values[: steps.start], step) if told and steps.start > 1 else np.zeros(0)
    ends, smooth_s = offsets(terms.lead_s, HOLD_S), terms.looks.smooth_s
    learnt = {of: schooled(one, before, series.start, ends, smooth_s, seeds.start) for of, one in told.items()}
    peaks = {of: one for of, one in learnt.items() if one is not None}
    begins = series.start + steps.start * series.step_s
    return Ground(name, terms, begins, rate, after, arrived, past, told, peaks)


def told_from(series: Series, tune: range) -> int:
    """The step from which forecasters must be heard, so that the past can teach peaks."""
    return max(tune.start - round(SCHOOL_DAYS * DAY_S / series.step_s), tune.start // 3)
