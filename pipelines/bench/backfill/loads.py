"""The live loads of the bench, named beforehand: how many records come when, with which keys, into which partitions."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from models.forecast.core.series import Series
from models.twin.experiment.foresight import HORIZON, LEVELS, IssuedForecasts, issue_forecasts
from models.workload.keys import HotEpisode, KeyShape, draw_keys
from pipelines.traces.shipped import find_shipped

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

PARTITIONS, KEYS = 8, 48
STEADY, TAXI, BURSTS, CORRECTED = "steady", "taxi", "bursts", "corrected"
STEP, NOISY_STEP, HOT, TOLD_LOW, TOLD_HIGH = "step", "noisy step", "hot keys", "told low", "told high"
LOADS = (STEADY, TAXI, BURSTS, CORRECTED, STEP, NOISY_STEP, HOT, TOLD_LOW, TOLD_HIGH)
STEADY_RPS, PEAK_RPS, BASE_RPS = 80.0, 110.0, 65.0
"""Records/s of the steady load, at the taxi day's highest step, and between bursts or with hot keys."""
STEPS_RPS = (50.0, 110.0, 70.0)
"""Records/s of the thirds of a session with steps."""
BURST_AT_S, BURST_EVERY_S, BURST_S, BURST_FACTOR = 45.0, 75.0, 15.0, 2.0
HOT_SHARE = 0.4
"""Share of the records of the middle third that go to one key, and so to one partition."""
RETRACTED, RETRACTED_AFTER_S, RETRACTED_WITHIN_S = 0.1, 0.7, 2.0
"""Share of the records of the corrected load that are taken back, and after how long: on average, and at most."""
TOLD = {TOLD_LOW: 0.7, TOLD_HIGH: 1.3}
"""By what the capacity that the contract tells is off."""
_EVEN = (STEP, TOLD_LOW, TOLD_HIGH)  # a step without noise
_DAY_S, _DAY_FROM = 86_400.0, 1_413_950_400.0  # 2014-10-22 04:00, as the main job's
_GRID_S = 0.05


class LiveRecords(NamedTuple):
    """Records of a load, in order, arrays of (N,): seconds since its begin, key, partition.

    `takes_back` is the number of the record that one retracts, -1 for one that is new.
    """

    at_s: Floats
    key: Integers
    partition: Integers
    takes_back: Integers


def live_rates(load: str, times_s: Floats, day_s: float) -> Floats:
    """Return the expected (T,) records/s at (T,) seconds since a load's begin, retractions not counted.

    Args:
        load: one of LOADS.
        times_s: at least 0.
        day_s: wall seconds of a day of the trace, of three steps, or of the time around hot keys.

    Raises:
        KeyError: no such load.
    """
    if load == TAXI:
        series = _taxi()
        middles = series.start + series.step_s * (np.arange(len(series)) + 0.5)
        return np.interp(_DAY_FROM + times_s * _DAY_S / day_s, middles, series.values)
    if load == BURSTS:
        burst = (times_s >= BURST_AT_S) & ((times_s - BURST_AT_S) % BURST_EVERY_S < BURST_S)
        return BASE_RPS * np.where(burst, BURST_FACTOR, 1.0)
    if load in (STEP, NOISY_STEP, TOLD_LOW, TOLD_HIGH):
        third = np.minimum(times_s * 3 / day_s, 2).astype(np.int64)
        return np.array(STEPS_RPS)[third]
    return np.full(len(times_s), {STEADY: STEADY_RPS, CORRECTED: STEADY_RPS, HOT: BASE_RPS}[load])


def mean_rps(load: str, day_s: float) -> float:
    """Return the mean rate of a load's day, records/s."""
    return float(live_rates(load, np.arange(0.0, day_s, 0.5), day_s).mean())


def draw_arrivals(load: str, seconds: float, day_s: float, seed: int) -> LiveRecords:
    """Draw the records of a load: Poisson around its rate, evenly where it is a step without noise.

    Args:
        load: one of LOADS.
        seconds: how long it lasts.
        day_s: as `live_rates`.
        seed: equal ones give equal records.
    """
    grid = np.linspace(0.0, seconds, int(np.ceil(seconds / _GRID_S)) + 1)
    parts = live_rates(load, (grid[:-1] + grid[1:]) / 2, day_s) * np.diff(grid)
    total = np.concatenate([[0.0], np.cumsum(parts)])
    random = np.random.default_rng(seed)
    if load in _EVEN:
        due = np.arange(int(total[-1] + 1e-6)) + 0.5
    else:
        many = int(total[-1] + 8 * np.sqrt(total[-1]) + 16)
        due = np.cumsum(random.exponential(size=many))
    at_s = np.interp(due[due < total[-1]], total, grid)
    hot = (HotEpisode(day_s / 3, day_s / 3, HOT_SHARE),) if load == HOT else ()
    keys = draw_keys(KeyShape(KEYS, 0.5, hot=hot), at_s, random, random, random)
    by_key = load == HOT  # else records are spread evenly, and keys meet only where they are grouped
    partitions = (keys if by_key else np.arange(len(at_s))) % PARTITIONS
    records = LiveRecords(at_s, keys, partitions, np.full(len(at_s), -1))
    return _with_retractions(records, seconds, random) if load == CORRECTED else records


def _with_retractions(records: LiveRecords, seconds: float, random: np.random.Generator) -> LiveRecords:
    """Some of the records once more, a little later, as retractions: of the same key and partition."""
    taken = np.flatnonzero(random.random(len(records.at_s)) < RETRACTED)
    after_s = np.minimum(random.exponential(RETRACTED_AFTER_S, len(taken)), RETRACTED_WITHIN_S)
    soon = records.at_s[taken] + after_s < seconds
    taken, after_s = taken[soon], after_s[soon]
    at_s = np.concatenate([records.at_s, records.at_s[taken] + after_s])
    order = np.argsort(at_s, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    takes_back = np.concatenate([records.takes_back, place[taken]])[order]
    whose = np.concatenate([np.arange(len(records.at_s)), taken])[order]
    return LiveRecords(at_s[order], records.key[whose], records.partition[whose], takes_back)


def issued_forecasts(load: str, day_s: float, seconds: float, reach_s: float = 0.0) -> IssuedForecasts | None:
    """Return what is issued while a load lasts, in wall seconds from its begin; None where nobody forecasts it.

    Of the taxi day the blend's, learned from its past. Of another load nothing is forecast, but for a deadline it is
    told that its first rate goes on: a Poisson number's mean over a step.

    Args:
        load: of LOADS.
        day_s: wall seconds of a day.
        seconds: how long the load lasts.
        reach_s: wall seconds that each forecast is to reach at least; its steps are as long as that takes. 0: there is
            no deadline.
    """
    if load != TAXI:
        return _unchanged(load, day_s, seconds, reach_s) if reach_s else None
    series, speed = _taxi(), _DAY_S / day_s
    first = round((_DAY_FROM - series.start) / series.step_s)
    many = max(1, int(np.ceil(reach_s * speed / (HORIZON * series.step_s))))
    end = first + many * int(np.ceil(seconds * speed / (many * series.step_s)) + 1)
    issued = issue_forecasts("blend", Series(series.start, series.step_s, series.values[:end]), first, many)
    return issued._replace(step_s=issued.step_s / speed, begins_s=0.0)


def _unchanged(load: str, day_s: float, seconds: float, reach_s: float) -> IssuedForecasts:
    rate, step_s = float(live_rates(load, np.zeros(1), day_s)[0]), reach_s / HORIZON
    count = int(np.ceil(seconds / step_s)) + 1
    said = np.maximum(rate + np.sqrt(rate / step_s) * ndtri(np.array(LEVELS)), 0.0)
    return IssuedForecasts(np.tile(said, (count, HORIZON, 1)), np.full(count, rate), step_s, 0.0)


@cache
def _taxi() -> Series:
    """Trips per half hour, scaled so that the day's highest step is PEAK_RPS; in trace seconds."""
    series = find_shipped("nyc_taxi 30min").series()
    first = round((_DAY_FROM - series.start) / series.step_s)
    day = series.values[first : first + round(_DAY_S / series.step_s)]
    return Series(series.start, series.step_s, series.values * (PEAK_RPS / float(np.nanmax(day))))
