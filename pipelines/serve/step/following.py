"""One job as the fast path follows it: what is known of its windows, and the model that steps through them."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field

from models.forecast.core.gaps import Streak, arrived, resets
from models.forecast.core.series import Series, SeriesError
from models.forecast.online import Online, OnlineError
from pipelines.serve.step.event import series
from pipelines.serve.step.generations import Generation
from pipelines.serve.step.pulse import Pulse
from pipelines.serve.step.windower import Filled, Filling, fill
from pipelines.serve.step.windows import KEPT_STEPS, Windows
from tidecast.messages import Forecast, MetricSample

log = logging.getLogger(__name__)
HEAVY = 8192
"""Bytes of carried state above which it is kept only now and then."""
EVERY = 64
"""Windows between two of these."""


@dataclass
class Following:
    """One job.

    Attributes:
        job, step_s: its name and seconds per window.
        filling: the window in progress.
        newest, first: its newest and first window; None before any.
        rate: of the newest window, records/s; None before any.
        streak: how its windows have come; None before any.
        generations: every swap of its model.
        at: number of the generation whose state is carried; 0 before any.
        online: who steps it; None before a model serves.
        heavy: whether that state is large.
        kept: whether a state of this generation has been kept yet.
        issued: the newest forecast that was sent; None before one.
        pulse: of its heartbeats.
        unsaved: windows put in the transaction that is still open.
    """

    job: str
    step_s: float
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
    pulse: Pulse = field(default_factory=Pulse)
    unsaved: list[tuple[int, float]] = field(default_factory=list)

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

    def history(self, windows: Windows, first: int, last: int) -> Series:
        """Windows `first` to `last` as they are in the store and in the open transaction; NaN where one is missing."""
        if last < first:
            return series([], first, first - 1, self.step_s)
        return series(windows.rates(self.job, first, last) + self.unsaved, first, last, self.step_s)

    def begin(self, windows: Windows, online: Online, by: Generation, warm: bytes | None) -> None:
        """Carry on with another generation's model, up to the newest window.

        A model that was warmed on nothing, or so long ago that windows in between may no longer be kept, is begun on
        the newest history: from its own beginning to today there may be millions of windows.

        Args:
            windows: where they are.
            online: its model.
            by: the generation.
            warm: its state after window `by.warmed_to`, where somebody has prepared it.
        """
        last = by.warmed_to if self.newest is None else self.newest
        if by.warmed_to < by.warmed_from or last - by.warmed_to > KEPT_STEPS:
            online.admit(self.job, self.history(windows, max(self.first or 0, last - KEPT_STEPS + 1), last))
            warm = online.state(self.job)
        else:
            if warm is None:
                online.admit(self.job, self.history(windows, by.warmed_from, by.warmed_to))
                warm = online.state(self.job)
            online.restore(self.job, warm, self.history(windows, by.warmed_to + 1, last))
        if self.online is not None and self.online is not online and self.job in self.online:
            self.online.forget(self.job)  # other jobs may go on with it
        self.at, self.online, self.heavy, self.kept = by.number, online, len(warm) > HEAVY, False

    def resume(self, windows: Windows, online: Online, by: Generation, carried: bytes, since: int) -> None:
        """Carry on with a state that was kept; where it cannot be read, the model begins anew on the history.

        Args:
            windows: where they are.
            online: the model of the generation.
            by: the generation.
            carried: its state; empty where none was kept.
            since: first window that the state may lack.
        """
        try:
            online.restore(self.job, carried, self.history(windows, since, self.newest or 0))
        except (OnlineError, SeriesError) as error:  # another version of this code may have written it
            log.warning("serving %s: %s; its model begins anew on the history", self.job, error)
            self.begin(windows, online, by, None)
        else:
            self.at, self.online, self.heavy, self.kept = by.number, online, len(carried) > HEAVY, True

    def step(self, windows: Windows, version: int, rate: float) -> None:
        """Take one closed window into the streak and into the model, where there is one."""
        missing = 0 if self.newest is None else version - self.newest - 1
        anew = resets(self.streak, missing)
        self.streak = arrived(self.streak, missing)
        self.first = version if self.first is None else self.first
        self.newest, self.rate = version, rate
        self.unsaved.append((version, rate))
        if self.online is None:
            return
        if anew:
            # What was carried says nothing any more, but the same time last week still does. Before the first window
            # nobody knew when the series begins, and some models go by the time of day.
            self.online.admit(self.job, self.history(windows, max(self.first, version - KEPT_STEPS), version - 1))
        else:
            for _ in range(missing):
                self.online.step(self.job, math.nan)
        self.online.step(self.job, rate)

    def carried(self, version: int) -> bytes:
        """The model's state to be kept at this window; empty where it is heavy and not due."""
        assert self.online is not None, "a model serves"
        due = version % EVERY == 0 or not self.kept or (self.streak is not None and self.streak.row == 1)
        if self.heavy and not due:
            return b""
        self.kept = True
        return self.online.state(self.job)
