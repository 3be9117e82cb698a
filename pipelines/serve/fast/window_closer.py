"""What a closed window causes: its record, the model's state, the forecast, and the message that waits to be sent."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import msgspec

from pipelines.serve.net.wire import Found
from pipelines.serve.step.deployments import Deployment
from pipelines.serve.step.forecasts import build_record, decode_forecast, encode_forecast
from pipelines.serve.step.job import ServedJob
from pipelines.serve.step.keys import checkpoint_key, forecast_key, quarantine_key, sample_key, state_key
from pipelines.serve.step.records import (
    ForecastValue,
    OutgoingMessage,
    SampleValue,
    StateValue,
    decode_value,
    encode_value,
)
from pipelines.serve.step.server_context import SILENT_S
from pipelines.serve.step.windower import Window
from pipelines.store import Store
from pipelines.store.writing.event import Event
from tidecast.messages import MetricSample, Reject, encode


class PendingForecast(NamedTuple):
    """A forecast record put into an event; its commit time is the event's once that is committed.

    `event_time` is in ns since the epoch, `window_index` that of the window it was made after.
    """

    event: Event
    window_index: int
    event_time: int
    value: bytes

    def found(self) -> Found:
        """Return the record as the socket sends it; call it after the commit, because before that its ts is 0."""
        return Found(self.window_index, self.event.ts, self.event_time, self.value)


class WindowCloser:
    """Puts what a closed window causes into an event of the store."""

    def __init__(self, sends: bool) -> None:
        """Start with nothing adopted; with `sends`, forecasts also go into the store's outbox."""
        self._sends = sends
        self.adopted: dict[tuple[str, int], ForecastValue] = {}
        """Forecasts that were sent before this store was rebuilt: they keep their bytes. By (job, window index)."""
        self.outgoing: list[tuple[Event, OutgoingMessage]] = []
        """What the open transaction puts into the outbox."""

    def close_window(
        self, event: Event, served: ServedJob, window: Window, wall_time: float, time_scale: float
    ) -> PendingForecast | None:
        """Step the job's model over a closed window, and put window, model state and forecast into an open event.

        Args:
            event: open; the caller commits it.
            served: the job; its state changes at once.
            window: newer than the job's newest.
            wall_time: when the record that closed it was measured, epoch seconds.
            time_scale: of that record, seconds of job time per wall second.

        Returns:
            The forecast's record, which may hold a reason instead of a forecast; None where no model serves the window.

        Raises:
            Conflict: the window, its state or its forecast is stored with other bytes.
            BadInput: a key or time is not valid.
            SeriesError: the window is older than the newest one.
            StoreError, MessageError: a stored version cannot be read to compare with, or the forecast not encoded.
        """
        measured_ns = round(wall_time * 1e9)
        value = encode_value(SampleValue(window.rate, window.lag, window.busy_s, time_scale))
        event.put(sample_key(served.job, served.step_s), value, window.window_index, measured_ns)
        deployment = served.step(window)
        forecast = self.put_forecast(event, served, deployment, measured_ns, time_scale)
        self._put_state(event, served, window.window_index)
        return forecast

    def put_forecast(
        self, event: Event, served: ServedJob, deployment: Deployment | None, measured_ns: int, time_scale: float
    ) -> PendingForecast | None:
        """Make the forecast after the job's newest window and put its record into an open event.

        If forecasts are sent, its message goes into the outbox (messages that wait for Kafka) with the same event. A
        forecast that was sent before the store was rebuilt (`adopted`) is put as it was and not sent again.

        Args:
            event: open; the caller commits it.
            served: the job, stepped to its newest window.
            deployment: the model version in service for the window; None for none.
            measured_ns: when the record that closed the window was measured, ns since the epoch.
            time_scale: seconds of job time per wall second.

        Returns:
            The forecast's record, which may hold a reason ("warming", "model_error", "doubted") instead of a forecast;
            None where no model serves the window and no forecast was adopted for it.

        Raises:
            Conflict, BadInput: a forecast is stored for the window with other bytes, or the time is not valid.
            MessageError, msgspec.DecodeError: the forecast cannot be encoded, or an adopted one not decoded.
            StoreError: a stored version cannot be read to compare with.
        """
        window_index, job, key = served.newest or 0, served.job, forecast_key(served.job, served.step_s)
        value = self.adopted.get((job, window_index))
        if value is not None:
            served.note_sent(decode_forecast(value))
        elif deployment is None:
            return None
        else:
            issued, reason = served.make_forecast(deployment, measured_ns, time_scale)
            assert served.streak is not None, "a window was taken"
            value = build_record(issued, reason, served.streak, deployment)
            if issued is not None:
                served.note_sent(issued)
                if self._sends:
                    note = encode_value(build_record(None, "", served.streak, deployment))
                    self._send_later(event, OutgoingMessage("forecasts", job, key, window_index, note, value.message))
        stored = encode_value(value)
        event.put(key, stored, window_index, measured_ns)
        return PendingForecast(event, window_index, measured_ns, stored)

    def renew_standing(
        self, event: Event, store: Store, served: ServedJob, sample: MetricSample, now: float
    ) -> None:  # fmt: skip
        """Send a forecast that stands of an earlier server once more, by this one's epoch: the store's record stays.

        Of a server that served in between, readers hold another by a higher epoch, for which no heartbeat vouches.
        Nothing is sent where forecasts are not, for a sample of over 10 s ago, or once the forecast's first step ended.

        Args:
            event: open; the caller commits it.
            store: holds the forecast.
            served: the job.
            sample: the newest of the job; gives the message's `wall_time`.
            now: wall time, epoch seconds.

        Raises:
            StoreError, msgspec.DecodeError: the forecast cannot be read.
            MessageError: it cannot be encoded.
        """
        epoch, newest = served.server.epoch, served.newest
        live = self._sends and now - sample.wall_time < SILENT_S
        if not live or newest is None or served.standing is None or served.standing[0] == epoch:
            return
        key = forecast_key(served.job, served.step_s)
        record = store.get(key, newest)  # None where one was adopted in the open transaction
        issued = None if record is None else decode_forecast(decode_value(ForecastValue, record.value))
        if issued is None or sample.time >= issued.time + issued.step_s:
            return
        again = replace(issued, epoch=epoch, wall_time=sample.wall_time)
        self._send_later(event, OutgoingMessage("forecasts", served.job, key, newest, b"", encode_forecast(again)))
        served.note_sent(again)

    def quarantine(self, event: Event, store: Store, reject: Reject) -> None:
        """Put a refused record under `/quarantine/TOPIC` in the store, and a message to `rejects` into the outbox.

        Its version there is one above the newest, from 1 on.

        Args:
            event: open, volatile; the caller commits it.
            store: tells the newest version.
            reject: the record and why it was refused.

        Raises:
            BadInput: the topic's name makes no key, or a second reject of the topic in one event.
            MessageError: the reject cannot be encoded.
            StoreError: the newest version cannot be read.
        """
        value, key = encode(reject), quarantine_key(reject.topic)
        newest = store.get(key)
        waiting = sum(entry.key == key for _, entry in self.outgoing)  # in the open transaction, too
        version = (0 if newest is None else newest.version) + 1 + waiting
        event.put(key, value, version)
        self._send_later(event, OutgoingMessage("rejects", reject.topic, key, version, b"", value))

    def _send_later(self, event: Event, entry: OutgoingMessage) -> None:
        event.outbox(encode_value(entry))
        self.outgoing.append((event, entry))

    def _put_state(self, event: Event, served: ServedJob, window_index: int) -> None:
        job, step_s, streak = served.job, served.step_s, served.streak
        assert streak is not None, "a window was taken"
        carried = served.state_to_store(window_index)
        state = StateValue(
            max(served.deployment_number, 0), served.first or 0, streak.imputed, streak.row, streak.warming, carried
        )
        if served.large_state and carried:
            event.put(checkpoint_key(job, step_s), encode_value(state), window_index)
            state = msgspec.structs.replace(state, carried=b"")
        event.put(state_key(job, step_s), encode_value(state), window_index)
