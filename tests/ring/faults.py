"""Faults for the ring's test, each against real processes, at shares of the live replay."""

from __future__ import annotations

import contextlib
import json
import math
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator

import psutil

from pipelines.bench.borders.corpus import JOB as STRANGER
from pipelines.bench.borders.corpus import make_corpus
from pipelines.demo.progress import LiveFigures, Screen
from pipelines.kafka.broker import Follower
from pipelines.kafka.connection import BrokerError
from pipelines.kafka.publisher import Publisher
from pipelines.stack.executors import oldest_executor
from pipelines.stack.stack import Stack
from tests.fakes.bad_events import BAD_EVENTS
from tests.fakes.waiting import wait_until
from tidecast.messages import Decision, Forecast, MetricSample, Outcome, decode, encode

BROKER_AWAY_S = 5.0
MENDED_S = 120.0
FOREIGN = "nobody's model"
SIGNED = "key_window"
"""The job that obeys signed messages alone."""
LONGEST = 1_000_000
"""Bytes of a record: a longer one does not leave its producer."""
COMPACTED = ("contracts", "control")
"""On these the broker itself takes no record without a key."""


class FaultyScreen(Screen):
    """A screen that breaks things as the live bar passes their place."""

    def __init__(self, stack: Stack, job: str) -> None:
        super().__init__()
        self.stack, self.job = stack, job
        self.done: dict[str, float] = {}
        self.killed, self.killed_at = "", 0.0
        self.sent = Counter[str]()
        self.failed: dict[str, BaseException] = {}
        self.threads: list[threading.Thread] = []
        # The load has begun to rise on a forecast by the time that forecasts are taken away.
        self.plan = [
            (0.07, self.send_bad_records),
            (0.38, self.kill_executor),
            (0.5, self.take_broker_away),
            (0.55, self.kill_serving),
        ]

    def live(self, share: float, view: LiveFigures) -> None:
        super().live(share, view)
        while self.plan and share >= self.plan[0][0]:
            _, fault = self.plan.pop(0)
            thread = threading.Thread(target=self._guarded, args=(fault,))
            thread.start()
            self.threads.append(thread)
        if share >= 1:  # the run is not over before all is well again
            for thread in self.threads:
                thread.join(MENDED_S)

    def _guarded(self, fault) -> None:
        try:
            fault()
        except BaseException as error:  # a wait that was in vain, too
            self.failed[fault.__name__] = error
        else:
            self.done[fault.__name__] = time.time()

    def kill_executor(self) -> None:
        """The oldest executor of the job itself."""
        oldest = oldest_executor(self.stack.id, self.stack.processes[self.job].pid)
        self.killed, self.killed_at = oldest.id, time.time()
        oldest.process.kill()

    def kill_serving(self) -> None:
        """Kill the server of forecasts, and wait for one of the next."""
        logs = self.stack.settings.var_dir / "airflow" / "logs"
        started = re.compile(r"serving: epoch (\d+), process (\d+)")
        found = {
            int(pid): int(epoch)
            for f in logs.rglob("*.log")
            for epoch, pid in started.findall(f.read_text(errors="replace"))
        }
        pid = next(pid for pid in found if psutil.pid_exists(pid))
        psutil.Process(pid).kill()

        def later() -> bool:
            issued = (decode(Forecast, r.value) for r in follower.poll(1.0) if r.key == self.job)
            return any(forecast.epoch > found[pid] for forecast in issued)

        wait_until(lambda: "take_broker_away" in self.done, "the broker", every_s=0.1)
        with contextlib.closing(wait_until(self._follower, "the broker's answer")) as follower:
            wait_until(later, "a forecast of the next server")

    def _follower(self) -> Follower | None:
        """Of new forecasts; None while a broker that was started again takes connections and answers none."""
        try:
            return Follower(self.stack.settings.kafka, ["forecasts"], "latest")
        except BrokerError:
            return None

    def take_broker_away(self) -> None:
        self.stack.processes["broker"].kill()
        time.sleep(BROKER_AWAY_S)
        self.stack.respawn("broker")

    def send_bad_records(self) -> None:
        publisher = Publisher(self.stack.settings.kafka)
        for topic, good in good_messages(self.job).items():
            for bad in bad_versions(good):
                publisher.send_bytes(topic, self.job.encode(), bad)
        # Of a moment ahead: behind a real decision that comes meanwhile it would be refused for its order.
        beyond = good_decision(self.job, executors=99, id="beyond-bounds", wall_time=time.time() + 3)
        publisher.send("decisions", self.job, beyond)
        unsigned = encode(good_decision(SIGNED, executors=1, id="unsigned"))  # as by somebody without the key
        publisher.send_bytes("decisions", SIGNED.encode(), unsigned)
        self.sent = Counter(self._send_corpus(publisher))
        publisher.close()

    def _send_corpus(self, publisher: Publisher) -> Iterator[str]:
        """The whole border corpus and every bad event, the wrong ones also as the running job's; yields the topics."""
        for entry in make_corpus(time.time()):
            if len(entry.value or b"") < LONGEST and not (entry.key is None and entry.topic in COMPACTED):
                publisher.send_bytes(entry.topic, entry.key, entry.value)
                yield entry.topic
                if entry.good is False:
                    mine = [part and part.replace(STRANGER.encode(), self.job.encode()) for part in entry[1:3]]
                    publisher.send_bytes(entry.topic, *mine)
                    yield entry.topic
        for raw, _ in BAD_EVENTS.values():
            publisher.send_bytes("events", b"a", raw)
            yield "events"


def good_decision(job: str, **changes) -> Decision:
    now = time.time()
    fields = dict(
        id="test", job=job, time=now, wall_time=now, time_scale=1.0, mode="act", policy="forecast", executors=2,
        reason="a test", codes=["up"], inputs={}, expected={},
    )  # fmt: skip
    return Decision(**{**fields, **changes})


def good_messages(job: str) -> dict[str, bytes]:
    """One well-formed message per topic, from which the bad ones are made."""
    now = time.time()
    return {
        "metrics": encode(MetricSample(job, "interval", now, now, arrival_rps=1.0)),
        "forecasts": encode(
            Forecast(job, now, now, 1.0, 60.0, [0.5], [[1.0]], FOREIGN, "1", "champion", "network", 1, epoch=0)
        ),
        "decisions": encode(good_decision(job)),
        "outcomes": encode(Outcome("d", job, now, now, 1.0, "confirmed", "a test")),
    }


def bad_versions(good: bytes) -> list[bytes]:
    """Malformed, NaN, negative, far-future and unknown-schema versions of a message."""
    data = json.loads(good)
    number = next(k for k in ("arrival_rps", "quantiles", "executors", "target", "time") if k in data)
    negative = [[-5.0]] if number == "quantiles" else -5
    return [
        b"{not json",
        json.dumps({**data, "wall_time": math.nan}).encode(),
        json.dumps({**data, number: negative}).encode(),
        json.dumps({**data, "wall_time": data["wall_time"] + 10**7}).encode(),
        json.dumps({**data, "schema": 99}).encode(),
    ]
