"""The setup of a comparison: the job that a trace is replayed on, and how policies observe it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from configs.bounds import DAY_S
from configs.contract import BATCH_SHARE, Contract, Executors, Planning
from models.forecast.core.series import Series
from models.twin.sim.arrivals import fill_gaps
from models.twin.sim.given import Looks
from models.twin.sim.job import Belief, TwinError, TwinJob, stack

SPREAD = tuple(np.linspace(0.85, 1.15, 8).tolist())
"""Start-up delays and restarts as shares of the lead time."""
PEAK_QUANTILE, PEAK_RPS = 0.999, 3000.0
"""Quantile of a trace, and the records/s that it becomes where no job is given."""
TASKS = 4000
"""Tasks of the heavy stage: so many that a half-empty last wave does not matter."""
NOISE = 0.1
"""`TwinJob.noise` where no fitted job is given; those of the demonstration have 0.14 (docs/twin.md)."""
GUESSED = 1.2, 2.0
"""Guesses of overhead and service time in a made contract, over the truth: policies have to measure."""


@dataclass(frozen=True)
class Setup:
    """What a comparison has in common for every policy: the job, its lead time and how policies look at it.

    Attributes:
        lead_s: seconds from an executor's request until it is registered; if the engine restarts, what a restart takes.
        executors: that carry the trace's 99.9 % quantile at full use, by which it is scaled; None: half of a given
            job's most, else 20.
        latency_target_s: seconds from event time to result.
        restarts: whether the engine restarts at every change.
        job: a fitted job; its own start-up delays hold where `lead_s` is their median within 1 %.
        as_is: the trace is in records/s of the job already and is not scaled.
        test_days, tune_days: longest test part, and longest tuning part before it; days of the job's own clock.
        speed: seconds of the trace that pass in one of the job's, where a demonstration runs faster than its trace.
        contract_of_job: the job's own contract, by which its live policies decide; None: one is made.
        every_s: most seconds between two looks, as a live job's learned policy decides more often than a backtest's.

    Raises:
        TwinError: a lead time of 0 or above a day, `as_is` without a job or with `executors`, or executors beyond the
            job's.
    """

    lead_s: float = 60.0
    executors: int | None = None
    latency_target_s: float = 10.0
    restarts: bool = False
    job: TwinJob | None = None
    as_is: bool = False
    test_days: float = 5.0
    tune_days: float = 4.0
    speed: float = 1.0
    contract_of_job: Contract | None = None
    every_s: float = math.inf

    def __post_init__(self) -> None:
        if not (math.isfinite(self.lead_s) and 0 < self.lead_s <= DAY_S):
            raise TwinError(f"lead_s={self.lead_s}: seconds above 0 and at most a day are expected")
        if self.as_is and self.job is None:
            raise TwinError("as_is without a job: whose records/s the trace is in must be known; name one with --job")
        if self.as_is and self.executors is not None:
            raise TwinError(
                f"executors={self.executors} and as_is: a load that is not scaled needs what it needs. Leave out "
                "--executors, or --as-is to have the load scaled to so many"
            )
        if self.job is not None and self.executors is not None and not 1 <= self.executors <= self.job.most:
            raise TwinError(
                f"executors={self.executors}: the job has 1 to {self.job.most}, which carry no more than that"
            )

    @cached_property
    def peak_executors(self) -> int:
        """Executors that the trace is scaled to, unless it is taken as it is: `executors`, or its default."""
        if self.executors is not None:
            return self.executors
        return max(1, self.job.most // 2) if self.job else 20

    @property
    def warm_s(self) -> int:
        """Seconds before the first that counts, at least 3 lead times and 15 minutes, in whole looks."""
        return self.looks.every_s * math.ceil((3 * self.lead_s + 900.0) / self.looks.every_s)

    def step_s(self, series: Series) -> float:
        """Return the seconds of the job's clock in a step of a trace."""
        return series.step_s / self.speed

    @cached_property
    def looks(self) -> Looks:
        """When policies look: every 15 s, or twice within a lead time under 30 s; batches of 0.4 of the latency target.

        Two batches then fit into the target, because a record may wait for one batch and be in the next.
        """
        every = int(np.clip(self.lead_s // 2, 1, 15))
        batch_s = self.contract_of_job.batch_s if self.contract_of_job else BATCH_SHARE * self.twin_job.latency_target_s
        return Looks(int(min(every, self.every_s)), max(every, 10), batch_s)

    @property
    def hold_s(self) -> float:
        """Seconds after the lead time for which executors asked for now must do: the contract's, else two looks."""
        return self.contract_of_job.planning.hold_s if self.contract_of_job else 2.0 * self.looks.every_s

    @property
    def planned_s(self) -> tuple[float, float]:
        """(lead, hold) in seconds that policies plan with; how long executors really take is in `twin_job`."""
        return max(self.contract.planning.lead_s, 1.0), self.hold_s

    @cached_property
    def belief(self) -> Belief:
        """The batch model that policies start from, as the contract guesses it."""
        return Belief.of(self.contract.planning)

    @cached_property
    def twin_job(self) -> TwinJob:
        """The simulated job: the given one, or one whose `peak_executors` process 3000 records/s; its query is warm.

        Start-up delays are 0.85 to 1.15 of the lead time, unless the given job's own have it as their median (to 1 %).
        Bounds and latency target are those of the job's own contract, where there is one.

        Raises:
            TwinError: a number out of range, as a latency target below 0.1 s.
        """
        times = tuple(self.lead_s * share for share in SPREAD)
        if self.job is not None:
            as_fitted = abs(float(np.median(self.job.startup_s)) - self.lead_s) < 0.01 * self.lead_s
            found = replace(self.job, warmup=0.0, startup_s=self.job.startup_s if as_fitted else times)
            if self.contract_of_job:
                bounds, target_s = self.contract_of_job.executors, self.contract_of_job.latency_target_s
                found = replace(found, least=bounds.min, most=bounds.max, latency_target_s=target_s)
            return replace(found, restart_s=times) if self.restarts and not self.job.restart_s else found
        overhead, batch_s = 0.5, 0.4 * self.latency_target_s
        return TwinJob(
            overhead_s=overhead, per_record_s=self.peak_executors * (1 - min(overhead / batch_s, 0.9)) / PEAK_RPS,
            most=2 * self.peak_executors, tasks=TASKS, startup_s=times, cold_s=2.0, noise=NOISE,
            restart_s=times if self.restarts else (), latency_target_s=self.latency_target_s,
        )  # fmt: skip

    @cached_property
    def contract(self) -> Contract:
        """The contract that policies are built from: the job's own, or a made one.

        A made contract limits neither steps nor cooldown, and its guesses of overhead and service time are 1.2 and 2
        times the truth, so policies have to measure.
        """
        if self.contract_of_job:
            return self.contract_of_job
        job, most = self.twin_job, self.twin_job.most
        planning = Planning(
            lead_s=self.lead_s, hold_s=self.hold_s, catch_up_s=60.0, batch_s=self.looks.batch_s,
            scale_down_delay_s=300.0, cooldown_s=0.0, max_step_down=most,
            overhead_s=GUESSED[0] * job.overhead_s, per_record_s=GUESSED[1] * job.per_record_s,
            static_executors=min(self.peak_executors, most),
        )  # fmt: skip
        bounds = Executors(min=job.least, max=most, cores=job.cores)
        return Contract(job="backtest", latency_target_s=job.latency_target_s, executors=bounds, planning=planning)

    def scale_factor(self, series: Series) -> float:
        """Return the factor that turns the trace's values into records/s of the job; 1 for `as_is`.

        With it, the trace's 99.9 % quantile (NaN filled linearly) is what `peak_executors` process without a backlog.

        Raises:
            TwinError: that quantile is 0, fewer than two steps are known, or a rate is negative or infinite.
        """
        if self.as_is:
            return 1.0
        high = _peak(series)
        if high <= 0:
            raise TwinError(f"the trace's {PEAK_QUANTILE:.1%} quantile is {high:g}: it cannot be scaled to a job")
        capacity = stack([self.twin_job]).capacity(self.looks.batch_s)
        return float(capacity.sustained_rps(np.array([self.peak_executors]))[0]) / high

    def peak_rps(self, series: Series) -> float:
        """Return the records/s of the job that the trace's 99.9 % quantile (NaN filled linearly) stands for.

        Raises:
            TwinError: as `scale_factor`.
        """
        return self.scale_factor(series) * _peak(series)

    def executors_at_peak(self, series: Series) -> int | None:
        """Return the fewest executors, at least the job's least, that process `peak_rps` without a backlog.

        None where not even the job's most do.

        Raises:
            TwinError: as `scale_factor`.
        """
        job = self.twin_job
        bounds = np.array([job.least], float), np.array([job.most], float)
        capacity = stack([job]).capacity(self.looks.batch_s)
        needed, short = capacity.executors_for(np.array([self.peak_rps(series)]), *bounds)
        return None if short[0] else int(needed[0])


def _peak(series: Series) -> float:
    return float(np.quantile(fill_gaps(series.values), PEAK_QUANTILE))
