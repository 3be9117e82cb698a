"""What a closed window causes: its record, the model's state, the forecast, and the message that waits to be sent."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from pipelines.serve.net.wire import Found
from pipelines.serve.step.event import issued_in, record
from pipelines.serve.step.following import Following
from pipelines.serve.step.generations import Generation
from pipelines.serve.step.keys import checkpoint_key, forecast_key, quarantine_key, sample_key, state_key
from pipelines.serve.step.records import ForecastValue, Outgoing, SampleValue, StateValue, packed
from pipelines.serve.step.windower import Window
from pipelines.store import Store
from pipelines.store.writing.event import Event
from tidecast.messages import Reject, encode


class Left(NamedTuple):
    """A forecast record put with an event; its commit time is the event's once that is committed.

    `event_time` is in ns since the epoch, `version` the index of the window it was made after.
    """

    event: Event
    version: int
    event_time: int
    value: bytes

    def found(self) -> Found:
        """Return the record as the socket sends it; call it after the commit, because before that its ts is 0."""
        return Found(self.version, self.event.ts, self.event_time, self.value)


class Closing:
    """Puts what a closed window causes into an event; with `sends`, its forecast also goes into the outbox."""

    def __init__(self, sends: bool) -> None:
        self._sends = sends
        self.adopted: dict[tuple[str, int], ForecastValue] = {}
        """Forecasts that were sent before this store was rebuilt: they keep their bytes. By (job, window index)."""
        self.leaving: list[tuple[Event, Outgoing]] = []
        """What the open transaction puts into the outbox."""

    def close(
        self, event: Event, following: Following, window: Window, wall_time: float, time_scale: float
    ) -> Left | None:
        """Put a window's record, the stepped model's state and the forecast into an open event.

        Steps the job's model (see `Following.step`). If `Closing` sends, the forecast also goes into the outbox.

        Args:
            event: open; the caller commits it.
            following: the job.
            window: closed, newer than the job's newest.
            wall_time: of the record that closed it, epoch seconds.
            time_scale: of that record, seconds of job time per wall second.

        Returns:
            The forecast's record (also where the reason for none is stored in it); None where no model serves the
            window.

        Raises:
            Conflict: the window or its state is stored with other bytes.
            BadInput: a key or time is not valid.
            SeriesError: the window is older than the newest one.
        """
        happened = round(wall_time * 1e9)
        value = packed(SampleValue(window.rate, window.lag, window.busy_s, time_scale))
        event.put(sample_key(following.job, following.step_s), value, window.version, happened)
        by = following.step(window)
        left = self.issue(event, following, by, happened, time_scale)
        self._keep_state(event, following, window.version)
        return left

    def issue(
        self, event: Event, following: Following, by: Generation | None, happened: int, time_scale: float
    ) -> Left | None:
        """Put the forecast after the job's newest window into the event, and into the outbox what is to be sent of it.

        A forecast that was sent before the store was rebuilt (`adopted`) is put as it was and not sent again.

        Args:
            event: open; the caller commits it.
            following: the job, stepped to its newest window.
            by: the generation (loaded model) that serves it; None for none.
            happened: when the record that closed the window was measured, ns since the epoch.
            time_scale: seconds of job time per wall second.

        Returns:
            The forecast's record, which may hold a reason instead of a forecast; None without `by` and `adopted`.

        Raises:
            Conflict: a forecast is stored for the window with other bytes.
        """
        version, job, key = following.newest or 0, following.job, forecast_key(following.job, following.step_s)
        value = self.adopted.get((job, version))
        if value is not None:
            following.issued = issued_in(value)
        elif by is None:
            return None
        else:
            issued, reason = following.forecast(by, happened, time_scale)
            assert following.streak is not None, "a window was taken"
            value = record(issued, reason, following.streak, by)
            if issued is not None:
                following.issued = issued
                if self._sends:
                    note = packed(record(None, "", following.streak, by))
                    self._leave(event, Outgoing("forecasts", job, key, version, note, value.message))
        stored = packed(value)
        event.put(key, stored, version, happened)
        return Left(event, version, happened, stored)

    def set_aside(self, event: Event, store: Store, reject: Reject) -> None:
        """Put a refused record under `/quarantine/TOPIC`, and a message to the topic `rejects` into the outbox.

        Versions there count up from 1.

        Args:
            event: open; the caller commits it.
            store: tells the newest version.
            reject: the record and why it was refused.

        Raises:
            BadInput: the topic's name makes no key.
            MessageError: the reject cannot be encoded.
        """
        value, key = encode(reject), quarantine_key(reject.topic)
        newest = store.get(key)
        waiting = sum(entry.key == key for _, entry in self.leaving)  # in the open transaction, too
        version = (0 if newest is None else newest.version) + 1 + waiting
        event.put(key, value, version)
        self._leave(event, Outgoing("rejects", reject.topic, key, version, b"", value))

    def _leave(self, event: Event, entry: Outgoing) -> None:
        event.outbox(packed(entry))
        self.leaving.append((event, entry))

    def _keep_state(self, event: Event, following: Following, version: int) -> None:
        job, step_s, streak = following.job, following.step_s, following.streak
        assert streak is not None, "a window was taken"
        carried = following.carried(version)
        state = StateValue(
            max(following.at, 0), following.first or 0, streak.imputed, streak.row, streak.warming, carried
        )
        if following.heavy and carried:
            event.put(checkpoint_key(job, step_s), packed(state), version)
            state = msgspec.structs.replace(state, carried=b"")
        event.put(state_key(job, step_s), packed(state), version)
