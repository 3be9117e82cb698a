"""What a closed window leaves: its record, the model's state, the forecast, and the message that waits to be sent."""

from __future__ import annotations

from typing import NamedTuple

from pipelines.serve.fast.model_cache import ModelCache
from pipelines.serve.step.event import issued_in, record, sampled
from pipelines.serve.step.following import Following
from pipelines.serve.step.generations import Generation
from pipelines.serve.step.keys import checkpoint_key, forecast_key, sample_key, state_key
from pipelines.serve.step.records import ForecastValue, Outgoing, StateValue, packed
from pipelines.serve.step.stepping import Stepper
from pipelines.serve.step.windower import Window
from pipelines.serve.step.windows import Windows
from pipelines.store.writing.event import Event


class Left(NamedTuple):
    """A forecast that was put with an event; its ts is the event's once that is committed."""

    event: Event
    version: int
    event_time: int
    value: bytes


class Closing:
    """Closes windows into events; what nobody `sends` does not wait in the outbox."""

    def __init__(self, windows: Windows, cache: ModelCache, epoch: int, sends: bool) -> None:
        self._sends = sends
        self.stepper = Stepper(windows, cache.find, epoch)
        self.adopted: dict[tuple[str, int], ForecastValue] = {}
        """Forecasts that were sent before this store was rebuilt: they keep their bytes (seed section 7)."""
        self.leaving: list[tuple[Event, Outgoing]] = []
        """What the open transaction puts into the outbox."""

    def close(
        self, event: Event, following: Following, window: Window, wall_time: float, time_scale: float
    ) -> Left | None:
        """Put what a window leaves into an event; the forecast, where a model serves it.

        Args:
            event: open.
            following: the job; it takes the window in.
            window: newer than all before.
            wall_time: of the record that closed it.
            time_scale: of the same.
        """
        job, step_s, version = following.job, following.step_s, window.version
        happened = round(wall_time * 1e9)
        event.put(sample_key(job, step_s), packed(sampled(window, time_scale)), version, happened)
        by = self.stepper.step(following, window)
        left = self.issue(event, following, by, happened, time_scale)
        self._keep_state(event, following, version)
        return left

    def issue(
        self, event: Event, following: Following, by: Generation | None, happened: int, time_scale: float
    ) -> Left | None:
        """Put the forecast after the newest window, and into the outbox what is to be sent of it."""
        version, job = following.newest or 0, following.job
        value = self.adopted.get((job, version))
        if value is None:
            if by is None:
                return None
            issued, reason = self.stepper.issue(following, by, happened, time_scale)
            assert following.streak is not None, "a window was taken"
            value = record(issued, reason, following.streak, by)
            if issued is not None:
                following.issued = issued
            if issued is not None and self._sends:
                note = packed(record(None, "", following.streak, by))
                entry = Outgoing("forecasts", job, forecast_key(job, following.step_s), version, note, value.message)
                event.outbox(packed(entry))
                self.leaving.append((event, entry))
        else:
            following.issued = issued_in(value)
        stored = packed(value)
        event.put(forecast_key(job, following.step_s), stored, version, happened)
        return Left(event, version, happened, stored)

    def committed(self, job: str, version: int) -> None:
        """A forecast is in the store: what was adopted for it is needed no more."""
        self.adopted.pop((job, version), None)

    def _keep_state(self, event: Event, following: Following, version: int) -> None:
        job, step_s, streak = following.job, following.step_s, following.streak
        assert streak is not None, "a window was taken"
        carried = b"" if following.online is None else following.carried(version)
        at, first = max(following.at, 0), following.first or 0
        state = StateValue(at, first, streak.imputed, streak.row, streak.warming, carried)
        if following.heavy and carried:
            event.put(checkpoint_key(job, step_s), packed(state), version)
            state = StateValue(at, first, streak.imputed, streak.row, streak.warming, b"")
        event.put(state_key(job, step_s), packed(state), version)
