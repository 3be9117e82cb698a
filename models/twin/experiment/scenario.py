"""The scenario that policies are compared on: a part of a trace, scaled to a job, at one lead time."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from configs.bounds import DAY_S
from models.forecast.core.series import Series
from models.policy.core.capacity import Floats, Integers
from models.policy.received.peaks import TRENDS_S, Moments, Peaks
from models.twin.experiment.foresight import IssuedForecasts, unless_refuted
from models.twin.experiment.peak_training import DAYS, learn_peaks, recent_rates, unknown_seconds
from models.twin.experiment.setup import Setup
from models.twin.sim.arrivals import draw_arrivals, fill_gaps, rates_per_second
from models.twin.sim.job import ShortLoadError, TwinError

TEST_SHARE = 0.2  # newest share of a trace, on which policies are compared
GAP_STEPS = 3
"""Longest gap, in steps, that may be interpolated in the parts that policies run on."""


@dataclass(frozen=True, eq=False)
class Scenario:
    """A part of a trace, scaled to a job, with what forecasters say of it. Times are seconds of the job's clock.

    Attributes:
        name: of the trace.
        setup: of the comparison.
        begins_s: epoch seconds, divided by the speed, of its first second.
        warm_s: seconds at its beginning that do not count, because executors asked for in it come later.
        rate: (T,) expected records/s at every second.
        after: (A,) the same after the end, as far as needed and as the trace goes.
        arrived: (S, T + 1) records before each second, a row per seed.
        past: the trace before it, records/s.
        newest: its newest two weeks, from which peaks are learned.
        issued: forecasts by forecaster, records/s.
        peaks: how peaks are forecast, learned from the past, by forecaster; without those whose past is too short.
    """

    name: str
    setup: Setup
    begins_s: float
    warm_s: int
    rate: Floats
    after: Floats
    arrived: Floats
    past: Series
    newest: Series
    issued: dict[str, IssuedForecasts] = field(default_factory=dict)
    peaks: dict[str, tuple[Peaks, ...]] = field(default_factory=dict)

    def learn_peaks(self, forecaster: str, lead_s: float) -> tuple[Peaks, ...] | None:
        """Learn from the past how peaks are forecast for another lead time; None where it is too short.

        Raises:
            KeyError: the scenario lacks that forecaster's forecasts.
        """
        (found,) = _learned({forecaster: self.issued[forecaster]}, self.newest, self.setup, lead_s, 0).values()
        return found

    @property
    def seeds(self) -> int:
        """S, the draws of the arrivals."""
        return len(self.arrived)

    @property
    def seconds(self) -> int:
        """T, the length with the warm-up."""
        return len(self.rate)

    @cached_property
    def produced_share(self) -> float:
        """Share of the seconds that count in which anything is produced: what a promise's budget is of."""
        return float((np.diff(self.arrived[:, self.warm_s :], axis=1) > 0).mean())

    @cached_property
    def looks_s(self) -> Integers:
        """(D,) seconds of the decisions, since the beginning."""
        return np.arange(0, self.seconds, self.setup.looks.every_s)

    @cached_property
    def looked_back(self) -> tuple[Floats, Floats]:
        """(S, D) records/s observed at every decision, and (S, D, 5) how much more than `TRENDS_S` seconds before."""
        both = [recent_rates(arrived, self.looks_s, self.setup.looks.smooth_s) for arrived in self.arrived]
        return np.stack([rate for rate, _ in both]), np.stack([trends for _, trends in both])

    @cached_property
    def forecast_peaks(self) -> dict[str, NDArray[np.float32]]:
        """By forecaster, (S, D, 2, 10) records/s that the peaks in lead and hold stay under; NaN for none.

        The levels are `peaks.LEVELS`.
        """
        moments = self.begins_s + self.looks_s.astype(np.float64)
        found = {}
        for of, peaks in self.peaks.items():
            curves = self.issued[of].newest_at(moments)
            every = [Moments(curves, now, trends) for now, trends in zip(*self.looked_back, strict=True)]
            rps = np.array([[one.quantiles_rps(each) for one in peaks] for each in every], np.float32).swapaxes(1, 2)
            known = unless_refuted(rps, self.issued[of], moments, self.looked_back[0])
            found[of] = known.astype(np.float32, copy=False)
        return found


def split_trace(name: str, series: Series, setup: Setup) -> tuple[range, range]:
    """Split a trace in time, into steps to tune hyper-parameters on and newer steps to compare policies on.

    The test part is the newest fifth, at most `test_days` long; the tuning part lies before it, as long, at most
    `tune_days`.

    Args:
        name: of the trace, for messages.
        series: the trace.
        setup: of the comparison; of it days, speed, lead time and hold are read.

    Returns:
        (tuning steps, test steps), indices into the series.

    Raises:
        ShortLoadError: a trace too short for lead time and hold, or more than 3 rates in a row missing in these parts.
        TwinError: steps shorter than a second of the job's clock, or a negative rate anywhere.
    """
    step = setup.step_s(series)
    if step < 1:
        raise TwinError(f"{name}: steps of {step:g} s of the job's clock; a second or more is expected. Take a --step.")
    day = DAY_S / step
    steps = len(series)
    test = max(min(int(TEST_SHARE * steps), round(setup.test_days * day)), 0)
    tune = min(test, max(1, round(setup.tune_days * day)))
    reach = sum(setup.planned_s)
    if test * step <= reach:
        needed = math.ceil((reach / step + 1) / TEST_SHARE)
        raise ShortLoadError(
            f"{name}: {steps} steps of {step:g} s, of which the newest fifth, {test * step:g} s, is the test: no "
            f"longer than the horizon of {reach:g} s (lead time and {setup.hold_s:g} s). Take {needed} steps or more, "
            "or a shorter lead time."
        )
    _check(name, series, steps - test - tune)
    return range(steps - test - tune, steps - test), range(steps - test, steps)


def _check(name: str, series: Series, first: int) -> None:
    """Every rate from a step on is known, but for short gaps, and none is negative.

    Raises:
        TwinError: names the step and the value; ShortLoadError of a gap.
    """
    values = series.values
    if (values < 0).any():
        at = int(np.argmax(values < 0))
        raise TwinError(f"{name}: step {at} is {values[at]:g}; a rate is at least 0. Correct it, or leave the row out.")
    edges = np.flatnonzero(np.diff(np.isnan(values[first:]).astype(np.int8), prepend=0, append=0))
    gaps = edges[1::2] - edges[::2]
    if gaps.max(initial=0) > GAP_STEPS:
        at = first + int(edges[::2][np.argmax(gaps)])
        raise ShortLoadError(
            f"{name}: from step {at} on {gaps.max()} rates are missing, in the part that is judged; at most "
            f"{GAP_STEPS} can be filled. Take a longer --step, or cut the trace."
        )


def build_scenario(
    name: str, series: Series, steps: range, setup: Setup, seeds: range, said: dict[str, IssuedForecasts] | None = None
) -> Scenario:
    """Build the scenario of some steps of a trace: scale it to the job, draw its arrivals, learn peaks from its past.

    Args:
        name: of the trace.
        series: the whole trace; NaN gaps are interpolated linearly first.
        steps: of the trace to run on; before them come up to `setup.warm_s` seconds that do not count.
        setup: of the comparison.
        seeds: of the Poisson arrivals, one row each; at least one.
        said: forecasts by forecaster, in the unit of the series.

    Returns:
        The scenario on the job's clock: `rate` (T,) per second and `arrived` (seeds, T + 1), records/s and records.

    Raises:
        TwinError: a negative or infinite rate, fewer than two known steps, or a trace that is 0 at its 99.9 % quantile.
        ValueError: no seeds.
    """
    factor, step, start = setup.scale_factor(series), setup.step_s(series), series.start / setup.speed
    values = fill_gaps(series.values) * factor
    more = math.ceil(sum(setup.planned_s) / step) + 1
    warm_s = min(setup.warm_s, int(steps.start * step // setup.looks.every_s) * setup.looks.every_s)
    low, high = max(steps.start - 1 - math.ceil(warm_s / step), 0), min(steps.stop + more, len(values))
    every = rates_per_second(values[low:high], step)[round((steps.start - low) * step) - warm_s :]
    seconds = round(len(steps) * step) + warm_s
    rate, after = every[:seconds], every[seconds:]
    arrived = np.stack([draw_arrivals(rate, seed) for seed in seeds])
    past = Series(start, step, series.values[: steps.start] * factor)
    issued = {forecaster: one.scaled(factor, setup.speed) for forecaster, one in (said or {}).items()}
    since = max(steps.start - math.ceil((DAYS * DAY_S + TRENDS_S[-1] + setup.looks.smooth_s) / step), 0)
    newest = Series(start + since * step, step, past.values[since:])
    known = _learned(issued, newest, setup, setup.planned_s[0], seeds.start)
    peaks = {of: one for of, one in known.items() if one is not None}
    return Scenario(name, setup, past.end - warm_s, warm_s, rate, after, arrived, past, newest, issued, peaks)


def _learned(
    issued: dict[str, IssuedForecasts], newest: Series, setup: Setup, lead_s: float, seed: int
) -> dict[str, tuple[Peaks, ...] | None]:
    missing = np.isnan(newest.values)
    before = rates_per_second(newest.values, newest.step_s) if issued and (~missing).sum() > 1 else np.zeros(0)
    unknown = unknown_seconds(missing, newest.step_s, len(before))
    how = before, newest.start, (lead_s, setup.planned_s[1]), setup.looks.smooth_s, seed
    return {of: learn_peaks(one, *how, unknown=unknown) for of, one in issued.items()}


def first_forecast_step(series: Series, tune: range, setup: Setup) -> int:
    """Return the first step that needs a forecast so that peaks can be learned before the tuning part.

    That is 14 days before it, but not in the first third of the steps before it, which are history for the forecaster.
    """
    return max(tune.start - round(DAYS * DAY_S / setup.step_s(series)), tune.start // 3)
