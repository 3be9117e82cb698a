"""What is learned of a long past takes the memory of the days that it is learned from, and is the same."""

import tracemalloc

import numpy as np

from models.twin.experiment import peak_training
from models.twin.experiment.foresight import LEVELS, IssuedForecasts
from models.twin.experiment.peak_training import DAYS, learn_peaks, recent_rates
from models.twin.sim import arrivals
from models.twin.sim.arrivals import rates_per_second, running_totals

STEP_S, DAY = 300.0, 288
LONG = 3 * int(DAYS)


def past(days):
    """Forecasts and records/s of every second."""
    chance, steps = np.random.default_rng(1), np.arange(days * DAY)
    values = 200 + 100 * np.sin(2 * np.pi * steps / DAY) + chance.uniform(0, 40, len(steps))
    quantiles = values[:, None, None] + np.sort(chance.normal(0, 20, (len(steps), 12, len(LEVELS))), axis=2)
    return IssuedForecasts(quantiles, values, STEP_S, 0.0), rates_per_second(values, STEP_S)


def learned(said, rate):
    return [one.scores.tolist() for one in learn_peaks(said, rate, 0.0, (30.0, 60.0), 3, 0, 500)]


def test_months_take_no_more_memory_than_the_days_that_are_learned_from():
    peaks = []
    for days in (int(DAYS) + 1, LONG):
        said, rate = past(days)
        tracemalloc.start()
        learned(said, rate)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0]


def test_gone_through_part_by_part_it_is_what_it_is_at_once(monkeypatch):
    said, rate = past(LONG)
    found, whole = learned(said, rate), rate.copy()
    for module in (arrivals, peak_training):
        monkeypatch.setattr(module, "PART", 10**9)
    assert (past(LONG)[1] == whole).all() and learned(said, rate) == found
    chance = np.random.default_rng(0)
    noisy = np.maximum(rate + chance.standard_normal(len(rate)) * np.sqrt(rate), 0.0)
    looked = []
    monkeypatch.setattr(peak_training, "recent_rates", lambda *given: looked.append(recent_rates(*given)) or looked[-1])
    assert learned(said, rate) == found
    moments = np.arange(len(rate) - DAYS * 86_400, len(rate) - 91, (DAYS * 86_400 - 91) / 500).astype(np.int64)
    (now, trends), (at_once, compared) = looked[0], recent_rates(running_totals(noisy), moments, 3)
    assert (now == at_once).all() and (trends == compared).all()
