"""The stream server: follows `metrics`, steps every job's champion, publishes `forecasts`, swaps models by alias.

One server serves at a time (see `pipelines.kafka.claim`).
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from statistics import median

from configs.settings import Settings
from models.forecast.core.series import SeriesError
from models.forecast.online import Online
from pipelines.deployment import deployment_name
from pipelines.kafka.broker import Follower, Record, read_records, topic_offsets
from pipelines.kafka.claim import SERVING, Claim
from pipelines.kafka.publisher import Publisher
from pipelines.kafka.topics import create_topics
from pipelines.registry import Registry
from pipelines.serve.contracted import ContractedJobs
from pipelines.serve.models.loader import ChampionSource, Loader
from pipelines.serve.models.ready import ReadyModel
from pipelines.serve.partitions import PartitionWatch
from pipelines.serve.step.deployments import choose_first_origin
from pipelines.serve.step.forecasts import encode_forecast
from pipelines.serve.step.jobs import ServedJobs
from pipelines.serve.step.refusals import Refusals
from pipelines.serve.step.samples import read_sample
from pipelines.serve.step.server_context import SILENT_S
from pipelines.serve.step.windows import RecentWindows, warmed_steps
from pipelines.signals import stop_on_signals
from tidecast.messages import Forecast, MessageError, MetricSample

log = logging.getLogger(__name__)
TAIL = 10_000
"""Newest records that tell which jobs report, and how fast their time runs."""
ROUND_S = 0.05
"""Seconds that a round takes at least, so that records gather: each costs 2 ms whatever it brings."""
COUNTED, MARGIN_S = 5, 60.0
"""Newest samples of a job that tell how its time runs; wall seconds that a sender's clock may be behind."""
TROUBLE_S = 300.0
"""Seconds without a forecast not taken after which the next is told again: one sent again shows within two minutes."""
State = tuple[int, int]
"""A job's newest window, and the number of its deployment: of two the later is the greater."""


class Server:
    """The stream server: follows `metrics`, steps every job's model, sends forecasts; `tick` is one round."""

    def __init__(self, settings: Settings, champions: Callable[[], ChampionSource] | None = None) -> None:
        """Publish a claim, go back on `metrics` as far as a model may need, and start the loader's thread.

        Missing topics are created.

        Args:
            settings: of the whole pipeline.
            champions: opens the source of models, in the loader's thread; by default the registry.

        Raises:
            BrokerError: the broker does not answer, or does not take the claim within 30 s.
        """
        kafka, step_s = settings.kafka, settings.training.step_s
        self._poll_s, alias_poll_s = settings.serving.poll_s, settings.serving.alias_poll_s
        create_topics(kafka)
        self._publisher = Publisher(kafka)
        self._claim = Claim(kafka, self._publisher, SERVING, deployment_name(settings.var_dir))
        self.epoch = self._claim.epoch
        known = ContractedJobs(settings.contracts_dir, alias_poll_s)
        self._jobs = ServedJobs(RecentWindows(step_s), known, lambda job, by: self._models[job], self.epoch)
        self._models: dict[str, Online] = {}
        self._refusals = Refusals()
        self._fresh_from = {p: end for p, (_, end) in topic_offsets(kafka, "metrics").items()}
        self._metrics = Follower(kafka, ["metrics"])
        self._metrics.seek_to_time(needed_from(read_samples(read_records(kafka, "metrics", TAIL), known), step_s))
        ends = self._fresh_from  # of a partition whose records are all older than what is needed none is read
        self._behind = {p: ends[p] for (_, p), at in self._metrics.positions().items() if at < ends.get(p, 0)}
        """Offset by partition that is to be reached before anything is issued; none once it is."""
        self._newest: dict[str, MetricSample] = {}
        self._issued, self._told = dict[str, State](), dict[str, State]()  # newest sent, and newest answered
        self._answered: deque[tuple[str, State, Forecast | None, Exception | None]] = deque()
        """Of forecasts that were sent: job, state, the one that the broker took, or its error; by another thread."""
        self._untaken: tuple[type[Exception] | None, float] = None, 0.0  # of the newest error: kind, monotonic time
        self._grown = threading.Event()
        self._partitions = PartitionWatch(kafka, "metrics", len(self._fresh_from), self._grown)
        self._loader = Loader(self._jobs.windows, champions or (lambda: Registry(settings)), known, alias_poll_s)
        self._loader.start()

    def tick(self) -> bool:
        """Do one round: read metrics, send forecasts and heartbeats, swap new models in, look for a later claim.

        Waits up to `serving.poll_s` wall seconds for metrics. Until the records that lay on the topic at the start are
        read, nothing is sent and no model is swapped in. Of records refused one a kind goes to `rejects` in 60 s.

        Returns:
            False once another server has claimed, or `metrics` has got more partitions (which is said); else True.

        Raises:
            BrokerError: a topic stayed unknown to the client, or a record is too large.
        """
        began, now = time.monotonic(), time.time()
        self._note_answers()
        for record in self._metrics.poll(self._poll_s):
            self._take(record, now)
        if not self._behind:
            while self._loader.ready:
                self._promote(self._loader.ready.popleft(), time.time())
            time.sleep(max(began + ROUND_S - time.monotonic(), 0.0))
        if self._claim.superseded():
            print("serving: a server with a later epoch has taken over; leaving", flush=True)
            return False
        return not self._grown.is_set()

    def close(self) -> None:
        """Stop the loader, close the connections, and wait until what was sent is acknowledged.

        Raises:
            BrokerError: a record was not accepted.
        """
        for part in (self._loader, self._partitions, self._metrics, self._claim, self._publisher):
            part.close()

    def _take(self, record: Record, now: float) -> None:
        old = record.offset < self._fresh_from.get(record.partition, 0)
        try:
            sample, windows = self._jobs.add_record(record.key or "", record.value or b"", now)
        except (MessageError, SeriesError) as error:
            if not old and self._refusals.is_news(record.key or "", error, now):  # an old one: when it came
                self._publisher.reject(record, "serving", error)
        else:
            for window in windows:
                self._jobs.step(sample.job, window)
            if sample.kind == "interval":
                self._newest[sample.job] = sample
                if not self._behind:
                    self._publish(sample, now)
        if record.offset + 1 >= self._behind.get(record.partition, float("inf")):
            del self._behind[record.partition]
            if not self._behind:
                self._begin()

    def _begin(self) -> None:
        """All that was on the topic is known."""
        for job, sample in sorted(self._newest.items()):
            first, newest = self._jobs.job(job).first, self._jobs.windows.newest(job)
            known = "no window yet" if first is None or newest is None else f"{newest - first + 1} windows of history"
            print(f"serving {job}: from {sample.time + sample.span_s:.0f} on (job time), {known}", flush=True)

    def _note_answers(self) -> None:
        """Vouch for the newest that the broker answered, if it took that; send the newest again, if it did not."""
        while self._answered:
            job, state, taken, error = self._answered.popleft()
            if state >= self._told.get(job, state):  # not only of the newest: windows may come faster than answers
                self._told[job] = state
                self._jobs.job(job).note_sent(taken)
            if error is None:
                continue
            if self._issued.get(job) == state:
                del self._issued[job]
            (told, last), now = self._untaken, time.monotonic()
            if type(error) is not told or now - last > TROUBLE_S:  # once, not for every forecast
                print(f"serving {job}: the broker did not take a forecast, it is sent again: {error!r}", flush=True)
            self._untaken = type(error), now

    def _publish(self, sample: MetricSample, now: float) -> None:
        """Send the job's forecast if window or model changed since the last one, and a heartbeat if it is due."""
        job, served = sample.job, self._jobs.job(sample.job)
        state = served.newest or 0, served.deployment_number
        if self._issued.get(job) != state and (forecast := self._jobs.forecast(sample)) is not None:
            sent = self._publisher.send_bytes("forecasts", job.encode(), encode_forecast(forecast))
            sent.add_callback(lambda _: self._answered.append((job, state, forecast, None)))
            sent.add_errback(lambda error: self._answered.append((job, state, None, error)))
            self._issued[job] = state
        for beat in served.due_heartbeats(sample, now) if now - sample.wall_time < SILENT_S else ():
            self._publisher.send("heartbeats", job, beat)

    def _promote(self, ready: ReadyModel, now: float) -> None:
        job, served = ready.job, self._jobs.job(ready.job)
        number = served.deployments[-1].number + 1 if served.deployments else 1
        first_origin = choose_first_origin(served.deployments, served.newest, None)
        deployment = ready.deployment(number, first_origin, self._jobs.windows.step_s)
        self._models[job] = ready.model
        served.deployments[:] = [deployment]
        try:
            served.switch_model(ready.model, deployment, ready.warm_state)
        except Exception:  # one job's model may not stop the others; it begins anew at the next window
            log.exception("serving %s: version %s failed", job, ready.version)
            served.drop_model()
        print(f"serving {job}: champion is version {ready.version} ({ready.model_set.forecaster.kind})", flush=True)
        if job in self._newest:
            self._publish(self._newest[job], now)


def needed_from(samples: Iterable[MetricSample], step_s: float) -> float:
    """Return the wall time (epoch s) since when `warmed_steps` windows of every job were measured; 0 without any.

    Each job's time runs at its own `time_scale`: at 720 job seconds per wall second, 60 days are two hours on the wall.
    `MARGIN_S` is subtracted for late clocks.

    Args:
        samples: the newest `COUNTED` of a job count, that is its last here: by the latest time and the median scale, so
            that a single wrong one does not have all jobs wait until the whole topic is read.
        step_s: seconds per window.
    """
    newest: dict[str, deque[tuple[float, float]]] = {}
    for sample in samples:
        newest.setdefault(sample.job, deque(maxlen=COUNTED)).append((sample.wall_time, sample.time_scale))
    depth_s = (warmed_steps(step_s) + 2) * step_s  # the first and the last window are parts
    clocks = [(max(wall for wall, _ in told), median(scale for _, scale in told)) for told in newest.values()]
    return max(min((wall - depth_s / scale - MARGIN_S for wall, scale in clocks), default=0.0), 0.0)


def read_samples(records: Iterable[Record], jobs: Collection[str]) -> Iterator[MetricSample]:
    """Yield the samples of some jobs among records of `metrics`."""
    now = time.time()
    for record in records:
        with suppress(MessageError):  # it was rejected when it came
            if (sample := read_sample(record.value or b"", now, record.key or "")).job in jobs:
                yield sample


def serve_stream(settings: Settings) -> None:
    """Serve forecasts by the stream server until SIGTERM, ctrl-C, or until another server takes over.

    It ends, too, where `metrics` has got more partitions: the next run follows all. Missing topics are created. What is
    queued is sent before it returns (waits up to 120 s). Call it from the main thread.

    Args:
        settings: of the whole pipeline.

    Raises:
        BrokerError: the broker does not answer at the start, does not take this server's claim (by which an older
            server leaves), or did not accept a record while serving or at the end.
        ValueError: not called from the main thread, or an unknown security option.
    """
    logging.getLogger("kafka").setLevel(logging.CRITICAL)  # else every refused connection, ten times a second
    stop = threading.Event()
    with stop_on_signals(stop):
        server = Server(settings)
        print(f"serving: epoch {server.epoch}, process {os.getpid()}", flush=True)
        try:
            while not stop.is_set() and server.tick():
                pass
        finally:
            server.close()
