"""Recorded loads with real forecasts, so that an agent is trained on the forecasts it will receive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.dqn.environment.synthetic_loads import RecordedLoad
from models.forecast.core.series import Series
from models.policy.core.capacity import Floats, Integers
from models.policy.received.peaks import TRENDS_S, Moments, Peaks
from models.twin.experiment.foresight import IssuedForecasts, issue_forecasts, steps_per_forecast_step
from models.twin.experiment.peak_training import LEAST_S, learn_peaks, recent_rates, unknown_seconds
from models.twin.sim.arrivals import fill_gaps, rates_per_second, running_totals
from models.twin.sim.given import Looks

HISTORY_SHARE = 0.2
"""Share of a load, its oldest part, that is history for the forecaster and gets no forecasts."""
LEARNED_FROM = 0.4
"""Share of what follows, its oldest part, from which peaks are learned; pieces are drawn from the rest."""
BEFORE_S = max(TRENDS_S) + 60
"""Seconds before a piece that a forecast looks back on."""
MOMENTS = 4000
UNIT_RPS = 3000.0
"""What the 99.9 % quantile of a load becomes here."""


@dataclass(frozen=True, eq=False)
class Recorded(RecordedLoad):
    """A recorded load with real forecasts of it.

    Attributes:
        forecasts: forecasts from some step on, scaled so that the 99.9 % quantile of `values` is 3000 records/s.
        begins_s: epoch seconds of the first value.
        span: steps [first, last) from which pieces are drawn; None: from `split` to the end.
        missing: (T,) whether a value fills a gap, so that no peaks are learned there; None: none does.
    """

    forecasts: IssuedForecasts
    begins_s: float
    span: tuple[int, int] | None = None
    missing: NDArray[np.bool_] | None = None
    _peaks: dict[tuple[float, float, int], tuple[Peaks, ...] | None] = field(default_factory=dict)

    @cached_property
    def rps(self) -> Floats:
        """(T,) `values` scaled so that their 99.9 % quantile is 3000 records/s."""
        return self.values * _factor(self.values)

    @cached_property
    def split(self) -> int:
        """Index of the step up to which peaks are learned."""
        first = round((self.forecasts.begins_s - self.begins_s) / self.step_s)
        return first + int(LEARNED_FROM * (len(self.values) - first))

    @property
    def ends(self) -> tuple[int, int]:
        """Steps [first, last) from which pieces are drawn."""
        return self.span or (self.split, len(self.values))

    @property
    def playable(self) -> Floats:
        """Values to draw pieces from without forecasts; those from which peaks are learned belong to the older part."""
        first, last = self.ends
        return self.values[first if first > self.split else 0 : last]

    def parted(self, share: float) -> tuple[RecordedLoad, RecordedLoad]:
        """Split the steps after `split` in time, into an older part to learn from and the newest `share` of them.

        Both parts forecast peaks in the same way, learned from what lies before `split`.
        """
        first, last = self.ends
        cut = last - max(round(share * (last - first)), 2)
        return replace(self, span=(first, cut)), replace(self, span=(cut, last))

    def peaks(self, lead_s: float, hold_s: float, smooth_s: int) -> tuple[Peaks, ...] | None:
        """Return how the load's peaks are forecast: learned from what lies before `split` at the first call, then kept.

        Args:
            lead_s: seconds from the request of an executor to its first task.
            hold_s: seconds after it for which the executors must do.
            smooth_s: whole seconds over which the arrival rate is averaged.

        Returns:
            The forecasts of the highest load within the lead time and within the hold, records/s on the scale of `rps`;
            None where less than half a day of the past can be used.
        """
        key = lead_s, hold_s, smooth_s
        if key not in self._peaks:
            past = rates_per_second(self.rps[: self.split], self.step_s)
            gone = None if self.missing is None else unknown_seconds(self.missing[: self.split], self.step_s, len(past))
            how = past, self.begins_s, (lead_s, hold_s), smooth_s, 0, MOMENTS, gone
            self._peaks[key] = learn_peaks(self.forecasts, *how)
        return self._peaks[key]


class Piece(NamedTuple):
    """A piece of a recorded load, for one run.

    Attributes:
        expected: (S + 1,) expected records before each second.
        arrived: (S + 1,) drawn records before each second.
        heard: (D, 2, levels) records/s that the peaks of both `peaks.stretch_ends` stay under.
    """

    expected: Floats
    arrived: Floats
    heard: Floats


def with_forecasts(series: Series, reach_s: float, speed: float = 1.0) -> RecordedLoad:
    """Turn a series into a training load with the forecasts of the blend, or without any where it is too short.

    Forecasts begin after the first fifth of the series; 40 % of the rest, from which peaks are learned, must last a
    day.

    Args:
        series: records/s; gaps (NaN) are interpolated linearly in the load, and passed as gaps to the forecaster.
        reach_s: seconds ahead, of the job's, that forecasts must reach: lead time and hold.
        speed: seconds of the series that pass in one of the job's, above 0.

    Returns:
        A `Recorded`, or a plain `RecordedLoad` if the series is too short or 0 throughout.

    Raises:
        TwinError: a negative or infinite rate, or fewer than two known steps.
        SeriesError: forecast steps longer than a day.
        ZeroDivisionError: `speed` is 0.
    """
    values, first, step_s = fill_gaps(series.values), int(HISTORY_SHARE * len(series)), series.step_s / speed
    if (len(series) - first) * step_s * LEARNED_FROM < 2 * LEAST_S or values.max() <= 0:
        return RecordedLoad(values, step_s)
    forecasts = issue_forecasts("blend", series, first, steps_per_forecast_step(step_s, reach_s)).scaled(
        _factor(values), speed
    )
    return Recorded(values, step_s, forecasts, series.start / speed, missing=np.isnan(series.values))


def with_peaks(known: Sequence[Recorded], lead_s: float, looks: Looks) -> list[tuple[Recorded, tuple[Peaks, ...]]]:
    """Select the loads whose peaks can be forecast at this lead time, and learn that where it was not yet.

    Args:
        known: recorded loads.
        lead_s: seconds from the request of an executor to its first task.
        looks: whose doubled interval is the hold, and whose averaging peaks are learned with.

    Returns:
        Each with its forecasts of peaks (`Recorded.peaks`); empty where every past is too short.
    """
    times = lead_s, 2.0 * looks.every_s, looks.smooth_s
    return [(one, peaks) for one in known if (peaks := one.peaks(*times)) is not None]


def draw_piece(
    heard: Sequence[tuple[Recorded, tuple[Peaks, ...]]], seconds: int, moments: Integers, peak_rps: float,
    looks: Looks, chance: np.random.Generator,
) -> Piece:  # fmt: skip
    """Draw a piece of a recorded load, newer than what peaks were learned from, with arrivals and forecasts of peaks.

    A load that ends too early goes on at its last rate.

    Args:
        heard: of `with_peaks`, at least one.
        seconds: S, length of the piece.
        moments: (D,) seconds of the decisions, 0 to S.
        peak_rps: records/s that the load's 99.9 % quantile becomes, above 0.
        looks: its `smooth_s` are the seconds over which arrivals are averaged.
        chance: draws everything.

    Raises:
        ValueError: no loads.
    """
    one, peaks = heard[int(chance.integers(len(heard)))]
    span = int(np.ceil((BEFORE_S + seconds) / one.step_s)) + 2
    begin, end = one.ends
    last = max(end - span, begin)
    first = int(chance.integers(begin, last + 1))
    rate = rates_per_second(one.rps[first : min(first + span, end)], one.step_s)[: BEFORE_S + seconds]
    rate = np.pad(rate, (0, BEFORE_S + seconds - len(rate)), mode="edge") * (peak_rps / UNIT_RPS)
    arrived = running_totals(chance.poisson(rate))
    now, trends = recent_rates(arrived * (UNIT_RPS / peak_rps), moments + BEFORE_S, looks.smooth_s)
    epoch_s = one.begins_s + first * one.step_s + BEFORE_S + moments.astype(float)
    known = Moments(one.forecasts.newest_at(epoch_s), now, trends)
    said = np.stack([peak.quantiles_rps(known) for peak in peaks], axis=1) * (peak_rps / UNIT_RPS)
    return Piece(running_totals(rate[BEFORE_S:]), arrived[BEFORE_S:] - arrived[BEFORE_S], said)


def _factor(values: Floats) -> float:
    return UNIT_RPS / max(float(np.quantile(values, 0.999)), 1e-9)
