"""The step that every form of serving takes: a closed window into a job's model, and what the model says after it.

The serving loop takes it inside a transaction, the streaming query inside its keyed state.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np

from models.forecast.core.gaps import silence
from models.forecast.online import Online
from pipelines.serve.step.event import ForecastOrigin, message
from pipelines.serve.step.following import Following
from pipelines.serve.step.generations import Generation, serving
from pipelines.serve.step.windower import Window
from pipelines.serve.step.windows import Windows
from tidecast.messages import Forecast

log = logging.getLogger(__name__)


class Stepper:
    """Steps jobs; it keeps nothing of them."""

    def __init__(self, windows: Windows, find: Callable[[str, Generation], Online], epoch: int) -> None:
        """Make one.

        Args:
            windows: where closed windows are.
            find: who steps a job in a generation; ModelSetError where the set is no longer there.
            epoch: of the server, in every forecast.
        """
        self._windows, self._find, self.epoch = windows, find, epoch

    def step(self, following: Following, window: Window) -> Generation | None:
        """Take one window into the job; the generation that serves it, None before the first."""
        by = serving(following.generations, window.version)
        try:
            if by is not None and by.number != following.at:
                following.begin(self._windows, self._find(following.job, by), by, None)
            following.step(self._windows, window.version, window.rate)
        except Exception:  # one job's model may not stop the others; it begins anew at the next window
            log.exception("serving %s: the model failed at window %d", following.job, window.version)
            following.online, following.at = None, -1
            if following.newest != window.version:
                following.step(self._windows, window.version, window.rate)
        return by

    def issue(
        self, following: Following, by: Generation, happened: int, time_scale: float
    ) -> tuple[Forecast | None, str]:
        """The forecast after the newest window, or None and why there is none (seed 6.1, step 3).

        Args:
            following: the job.
            by: the generation that serves the window.
            happened: when the record that closed it was measured, ns.
            time_scale: of that record.
        """
        online, streak, version = following.online, following.streak, following.newest or 0
        quantiles = np.full((1, 1), np.nan) if online is None else online.current(following.job)
        if reason := silence(streak, quantiles):
            return None, reason
        assert online is not None, "without a model the quantiles are NaN"
        windows = version - (following.first or 0) + 1
        now, rate = happened / 1e9, following.rate
        at = ForecastOrigin(following.job, version, following.step_s, now, time_scale, self.epoch, windows, rate)
        return message(quantiles, online.trust(following.job), online.forecaster, by, at), ""
