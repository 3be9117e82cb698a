"""One job as it is served: what is known of its windows, and the model that steps through them.

The fast path takes its steps inside a transaction, the stream server in memory, the streaming query inside keyed state.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from models.forecast.core.gaps import Streak, silence_reason, starts_over, streak_after
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
"""Windows between two states kept of a job whose state is above `HEAVY` bytes."""
BEAT_S = 8.0
"""Wall seconds between two heartbeats of a job: with samples once a second they are less than 10 s apart."""
SILENT_S = 10.0
"""Wall seconds. A job without metrics for this long gets no more heartbeats: they would hide that it is silent."""


@dataclass(frozen=True)
class Serving:
    """What all jobs of a server have in common.

    Attributes:
        windows: where closed windows are kept.
        find: returns the loaded model of a job's generation; ModelSetError where it is no longer there.
        epoch: number of the server's claim, in every forecast.
    """

    windows: Windows
    find: Callable[[str, Generation], Online]
    epoch: int


@dataclass
class Following:
    """One job as it is served: its windows, and the model that steps through them.

    Attributes:
        job: its name.
        by: what all jobs are served with.
        filling: the window in progress.
        newest, first: index of its newest and first window; None before any.
        rate: of the newest window, records/s; None before any.
        streak: how its windows have come, gaps included; None before any.
        generations: every model loaded for it, and since when each serves.
        at: number of the generation whose state is carried; 0 before any, -1 where that failed.
        online: the model that steps it; None before one serves or after it failed.
        heavy: whether its state is above `HEAVY` bytes.
        kept: whether a state of this generation has been kept yet.
        issued: the newest forecast that was sent; None before one.
        beaten: wall time of its newest heartbeat, epoch seconds.
        unsaved: (window index, records/s) put in the transaction that is still open.
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
        """Return what a metrics record does to the job's windows, without putting it in force.

        The caller sets `filling` to the result's when it takes the record. Only a record refused for lying too far
        ahead changes `filling`: it counts towards the `AGREE` in a row after which the new time is believed.

        Raises:
            SeriesError: the record lies too far ahead of the one before, spans too many windows, or its sum is not
                finite.
        """
        filled = fill(self.filling, sample, self.step_s)
        if filled.why:
            self.filling = filled.filling  # it counts towards those that agree
            raise SeriesError(filled.why)
        return filled

    def history(self, first: int, last: int) -> Series:
        """Return windows `first` to `last`, both included, as a series of records/s; NaN where one is missing.

        Read from what is kept, and from the open transaction. Empty where `last` is less than `first`.
        """
        if last < first:
            return series([], first, first - 1, self.step_s)
        return series(self.by.windows.rates(self.job, first, last) + self.unsaved, first, last, self.step_s)

    def begin(self, online: Online, made: Generation, warm: bytes | None) -> None:
        """Switch to another generation's model and step it up to the job's newest window.

        It goes on from its warm state, or else is started on the history it was warmed on. A model warmed on nothing,
        or more than `KEPT_STEPS` windows ago, is started on the newest `KEPT_STEPS` windows instead.

        Args:
            online: the generation's model; the job's present model forgets the job.
            made: the generation.
            warm: the model's state after window `made.warmed_to`; None to compute it.

        Raises:
            SeriesError: the history has another step than the model, or negative or infinite rates.
            OnlineError: `warm` is no state of this model, or the history does not lead on from it.
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
        """Switch to a generation's model in a state that was kept; one that cannot be read is logged and started anew.

        Args:
            made: the generation.
            carried: the kept state, empty where there is none.
            since: first window that the state may lack; from there on the history is stepped through.

        Raises:
            ModelSetError: the generation's model is no longer there.
            SeriesError: the history cannot be stepped through by a model started anew either.
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
        """Add one closed window to the job, stepping its model (and over missing windows before it).

        If another generation serves this window, its model is switched to first. A model that raises is logged and
        dropped; it is started anew at the next window.

        Returns:
            The generation that serves the window; None before the first.

        Raises:
            SeriesError: the window is older than the newest one.
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
        anew = starts_over(self.streak, missing)
        self.streak = streak_after(self.streak, missing)
        self.first = version if self.first is None else self.first
        self.newest, self.rate = version, window.rate
        self.unsaved.append((version, window.rate))
        if self.online is None:
            return
        if anew:
            # The carried state is too old, but the same time last week is still of use. Before the first window
            # nobody knew when the series begins, and some models go by the time of day.
            self.online.admit(self.job, self.history(max(self.first, version - KEPT_STEPS), version - 1))
        else:
            for _ in range(missing):
                self.online.step(self.job, math.nan)
        self.online.step(self.job, window.rate)

    def forecast(self, made: Generation, happened: int, time_scale: float) -> tuple[Forecast | None, str]:
        """Return (forecast after the newest window, ""), or (None, reason) where none may be made.

        Args:
            made: the generation that serves the window.
            happened: when the record that closed the window was measured, ns since the epoch; becomes `wall_time`.
            time_scale: seconds of job time per wall second.

        Returns:
            The reason is "warming" (too few windows in a row yet) or "model_error" (no model, or a quantile that is not
            finite).
        """
        online, version = self.online, self.newest or 0
        quantiles = np.full((1, 1), np.nan) if online is None else online.current(self.job)
        if reason := silence_reason(self.streak, quantiles):
            return None, reason
        assert online is not None, "without a model the quantiles are NaN"
        windows = version - (self.first or 0) + 1
        now, epoch = happened / 1e9, self.by.epoch
        at = ForecastOrigin(self.job, version, self.step_s, now, time_scale, epoch, windows, self.rate)
        return message(quantiles, online.basis(self.job), online.forecaster, made, at), ""

    def carried(self, version: int) -> bytes:
        """Return the model's state to be stored with window `version`, and note that one was kept.

        Empty where there is no model, or where the state is above `HEAVY` bytes and not due: such a one is due at the
        first call, every `EVERY` windows and after a gap.
        """
        if self.online is None:
            return b""
        due = version % EVERY == 0 or not self.kept or (self.streak is not None and self.streak.row == 1)
        if self.heavy and not due:
            return b""
        self.kept = True
        return self.online.state(self.job)

    def beat(self, sample: MetricSample, wall_time: float) -> list[Heartbeat]:
        """Return the job's heartbeat in a list, or an empty list within `BEAT_S` of the last one.

        It names epoch and wall time of the forecast last sent, if any; the time of the beat is remembered.

        Args:
            sample: the job's newest.
            wall_time: of the heartbeat, epoch seconds.
        """
        if wall_time - self.beaten < BEAT_S:
            return []
        self.beaten = wall_time
        standing, since = (None, None) if self.issued is None else (str(self.issued.epoch), self.issued.wall_time)
        time, scale = sample.time + sample.span_s, sample.time_scale
        return [Heartbeat(sample.job, "serving", time, wall_time, scale, standing, since)]
