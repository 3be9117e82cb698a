"""One job as it is served: what is known of its windows, and the model that steps through them.

The fast path takes its steps inside a transaction, the stream server in memory, the streaming query inside keyed state.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from models.forecast.core.gaps import Streak, arrived, resets, silence
from models.forecast.core.series import Series, SeriesError
from models.forecast.online import Online, OnlineError
from pipelines.serve.step.event import ForecastOrigin, message, series
from pipelines.serve.step.generations import Generation, serving
from pipelines.serve.step.windower import Filled, Filling, Window, fill
from pipelines.serve.step.windows import KEPT_STEPS, Windows
from tidecast.messages import Forecast, Heartbeat, MetricSample

log = logging.getLogger(__name__)
HEAVY = 8192
"""Bytes of carried state above which it is kept only now and then."""
EVERY = 64
"""Windows between two of these."""
BEAT_S = 8.0
"""Between two heartbeats of a job, wall seconds: with samples once a second they are less than 10 s apart."""
SILENT_S = 10.0
"""A job without metrics for this long gets no more heartbeats: they would hide that it is silent."""


@dataclass(frozen=True)
class Serving:
    """What all jobs of a server are served with.

    Attributes:
        windows: where closed windows are.
        find: who steps a job in a generation; ModelSetError where the set is no longer there.
        epoch: of the server, in every forecast.
    """

    windows: Windows
    find: Callable[[str, Generation], Online]
    epoch: int


@dataclass
class Following:
    """One job.

    Attributes:
        job: its name.
        by: what all jobs are served with.
        filling: the window in progress.
        newest, first: its newest and first window; None before any.
        rate: of the newest window, records/s; None before any.
        streak: how its windows have come; None before any.
        generations: every swap of its model.
        at: number of the generation whose state is carried; 0 before any, -1 where that failed.
        online: who steps it; None before a model serves.
        heavy: whether that state is large.
        kept: whether a state of this generation has been kept yet.
        issued: the newest forecast that was sent; None before one.
        beaten: wall time of its newest heartbeat.
        unsaved: windows put in the transaction that is still open.
    """

    job: str
    by: Serving
    filling: Filling = field(default_factory=Filling)
    newest: int | None = None
    first: int | None = None
    rate: float | None = None
    streak: Streak | None = None
    generations: list[Generation] = field(default_factory=list)
    at: int = 0
    online: Online | None = None
    heavy: bool = False
    kept: bool = False
    issued: Forecast | None = None
    beaten: float = -math.inf
    unsaved: list[tuple[int, float]] = field(default_factory=list)

    @property
    def step_s(self) -> float:
        """Seconds per window."""
        return self.by.windows.step_s

    def fill(self, sample: MetricSample) -> Filled:
        """What the record does to the windows; it is for the caller to put `filling` in force.

        Raises:
            SeriesError: it cannot follow what came before.
        """
        filled = fill(self.filling, sample, self.step_s)
        if filled.why:
            self.filling = filled.filling  # it counts towards those that agree
            raise SeriesError(filled.why)
        return filled

    def history(self, first: int, last: int) -> Series:
        """Windows `first` to `last` as they are kept and in the open transaction; NaN where one is missing."""
        if last < first:
            return series([], first, first - 1, self.step_s)
        return series(self.by.windows.rates(self.job, first, last) + self.unsaved, first, last, self.step_s)

    def begin(self, online: Online, made: Generation, warm: bytes | None) -> None:
        """Carry on with another generation's model, up to the newest window.

        A model that was warmed on nothing, or so long ago that windows in between may no longer be kept, is begun on
        the newest history: from its own beginning to today there may be millions of windows. `warm` is the model's
        state after window `made.warmed_to`, where somebody has prepared it.
        """
        last = made.warmed_to if self.newest is None else self.newest
        if made.warmed_to < made.warmed_from or last - made.warmed_to > KEPT_STEPS:
            online.admit(self.job, self.history(max(self.first or 0, last - KEPT_STEPS + 1), last))
            warm = online.state(self.job)
        else:
            if warm is None:
                online.admit(self.job, self.history(made.warmed_from, made.warmed_to))
                warm = online.state(self.job)
            online.restore(self.job, warm, self.history(made.warmed_to + 1, last))
        if self.online is not None and self.online is not online and self.job in self.online:
            self.online.forget(self.job)  # other jobs may go on with it
        self.at, self.online, self.heavy, self.kept = made.number, online, len(warm) > HEAVY, False

    def resume(self, made: Generation, carried: bytes, since: int) -> None:
        """Carry on with a generation's state that lacks windows from `since` on; empty where none was kept.

        Where it cannot be read, the model begins anew on the history.
        """
        online = self.by.find(self.job, made)
        try:
            online.restore(self.job, carried, self.history(since, self.newest or 0))
        except (OnlineError, SeriesError) as error:  # another version of this code may have written it
            log.warning("serving %s: %s; its model begins anew on the history", self.job, error)
            self.begin(online, made, None)
        else:
            self.at, self.online, self.heavy, self.kept = made.number, online, len(carried) > HEAVY, True

    def step(self, window: Window) -> Generation | None:
        """Take one closed window into the streak and the model; the generation that serves it, None before the first.

        A model that fails may not stop the other jobs: it begins anew at the next window.
        """
        made = serving(self.generations, window.version)
        try:
            if made is not None and made.number != self.at:
                self.begin(self.by.find(self.job, made), made, None)
            self._take(window)
        except Exception:
            log.exception("serving %s: the model failed at window %d", self.job, window.version)
            self.online, self.at = None, -1
            if self.newest != window.version:
                self._take(window)
        return made

    def _take(self, window: Window) -> None:
        version = window.version
        missing = 0 if self.newest is None else version - self.newest - 1
        anew = resets(self.streak, missing)
        self.streak = arrived(self.streak, missing)
        self.first = version if self.first is None else self.first
        self.newest, self.rate = version, window.rate
        self.unsaved.append((version, window.rate))
        if self.online is None:
            return
        if anew:
            # What was carried says nothing any more, but the same time last week still does. Before the first window
            # nobody knew when the series begins, and some models go by the time of day.
            self.online.admit(self.job, self.history(max(self.first, version - KEPT_STEPS), version - 1))
        else:
            for _ in range(missing):
                self.online.step(self.job, math.nan)
        self.online.step(self.job, window.rate)

    def forecast(self, made: Generation, happened: int, time_scale: float) -> tuple[Forecast | None, str]:
        """The forecast after the newest window, or None and why there is none (seed 6.1, step 3).

        `made` serves the window; the record that closed it was measured at `happened`, ns since the epoch.
        """
        online, version = self.online, self.newest or 0
        quantiles = np.full((1, 1), np.nan) if online is None else online.current(self.job)
        if reason := silence(self.streak, quantiles):
            return None, reason
        assert online is not None, "without a model the quantiles are NaN"
        windows = version - (self.first or 0) + 1
        now, epoch = happened / 1e9, self.by.epoch
        at = ForecastOrigin(self.job, version, self.step_s, now, time_scale, epoch, windows, self.rate)
        return message(quantiles, online.trust(self.job), online.forecaster, made, at), ""

    def carried(self, version: int) -> bytes:
        """The model's state to be kept at this window; empty where there is none, or it is heavy and not due."""
        if self.online is None:
            return b""
        due = version % EVERY == 0 or not self.kept or (self.streak is not None and self.streak.row == 1)
        if self.heavy and not due:
            return b""
        self.kept = True
        return self.online.state(self.job)

    def beat(self, sample: MetricSample, wall_time: float) -> list[Heartbeat]:
        """The heartbeat that is due with the job's newest sample at a wall time, naming the forecast that stands."""
        if wall_time - self.beaten < BEAT_S:
            return []
        self.beaten = wall_time
        standing, since = (None, None) if self.issued is None else (str(self.issued.epoch), self.issued.wall_time)
        time, scale = sample.time + sample.span_s, sample.time_scale
        return [Heartbeat(sample.job, "serving", time, wall_time, scale, standing, since)]
