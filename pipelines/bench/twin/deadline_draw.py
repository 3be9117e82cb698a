"""What `tidecast bench deadline` draws: loads, and backfills beside them; all by hashes of names, known beforehand."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from typing import Any

import numpy as np

from configs.bounds import DAY_S
from models.backfill.given import ReplayWork
from models.forecast.core.series import SeriesError
from models.policy.core.capacity import Floats
from models.twin.backfill.case import LONGER, PARTS, DrawnBackfill, DrawnJob
from models.twin.experiment.foresight import REACH, IssuedForecasts, issue_forecasts
from models.twin.experiment.setup import PEAK_QUANTILE, SPREAD
from models.twin.sim.arrivals import fill_gaps, rates_per_second, running_totals
from pipelines.backtest.load import NamedLoad, read_load

LOADS = (
    "iot 5min", "taxi 5min", "wiki_en 5min", "google 5min", "alibaba 5min", "nyc_taxi 30min", "twitter_aapl 5min",
    "twitter_goog 5min", "twitter_fb 5min", "elb 5min", "green_taxi 5min", "wiki_en 5min restored",
)  # fmt: skip
WORK, DEADLINE = (0.05, 0.5), (1.2, 4.0)
"""Work as a share of a live day, and deadline in units of the shortest time: bounds."""
PEAKS, SCALINGS, LEADS_S = (8, 20), (1.0, 0.83), (60.0, 180.0)
"""Executors that carry the peak; exponents of capacity (0.83: measured of a mapper); seconds until executors work."""
SLOT_RPS, IDLE, UNSURE_COST = 150.0, 0.125, 0.1
MOST_STEPS, FEWEST_STEPS = 48, 8
NEWEST = 0.5  # share of a trace, its newest, in which backfills begin


def draw_backfill(name: str, number: int) -> tuple[DrawnBackfill, dict[str, Any]]:
    """Draw a backfill beside a load.

    Work is drawn uniform in its logarithm, the deadline uniform; the shortest time is that of all executors from the
    beginning, beside the mean live rate of the day before. A job's executors, their scaling and lead time are drawn
    alike, and whether its live part scales or always holds its peak's executors.

    Args:
        name: of a load, for `read_load`.
        number: of the backfill, which is its seed.

    Returns:
        It, and what it was drawn from: `work` (share of a live day), `ratio` (deadline over the shortest), `peak`,
        `scaling`, `lead_s`, `fixed`, `hours` to its deadline.

    Raises:
        SeriesError, TraceError: the load cannot be read, or is too short.
    """
    seed = int.from_bytes(sha256(f"backfill {number} of {name}".encode()).digest()[:4], "big")
    random = np.random.default_rng(seed)
    share = float(np.exp(random.uniform(*np.log(WORK))))
    ratio = float(random.uniform(*DEADLINE))
    peak, scaling = int(random.choice(PEAKS)), float(random.choice(SCALINGS))
    lead_s, fixed = float(random.choice(LEADS_S)), bool(random.integers(2))
    job = DrawnJob(peak, scaling, np.array(SPREAD) * lead_s, SLOT_RPS, IDLE, fixed)
    trace = _read(name)
    series, total = trace.series, _total(name)
    factor = float(job.fleet.worth[peak]) * SLOT_RPS * (1 - IDLE) / _high(name)
    days = len(series) * series.step_s / DAY_S
    true_cost = float(np.exp(UNSURE_COST * random.standard_normal()))
    for _ in range(100):  # until the trace holds what follows; few draws fail
        begins_s = series.start + DAY_S * days * float(random.uniform(1 - NEWEST, 0.97))
        begins_s = float(np.floor(begins_s / 60.0) * 60.0)
        place = np.array([begins_s - DAY_S, begins_s]) - series.start
        day = float(np.diff(np.interp(place, np.arange(len(total)), total))[0]) * factor
        room = float(job.fleet.worth[job.fleet.most]) * SLOT_RPS * (1 - IDLE) - day / DAY_S
        by_s = max(ratio * share * day / room, FEWEST_STEPS * 60.0)
        steps = int(np.clip(by_s / (2 * lead_s), FEWEST_STEPS, MOST_STEPS))
        step_s = max(float(np.floor(by_s / steps / PARTS)), 1.0) * PARTS
        if begins_s + LONGER * steps * step_s + step_s < series.start + len(total) - 1:
            break
    else:
        raise SeriesError(f"{name}: {days:.1f} days do not hold what follows backfill {number}. Take a longer load")
    issued = _issued(name, _many(series.step_s, LONGER * steps * step_s)).scaled(factor)
    moments = series.start + np.arange(len(total), dtype=float)
    case = DrawnBackfill(
        job, ReplayWork(share * day, 1.0, UNSURE_COST), true_cost, begins_s, step_s, steps, total * factor, moments,
        issued, seed,
    )  # fmt: skip
    facts = {"work": share, "ratio": ratio, "peak": peak, "scaling": scaling, "lead_s": lead_s, "fixed": fixed}
    return case, {**facts, "hours": case.by_s / 3600.0}


def _many(step_s: float, reach_s: float) -> int:
    """Steps of the trace per step of the forecaster: a power of two, so that few forecasters serve all draws."""
    needed, many = reach_s / (REACH * step_s), 1
    while many < needed and 2 * many * step_s <= DAY_S:
        many *= 2
    return many


@cache
def _read(name: str) -> NamedLoad:
    return read_load(name)


@cache
def _high(name: str) -> float:
    return float(np.quantile(fill_gaps(_read(name).series.values), PEAK_QUANTILE))


@cache
def _total(name: str) -> Floats:
    series = _read(name).series
    return running_totals(rates_per_second(series.values, series.step_s))


@cache
def _issued(name: str, many: int) -> IssuedForecasts:
    series = _read(name).series
    return issue_forecasts("blend", series, len(series) // 6, many)
