"""The forecast server: follows `metrics`, steps every job's champion, publishes `forecasts`, swaps models by alias.

One server serves at a time (see `pipelines.serve.claim`). `serving.path` says whether it is this one or the fast path.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from configs.contract import load_contracts
from configs.settings import Settings
from pipelines.kafka.broker import Follower, Publisher, Record, create_topics, offsets
from pipelines.registry import Registry, RegistryError
from pipelines.serve.claim import Claim
from pipelines.serve.fleet import SILENT_S, Champion, JobState
from pipelines.serve.pulse import Pulse
from tidecast.messages import Forecast, MessageError, MetricSample, decode


class Server:
    """The state of serving; `tick` is one round, so that a test can drive it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._jobs: dict[str, JobState] = {}
        self._known = set(load_contracts(settings.contracts_dir))
        self._registry = Registry(settings)
        self._publisher = Publisher(settings.kafka)
        self._pulses: dict[str, Pulse] = {}
        self._standing: dict[str, Forecast] = {}
        self._alias_read = 0.0
        create_topics(settings.kafka)
        self._claim = Claim(settings.kafka, self._publisher)
        self.epoch = self._claim.epoch
        self._fresh_from = {p: end for p, (_, end) in offsets(settings.kafka, "metrics").items()}
        self._metrics = Follower(settings.kafka, ["metrics"])
        self._warm()

    def tick(self) -> bool:
        """One round: metrics in, forecasts out, alias and claims looked at; False once another server took over."""
        now = time.time()
        for record in self._metrics.poll(self._settings.serving.poll_s):
            self._take(record, now)
        if now - self._alias_read >= self._settings.serving.alias_poll_s:
            self._alias_read = now
            self._look_for_champions()
        return not self._claim.lost()

    def close(self) -> None:
        """Send what is queued and leave."""
        for part in (self._metrics, self._claim, self._publisher):
            part.close()

    def _warm(self) -> None:
        """Everything that is already on the topic, job by job, in one pass each."""
        history: dict[str, list[MetricSample]] = {}
        now = time.time()
        for record in self._backlog():
            try:
                sample = decode(MetricSample, record.value, now)
            except MessageError:
                continue  # was rejected when it came
            if sample.kind == "interval" and sample.job in self._known:
                history.setdefault(sample.job, []).append(sample)
        for job, samples in history.items():
            self._job(job).warm(samples)
        self._look_for_champions()
        for job, state in self._jobs.items():
            version = state.champion.version if state.champion else "none yet"
            print(f"serving {job}: {len(state.steps)} steps of history, champion version {version}", flush=True)

    def _backlog(self) -> list[Record]:
        records: list[Record] = []
        ends = {p: end for p, end in self._fresh_from.items() if end > 0}
        reached: dict[int, int] = {}
        deadline = time.monotonic() + 60
        while any(reached.get(p, 0) < end for p, end in ends.items()) and time.monotonic() < deadline:
            for record in self._metrics.poll(0.5):
                reached[record.partition] = record.offset + 1
                records.append(record)
        return records

    def _take(self, record: Record, now: float) -> None:
        try:
            sample = decode(MetricSample, record.value, now)
            if sample.job not in self._known:
                raise MessageError(f"job {sample.job!r} has no contract in {self._settings.contracts_dir}")
        except MessageError as error:
            self._publisher.reject(record, "serving", str(error))
            return
        if sample.kind != "interval":
            return
        state = self._job(sample.job)
        completed = state.push(sample)
        if now - sample.wall_time >= SILENT_S:
            return
        if completed:
            self._publish(sample.job, state, now)
        pulse = self._pulses.setdefault(sample.job, Pulse())
        for beat in pulse.beat(sample, now, self._standing.get(sample.job)):
            self._publisher.send("heartbeats", sample.job, beat)

    def _publish(self, job: str, state: JobState, now: float) -> None:
        forecast = state.forecast(job, now, self.epoch)
        if forecast is not None:
            self._publisher.send("forecasts", job, forecast)
            self._standing[job] = forecast

    def _job(self, job: str) -> JobState:
        return self._jobs.setdefault(job, JobState(self._settings.training.step_s))

    def _look_for_champions(self) -> None:
        for job, state in self._jobs.items():
            try:
                version = self._registry.champion_version(job)
                if version is None or (state.champion and state.champion.version == version):
                    continue
                forecaster = self._registry.load(job, version)
            except RegistryError as error:
                print(f"serving {job}: {error}; the present champion stays", flush=True)
                continue
            if forecaster.step_s != state.step_s:
                steps = f"{forecaster.step_s:g} s steps, training.step_s is {state.step_s:g}"
                print(f"serving {job}: version {version} has {steps}; the present champion stays", flush=True)
                continue
            state.crown(Champion(self._registry.model_name(job), version, forecaster))
            print(f"serving {job}: champion is version {version} ({forecaster.kind})", flush=True)
            self._publish(job, state, time.time())


def serve(settings: Settings) -> None:
    """Serve by the path that the settings name until SIGTERM, ctrl-C, or until another server takes over."""
    if settings.serving.path == "fast":
        from pipelines.serve.fast_server import serve_fast

        serve_fast(settings)
        return
    # Its client says every refused connection ten times a second; an outage shows in the forecasts that do not come.
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    stop = threading.Event()
    with signals(stop):
        server = Server(settings)
        print(f"serving: epoch {server.epoch}, process {os.getpid()}", flush=True)
        try:
            while not stop.is_set():
                if not server.tick():
                    print("serving: a server with a later epoch has taken over; leaving", flush=True)
                    return
        finally:
            server.close()


@contextmanager
def signals(stop: threading.Event) -> Iterator[None]:
    """SIGTERM and ctrl-C set the event while the block runs."""
    before = {name: signal.signal(name, lambda *_: stop.set()) for name in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
