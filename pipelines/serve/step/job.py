"""One job as it is served: what is known of its windows, and the model that steps through them.

The fast path takes its steps inside a transaction, the stream server in memory, the streaming query inside keyed state.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field

import numpy as np

from models.forecast.core.gaps import Streak, silence_reason, streak_after
from models.forecast.core.series import Series, SeriesError
from models.forecast.online import Online, OnlineError
from pipelines.serve.step.deployments import Deployment, deployment_at
from pipelines.serve.step.forecasts import ForecastContext, build_message, build_series
from pipelines.serve.step.server_context import ServerContext
from pipelines.serve.step.windower import OpenWindow, SampleEffect, Window, add_sample
from pipelines.serve.step.windows import FEWEST, warmed_steps
from tidecast.messages import Forecast, Heartbeat, MetricSample

log = logging.getLogger(__name__)

LARGE_STATE_BYTES = 8192
"""A model state longer than this is stored only every `LARGE_STATE_WINDOWS` windows."""
LARGE_STATE_WINDOWS = 256
"""Windows between two stored large states (the blend's: 1.5 MB, 5 to 10 ms), and most that a restart steps again."""
HEARTBEAT_S = 8.0
"""Wall seconds between two heartbeats of a job: with samples once a second they are less than 10 s apart."""


@dataclass
class ServedJob:
    """A job's windows, and the model that steps through them.

    Attributes:
        job: its name.
        server: what all jobs of the server have in common.
        open_window: the window in progress.
        newest, first: index of its newest and first closed window; None before any.
        rate: of the newest window, records/s; None before any.
        streak: how its windows have come, gaps included; None before any.
        deployments: every model deployed for it, and from which window on each serves.
        deployment_number: of the deployment whose model is stepped; 0 before any, -1 where that failed.
        model: steps the job; None before one serves or after it failed.
        large_state: whether the model's state is above `LARGE_STATE_BYTES`.
        state_stored: whether a state of this deployment has been stored yet.
        standing: epoch and wall time of the newest forecast that was sent; None before one.
        last_heartbeat: wall time, epoch seconds.
        unsaved: (window index, records/s) put in the transaction that is still open.
    """

    job: str
    server: ServerContext
    open_window: OpenWindow = field(default_factory=OpenWindow)
    newest: int | None = None
    first: int | None = None
    rate: float | None = None
    streak: Streak | None = None
    deployments: list[Deployment] = field(default_factory=list)
    deployment_number: int = 0
    model: Online | None = None
    large_state: bool = False
    state_stored: bool = False
    standing: tuple[int, float] | None = None
    last_heartbeat: float = -math.inf
    unsaved: list[tuple[int, float]] = field(default_factory=list)

    @property
    def step_s(self) -> float:
        """Seconds per window."""
        return self.server.windows.step_s

    def add_sample(self, sample: MetricSample, now: float) -> SampleEffect:
        """Return what a metrics record does to the job's windows at `now` (epoch seconds), without putting it in force.

        To take the record, the caller sets `open_window` to the result's. Only a record refused for lying too far ahead
        changes it here: it counts towards the 10 in a row after which the new time is believed.

        Raises:
            SeriesError: the record lies over 24 windows (and the wall time between, in job seconds) ahead of the
                one before, spans over a million windows, or its sum is not finite.
        """
        effect = add_sample(self.open_window, sample, self.step_s, now)
        if effect.refusal:
            self.open_window = effect.open_window
            raise SeriesError(effect.refusal)
        return effect

    def history(self, first: int, last: int) -> Series:
        """Return windows `first` to `last`, both included, in records/s; NaN where missing, empty where last < first.

        Those of the open transaction are among them.
        """
        stored = self.server.windows.rates(self.job, first, last) if last >= first else []
        return build_series(stored + self.unsaved, first, max(last, first - 1), self.step_s)

    def switch_model(self, model: Online, deployment: Deployment, warm_state: bytes | None) -> None:
        """Switch to a deployment's model and step it up to the job's newest window; the old model forgets the job.

        It goes on from its warm state, or else is started on the history it was warmed on; one warmed on nothing, or
        longer ago than `warmed_steps`, on the newest of so many.

        Args:
            model: the deployment's.
            deployment: the version in service; says on which windows the model was started (warmed).
            warm_state: the model's state (MessagePack) after window `deployment.warmed_to`; None to compute it.

        Raises:
            SeriesError: the history has another step than the model, or negative or infinite rates.
            OnlineError: `warm_state` is no state of this model, or the history does not lead on from it.
            StoreError, msgspec.DecodeError: the history cannot be read from the store.
            Exception: whatever else the model raises.
        """
        last = deployment.warmed_to if self.newest is None else self.newest
        most = warmed_steps(self.step_s)
        if deployment.warmed_to < deployment.warmed_from or last - deployment.warmed_to > most:
            model.admit(self.job, self.history(max(self.first or 0, last - most + 1), last))
            warm_state = model.state(self.job)
        else:
            if warm_state is None:
                model.admit(self.job, self.history(deployment.warmed_from, deployment.warmed_to))
                warm_state = model.state(self.job)
            model.restore(self.job, warm_state, self.history(deployment.warmed_to + 1, last))
        if self.model is not None and self.model is not model and self.job in self.model:
            self.model.forget(self.job)  # other jobs may go on with it
        self._set_model(model, deployment, warm_state, stored=False)

    def resume_model(self, deployment: Deployment, state: bytes, since: int) -> None:
        """Switch to a deployment's model in a state that was stored; one that cannot be read is logged and begun anew.

        Args:
            deployment: the model version in service that the state is of.
            state: the stored state (MessagePack), empty where there is none.
            since: first window (index) that the state may lack; from there on the history is stepped through.

        Raises:
            ModelSetError: the deployment's model is no longer there.
            SeriesError, OnlineError: the history cannot be stepped through by a model begun anew either.
            StoreError, msgspec.DecodeError: model or history cannot be read from the store.
        """
        model = self.server.find_model(self.job, deployment)
        try:
            model.restore(self.job, state, self.history(since, self.newest or 0))
        except (OnlineError, SeriesError) as error:  # another version of this code may have written it
            log.warning("serving %s: %s; its model begins anew on the history", self.job, error)
            self.switch_model(model, deployment, None)
        else:
            self._set_model(model, deployment, state, stored=True)

    def _set_model(self, model: Online, deployment: Deployment, state: bytes, stored: bool) -> None:
        self.model, self.deployment_number = model, deployment.number
        self.large_state, self.state_stored = len(state) > LARGE_STATE_BYTES, stored

    def drop_model(self) -> None:
        """Leave the job without a model, after it failed; the deployment's is begun anew at the next window."""
        self.model, self.deployment_number = None, -1

    def step(self, window: Window) -> Deployment | None:
        """Add one closed window to the job (and the missing ones before it), and return the deployment that serves it.

        The model is stepped over them; another deployment's is switched to first. A model that raises, or cannot be
        found, is logged and dropped, and begun anew at the next window. None is returned before the first deployment.

        Raises:
            SeriesError: the window is not newer than the newest one; nothing is changed.
        """
        if self.newest is not None and window.window_index <= self.newest:
            raise SeriesError(f"window {window.window_index} of {self.job} is not newer than {self.newest}, the newest")
        deployment = deployment_at(self.deployments, window.window_index)
        try:
            if deployment is not None and deployment.number != self.deployment_number:
                self.switch_model(self.server.find_model(self.job, deployment), deployment, None)
            self._add_window(window)
        except Exception:
            log.exception("serving %s: the model failed at window %d", self.job, window.window_index)
            self.drop_model()
            if self.newest != window.window_index:
                self._add_window(window)
        return deployment

    def _add_window(self, window: Window) -> None:
        missing = 0 if self.newest is None else window.window_index - self.newest - 1
        anew = self.newest is None or missing > FEWEST  # to step over more would keep other jobs waiting
        self.streak = streak_after(self.streak, missing)
        self.first = window.window_index if self.first is None else self.first
        self.newest, self.rate = window.window_index, window.rate
        self.unsaved.append((window.window_index, window.rate))
        if self.model is None:
            return
        if anew:
            self.model.admit(self.job, self.history(window.window_index, window.window_index - 1))
        else:
            for _ in range(missing):
                self.model.step(self.job, math.nan)
        self.model.step(self.job, window.rate)

    def make_forecast(self, deployment: Deployment, measured_ns: int, time_scale: float) -> tuple[Forecast | None, str]:
        """Return (forecast after the newest window, ""), or (None, reason) where none may be made.

        The reason is "warming", "model_error" or "doubted", as `models.forecast.core.gaps.silence_reason` says.

        Args:
            deployment: the model version in service for the window.
            measured_ns: wall time when the record that closed the window was measured, ns since the epoch.
            time_scale: seconds of job time per wall second.
        """
        quantiles = np.full((1, 1), np.nan) if self.model is None else self.model.current(self.job)
        if reason := silence_reason(self.streak, quantiles):
            self.standing = None  # heartbeats vouch for none: the last one is to age where it is held
            return None, reason
        assert self.model is not None and self.newest is not None, "without a model the quantiles are NaN"
        context = ForecastContext(
            self.job, self.newest, self.step_s, measured_ns / 1e9, time_scale, self.server.epoch,
            self.newest - (self.first or 0) + 1, self.rate, self.open_window.ahead_s,
        )  # fmt: skip
        basis = self.model.basis(self.job)
        return build_message(quantiles, basis, self.model.forecaster.levels, deployment, context), ""

    def state_to_store(self, window_index: int) -> bytes:
        """Return the model's state (MessagePack) to be stored with a window, and note that one was stored.

        Empty without a model, and for a state above 8,192 bytes except at the first call, every 256 windows, and after
        a gap.
        """
        if self.model is None:
            return b""
        after_gap = self.streak is not None and self.streak.row == 1
        if self.large_state and self.state_stored and not after_gap and window_index % LARGE_STATE_WINDOWS:
            return b""
        self.state_stored = True
        return self.model.state(self.job)

    def due_heartbeats(self, sample: MetricSample, wall_time: float) -> list[Heartbeat]:
        """Return the job's heartbeat in a list, or an empty list within 8 wall seconds (`HEARTBEAT_S`) of the last one.

        It names what stands. `wall_time` (epoch seconds) is remembered; `sample` is the job's newest.
        """
        if 0 <= wall_time - self.last_heartbeat < HEARTBEAT_S:  # a clock that was set back begins anew
            return []
        self.last_heartbeat = wall_time
        epoch, since = (None, None) if self.standing is None else (str(self.standing[0]), self.standing[1])
        return [Heartbeat(self.job, "serving", sample.time + sample.span_s, wall_time, sample.time_scale, epoch, since)]

    def note_sent(self, forecast: Forecast | None) -> None:
        """Note the newest forecast that was sent, which heartbeats name; None: none was."""
        self.standing = None if forecast is None else (forecast.epoch, forecast.wall_time)
