"""Draw random jobs, loads and forecasts to train on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from models.dqn.agent.actions import violation_cost_at
from models.dqn.agent.observation import JobFacts, decision_interval_s, executors_needed
from models.dqn.environment.recorded import Recorded, draw_piece, with_peaks
from models.dqn.environment.synthetic_forecasts import draw_forecasts
from models.dqn.environment.synthetic_loads import RecordedLoad, draw_load_curve, log_uniform
from models.policy.core.capacity import Floats
from models.policy.planners.mpc import Mpc
from models.policy.received.peaks import LEVELS as PEAK_LEVELS
from models.policy.received.peaks import stretch_ends
from models.twin.sim.arrivals import running_totals
from models.twin.sim.given import Foresight, Load, Looks
from models.twin.sim.job import Belief, TwinJob, TwinJobs, stack

LEADS_S = (5.0, 1800.0)
PRICES = (0.1, 1000.0)
LATENCIES_S = (5.0, 10.0, 30.0)
LOOKS_S = (1, 2, 5, 15)
"""Seconds between two observations of a job: drawn from those up to two thirds of the lead time; 15 from 60 s on."""
REAL_FORECAST_SHARE, REAL_FORECAST_LEADS_S = 0.6, (10.0, 30.0, 60.0, 180.0, 600.0, 1800.0)
"""Share of the groups that receive real forecasts, where there are such loads; and their lead times: few, because peaks
are learned for each."""
GUESSED_OFF, SCALING_OFF = (0.2, 0.25), 0.1
"""Deviation of the logarithms of the contract's guesses of overhead and service time from the truth; and how far its
exponent of the capacity may be off, which nobody learns while the job runs."""
SILENT = 0.15
"""Share of the runs without any forecast; a third of it where forecasts are real."""
UTILISATIONS, HOLDS, CATCH_UPS_S = (1.0, 1.08), (0.5, 2.0, 5.0), (15.0, 60.0)
"""Of the baseline policy; it waits so many lead times before it drops anything. With less any move would be better."""


def some_job(lead_s: float, latency_s: float, chance: np.random.Generator) -> TwinJob:
    """Draw a job from a range of common ones, with start-up delays around `lead_s`; both arguments are in seconds."""
    delays = lead_s * np.exp(0.15 * chance.standard_normal(8))
    return TwinJob(
        overhead_s=chance.uniform(0.02, 0.2) * latency_s,
        per_record_s=log_uniform(chance, 1e-4, 1e-2),
        most=int(chance.integers(4, 41)), cores=int(chance.choice([1, 2, 4])),
        tasks=int(chance.choice([40, 64, 200, 4000])),
        scaling=chance.uniform(0.8, 1.0), startup_s=tuple(delays), cold_s=chance.uniform(0, 2),
        noise=chance.uniform(0, 0.2), latency_target_s=latency_s,
    )  # fmt: skip


class DrawnRuns(NamedTuple):
    """Drawn runs: jobs, their loads and forecasts, and how they are observed.

    Attributes:
        jobs: one per run.
        load: arrivals, one row per run.
        first: (runs,) executors to begin with, which sustain the first step at full use.
        needed: (runs, D) executors, with fractions, that the expected load of each step needs.
        forecasts: forecasts at the D decisions, and at the end of the last one.
        facts: of the runs.
        baseline: the advising policy.
        looks: how the jobs are observed.
        pace_s: seconds between two decisions, in whole looks.
    """

    jobs: TwinJobs
    load: Load
    first: Floats
    needed: Floats
    forecasts: Foresight
    facts: JobFacts
    baseline: Mpc
    looks: Looks
    pace_s: int

    @property
    def decisions(self) -> int:
        """D, the decisions of a run."""
        return int(self.needed.shape[1])


def draw_runs(
    runs: int, decisions: int, traces: Sequence[RecordedLoad], chance: np.random.Generator,
    jobs: Sequence[TwinJob] = (), price: float | None = None, lead_s: float | None = None, batch_s: float | None = None,
) -> DrawnRuns:  # fmt: skip
    """Draw runs that share lead time (seconds from a request to a working executor), pace and latency target.

    Jobs, loads, forecasts and prices differ. The first use of a `Recorded` load at a lead time learns to forecast its
    peaks, which that load keeps.

    Args:
        runs: how many, at least 1.
        decisions: D of a run, at least 1.
        traces: real loads, mixed with synthetic ones; those of class `Recorded` come with real forecasts.
        chance: draws everything.
        jobs: jobs to draw from, with the same lead time and latency target; empty for `some_job`.
        price: of a second over the target, in seconds of all executors, for all runs; None: drawn from 0.1 to 1000.
        lead_s: of drawn jobs, not of `jobs`; None: drawn from 5 to 1800 s.
        batch_s: seconds that batches should take; None: drawn from 0.2 to 0.5 of the latency target.

    Returns:
        The runs, with `needed` (runs, D) executors and `forecasts.rps` (runs, D + 1, K, levels) records/s, also for the
        state in which the last decision ends; NaN for the 15 % of the runs (5 % where forecasts are real, on average)
        that get none.

    Raises:
        ValueError: no runs, or a trace without values.
    """
    known = [one for one in traces if isinstance(one, Recorded)]
    real = len(known) > 0 and chance.random() < REAL_FORECAST_SHARE
    lead = float(np.median(jobs[0].startup_s)) if jobs else _lead(lead_s, real, chance)
    latency = jobs[0].latency_target_s if jobs else float(chance.choice(LATENCIES_S))
    chosen = [jobs[i] for i in chance.integers(len(jobs), size=runs)] if jobs else []
    chosen = chosen or [some_job(lead, latency, chance) for _ in range(runs)]
    rows = stack(chosen, [_guess(job, chance) for job in chosen])
    true = rows.facts
    fitting = [one for one in LOOKS_S if one <= max(lead / 1.5, 1)]
    every = int(chance.choice(fitting)) if lead < 60 else LOOKS_S[-1]
    smooth = max(every, int(chance.choice([1, 10])))
    looks = Looks(every, smooth, chance.uniform(0.2, 0.5) * latency if batch_s is None else batch_s)
    heard = with_peaks(known, lead, looks) if real else []
    pace = int(decision_interval_s(lead, every))
    capacity = rows.capacity(looks.batch_s)
    peak = capacity.sustained_rps(true["most"]) * chance.uniform(0.25, 0.95, runs)
    steps, seconds = np.arange(decisions + 1) * pace, decisions * pace
    whole = seconds + int(3 * (lead + 2 * every)) + 2
    if heard:
        pieces = (draw_piece(heard, whole, steps, top, looks, chance) for top in peak)
        expected, arrived, forecast = zip(*pieces, strict=True)
        total, came = np.stack(expected), np.stack(arrived)[:, : seconds + 1]
        forecasts = Foresight(stretch_ends(lead, 2.0 * every), PEAK_LEVELS, np.stack(forecast), np.arange(runs))
    else:
        reach, grid = lead + 2 * pace, np.arange(0.0, whole + pace, max(pace / 4, 1.0))
        curves = (draw_load_curve(grid, pace, reach, traces, chance) for _ in range(runs))
        shares = np.array([np.interp(np.arange(whole), grid, curve) for curve in curves])
        total = running_totals(shares * peak[:, None])
        came = running_totals(chance.poisson(np.diff(total[:, : seconds + 1], axis=1)))
        forecasts = draw_forecasts(total, steps, lead, every, chance)
    forecasts.rps[chance.random(runs) < (SILENT / 3 if heard else SILENT)] = np.nan
    prices = log_uniform(chance, *PRICES, runs)
    prices = prices if price is None else np.full(runs, price)
    facts = JobFacts(lead, true["latency_target_s"], prices, float(pace))
    baseline = Mpc(
        "mpc", violation_cost_at(prices), chance.choice(UTILISATIONS, runs), lead, lead + 2.0 * every,
        chance.choice(CATCH_UPS_S, runs), looks.batch_s, float(chance.choice(HOLDS)) * lead,
    )  # fmt: skip
    needed = executors_needed(capacity, np.diff(total[:, steps], axis=1) / pace)
    first = capacity.executors_for(total[:, pace] / pace, true["least"], true["most"])[0]
    return DrawnRuns(rows, Load(came, np.arange(runs)), first, needed, forecasts, facts, baseline, looks, pace)


def _guess(job: TwinJob, chance: np.random.Generator) -> Belief:
    """What the job's contract takes it for: as far off as a person who never measured it."""
    off = np.exp(GUESSED_OFF * chance.standard_normal(2))
    scaling = min(max(job.scaling + chance.uniform(-SCALING_OFF, SCALING_OFF), 0.5), 1.0)
    return Belief(job.overhead_s * float(off[0]), job.per_record_s * float(off[1]), scaling)


def _lead(given: float | None, real: bool, chance: np.random.Generator) -> float:
    if given is not None:
        return given
    if real:
        return float(chance.choice(REAL_FORECAST_LEADS_S))
    return float(log_uniform(chance, *LEADS_S))
