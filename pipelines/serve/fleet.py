"""The forecasting state of every job: steps in, quantiles out, champions swapped without a gap. No Kafka, no clock."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from models.forecast.core.forecaster import Forecaster
from models.forecast.core.series import Accumulator, Partial, Series, regular
from tidecast.messages import Forecast, MetricSample

KEPT_STEPS = 60 * 48
"""Steps a job keeps in memory: enough to warm any champion, bounded whatever the uptime."""
SILENT_S = 10.0
"""A job without metrics for this long gets no more heartbeats: they would hide that it is silent."""


@dataclass(frozen=True)
class Champion:
    """A registered model that is in use."""

    model: str
    version: str
    forecaster: Forecaster


@dataclass
class JobState:
    """One job: the steps seen so far, the step in progress, and the champion's state."""

    step_s: float
    partial: Partial = field(default_factory=Partial)
    steps: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT_STEPS))
    end: float = 0.0
    champion: Champion | None = None
    state: Any = None
    time_scale: float = 1.0

    def series(self) -> Series:
        """The kept steps."""
        return Series(self.end - len(self.steps) * self.step_s, self.step_s, np.array(self.steps, dtype=np.float64))

    def warm(self, samples: list[MetricSample]) -> None:
        """Take a whole history at once; what has not filled a step yet stays in progress."""
        if not samples:
            return
        samples = sorted(samples, key=lambda s: s.time)
        rates = [s.arrival_rps or 0.0 for s in samples]
        series = regular([s.time for s in samples], rates, [s.span_s for s in samples], self.step_s)
        self.steps.extend(series.values.tolist())
        self.end, self.time_scale = series.end, samples[-1].time_scale
        for sample in samples:
            if sample.time + sample.span_s > series.end:
                begin = max(sample.time, series.end)
                span = sample.time + sample.span_s - begin
                self.partial, _ = Accumulator(self.step_s).push(self.partial, begin, sample.arrival_rps or 0.0, span)

    def crown(self, champion: Champion) -> None:
        """Serve with this champion from now on, warmed by the kept steps."""
        self.champion, self.state = champion, champion.forecaster.init(self.series())

    def push(self, sample: MetricSample) -> bool:
        """Take one second of metrics; True if it completed a step."""
        self.time_scale = sample.time_scale
        if self.steps and sample.time < self.end - self.step_s:
            return False  # of a step that is over: the lake keeps it, serving goes on
        rate = sample.arrival_rps or 0.0
        self.partial, completed = Accumulator(self.step_s).push(self.partial, sample.time, rate, sample.span_s)
        fresh = [(begin, value) for begin, value in completed if not self.steps or begin >= self.end - 1e-3]
        for begin, value in fresh:
            self._append(begin, value)
        return bool(fresh)

    def _append(self, begin: float, value: float) -> None:
        first = not self.steps
        missing = 0 if first else round((begin - self.end) / self.step_s)
        for step in [np.nan] * min(missing, KEPT_STEPS) + [value]:
            self.steps.append(step)
            if self.champion is not None and not first:
                self.state, _ = self.champion.forecaster.step(self.state, step)
        self.end = begin + self.step_s
        if self.champion is not None and first:
            self.crown(self.champion)  # only now is it known when the series begins

    def forecast(self, job: str, wall: float, epoch: int) -> Forecast | None:
        """The champion's forecast from the last completed step on; None without a champion or anything to go by."""
        if self.champion is None or self.champion.forecaster.trust(self.state) == "none":
            return None
        made = self.champion.forecaster
        quantiles, last = made.current(self.state), self.steps[-1]
        if not np.isfinite(quantiles).all():
            return None  # no forecast is better than a broken one: the autoscaler is reactive meanwhile
        return Forecast(
            job=job, time=self.end, wall_time=wall, time_scale=self.time_scale, step_s=made.step_s,
            levels=list(made.levels), quantiles=quantiles.tolist(), model=self.champion.model,
            version=self.champion.version, alias="champion", kind=made.trust(self.state),
            history_steps=len(self.steps), epoch=epoch,
            last_rps=last if math.isfinite(last) else None,
        )  # fmt: skip
