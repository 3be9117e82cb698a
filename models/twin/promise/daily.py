"""What a load's runs receive of what is ahead by the lead time that each has learned; trained anew every day."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from configs.bounds import DAY_S
from configs.contract import Planning
from models.policy.core.capacity import Floats, Integers
from models.policy.core.view import LoadAhead
from models.policy.received.nowcast import correct_by_rate, forecast_offsets
from models.policy.received.outlook import MEMORY_STEPS
from models.policy.received.peak_calibrator import PeakCalibrator
from models.policy.received.peaks import LEVELS as PEAK_LEVELS
from models.policy.received.peaks import Moments
from models.twin.experiment.foresight import unless_refuted
from models.twin.experiment.scenario import Scenario

FORECASTER = "blend"
ALIKE = math.log(1.1)
"""Step of the lead times, in their logarithm, for which peaks are learned: runs whose own are near share them."""


class Received(NamedTuple):
    """The forecasts of some runs, of the same shape.

    Attributes:
        runs: (n,) their indices.
        offsets_s, levels: as in `LoadAhead`, the offsets (n, K).
        each: what each of them receives from a look on until the day's last.
    """

    runs: Integers
    offsets_s: Floats
    levels: tuple[float, ...]
    each: Sequence[FromLook]


class FromLook(NamedTuple):
    """What is received from a look on: (looks from there to the day's last, K, Q) records/s."""

    number: int
    rps: Any


class DailyForecasts:
    """What runs receive at every look (decision): quantiles of the peak, as a live job does.

    How peaks are forecast is learned at the beginning of every day, from the scenario's past, for the lead time that
    each run has learned by then. While its lead time is further from that than a calibrator allows, the run receives
    the forecaster's own quantiles.

    Attributes:
        groups: runs that receive forecasts of the same shape; replaced, never changed in place.
    """

    def __init__(self, scenario: Scenario, draws: Integers, planning: Planning) -> None:
        """Prepare them for (runs,) draws of the arrivals; of `planning` the hold is read."""
        self._scenario, self._draws, self._planning = scenario, draws, planning
        self._every = max(round(DAY_S / scenario.setup.looks.every_s), 1)
        self._known: dict[int, PeakCalibrator | None] = {}
        self._first = 0
        self._leads_s: list[float] = []
        self._by: list[PeakCalibrator | None] = []
        self._peaked: list[bool] = []
        self._said: dict[tuple[int, float, bool], FromLook] = {}
        self.groups: list[Received] = []

    def follow(self, number: int, leads_s: Sequence[float]) -> None:
        """Follow (runs,) lead times, seconds, at a look: to be called at each, from the first of the scenario on.

        After the scenario's last look nothing changes any more.
        """
        if number >= len(self._scenario.looks_s):
            return
        begins = number % self._every == 0
        if not begins and list(leads_s) == self._leads_s:
            return
        if begins:
            self._first, self._said = number, {}
            self._by = [self._calibrator(lead_s) for lead_s in leads_s]
        before, self._leads_s = (self._leads_s, self._peaked), list(leads_s)
        self._peaked = [self._fits(run) for run in range(len(leads_s))]
        moved = any(a != b for a, b, own in zip(before[0], leads_s, self._peaked, strict=False) if not own)
        if begins or moved or before[1] != self._peaked:
            kinds = [(run, self._kind(run)) for run in range(len(leads_s))]
            self._said = {
                kind: self._said[kind] if kind in self._said else self._receive(run, number) for run, kind in kinds
            }
            peaked = np.array(self._peaked)
            self.groups = [self._together(np.flatnonzero(of)) for of in (peaked, ~peaked) if of.any()]

    def at(self, group: Received, number: int) -> LoadAhead:
        """Return what a group receives at a look of this day; after the scenario's last look, what it had then."""
        number = min(number, len(self._scenario.looks_s) - 1)
        rps = np.stack([rps[number - first] for first, rps in group.each]).astype(float)
        return LoadAhead(group.offsets_s, group.levels, rps)

    def _together(self, runs: Integers) -> Received:
        levels = PEAK_LEVELS if self._peaked[runs[0]] else self._scenario.issued[FORECASTER].levels
        each = [self._said[self._kind(run)] for run in runs]
        return Received(runs, np.stack([self._ends_s(run) for run in runs]), levels, each)

    def _kind(self, run: int) -> tuple[int, float, bool]:
        """Runs of one kind receive the same."""
        by, peaked = self._by[run], self._peaked[run]
        return int(self._draws[run]), by.lead_s if by is not None and peaked else self._leads_s[run], peaked

    def _ends_s(self, run: int) -> Floats:
        by = self._by[run]
        if by is not None and self._peaked[run]:
            return by.ends_s
        return forecast_offsets(self._leads_s[run], self._planning.hold_s)

    def _fits(self, run: int) -> bool:
        by, lead_s = self._by[run], self._leads_s[run]
        return by is not None and by.fits(self._planning.model_copy(update={"lead_s": lead_s}), 1.0)

    def _calibrator(self, lead_s: float) -> PeakCalibrator | None:
        step = round(math.log(lead_s) / ALIKE)
        if step not in self._known:
            lead_s, hold_s = math.exp(step * ALIKE), self._planning.hold_s
            peaks = self._scenario.learn_peaks(FORECASTER, lead_s)
            self._known[step] = None if peaks is None else PeakCalibrator(peaks[0], peaks[1], lead_s, hold_s, 1.0)
        return self._known[step]

    def _receive(self, run: int, number: int) -> FromLook:
        """From a look on; NaN for none."""
        by, scenario, draw = self._by[run], self._scenario, int(self._draws[run])
        looks = slice(number, self._first + self._every)
        issued, moments = scenario.issued[FORECASTER], scenario.begins_s + scenario.looks_s[looks].astype(np.float64)
        curves = issued.newest_at(moments)
        rate, trends = (of[draw, looks] for of in scenario.looked_back)
        if by is not None and self._peaked[run]:
            rps = by.quantiles_rps(Moments(curves, rate, trends))
        else:
            rps = correct_by_rate(curves, self._ends_s(run), rate, MEMORY_STEPS * curves.step_s)
        return FromLook(number, unless_refuted(rps, issued, moments, rate).astype(np.float32))
