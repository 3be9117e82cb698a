"""The stream server on a real broker: a registry that hangs, a long topic, a wrong record, and what is said when."""

import socket
import threading
import time
import uuid

import pytest

from configs.settings import load
from models.forecast.baselines.naive import Naive
from pipelines.kafka.broker import Follower, read_records, topic_offsets
from pipelines.kafka.publisher import Publisher
from pipelines.kafka.topics import create_topic, create_topics
from pipelines.registry import Champion, Registry
from pipelines.serve.step.windows import warmed_steps
from pipelines.serve.stream.server import Server
from tests.fakes.forecasters import STEP, TASK
from tests.fakes.serving import BEGIN
from tests.fakes.waiting import PATIENCE_S
from tidecast.messages import Forecast, Heartbeat, MetricSample, Reject, decode, encode

pytestmark = pytest.mark.integration
JOB = "word_count"


class Champions:
    """A registry whose look-ups go on in `then`, after as many answers as `good` says."""

    def __init__(self, then=None, good=1):
        self.then, self.good = then, good

    def champions(self):
        self.good -= 1
        return {JOB: Champion("1")} if self.good >= 0 else self.then()

    def model_name(self, job):
        return f"{job}-forecaster"

    def fetch(self, job, version):
        return Naive(TASK), None


class Silent:
    """A port that accepts and never answers, as a hanging MLflow does."""

    def __init__(self):
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.uri = f"http://127.0.0.1:{self.listening.getsockname()[1]}"
        self.accepted = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        try:
            while True:
                self.accepted.append(self.listening.accept()[0])
        except OSError:
            return

    def close(self):
        self.listening.close()
        for one in self.accepted:
            one.close()


@pytest.fixture
def kafka(request):
    return request.getfixturevalue(getattr(request, "param", "empty_topics"))


@pytest.fixture
def parted(broker):
    """Topics of this test's own, `metrics` in two partitions, as a site may have made it."""
    own = broker.model_copy(update={"prefix": f"{uuid.uuid4().hex[:8]}.", "event_partitions": 2})
    create_topic(own, "metrics")
    create_topics(own)
    return own


@pytest.fixture
def send(kafka):
    """Publish samples, each a share of a window, and wait until the broker has them."""
    publisher = Publisher(kafka)

    def sent(window, part=0, parts=1, **changes):
        fields = {
            "job": JOB, "kind": "interval", "time": (window + part / parts) * STEP, "wall_time": time.time(),
            "time_scale": 720.0, "span_s": STEP / parts, "arrival_rps": 100.0 + window % 24,
        }  # fmt: skip
        sample = encode(MetricSample(**{**fields, **changes}))
        publisher.send_bytes("metrics", JOB.encode(), sample, timestamp_s=changes.get("wall_time"))

    sent.raw = lambda value, *where: publisher.send_bytes("metrics", JOB.encode(), value, *where)
    sent.flush = publisher.flush
    yield sent
    publisher.close()


@pytest.fixture
def heard(kafka):
    """What a server has said on a topic so far; a consumer of its own for each look would cost more than the server."""
    follower, said = Follower(kafka, ["forecasts", "rejects"]), []

    def of(topic, kind):
        said.extend(follower.poll(0.0))
        return [decode(kind, record.value) for record in said if record.topic == topic]

    yield of
    follower.close()


def serve(kafka, champions, **training):
    return Server(
        load(kafka=kafka.model_dump(), training={"step_s": STEP, **training}, serving={"alias_poll_s": 0.05}), champions
    )


def drive(server, holds, what):
    """Rounds until `holds`."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := holds()):
        assert time.monotonic() < deadline, what
        assert server.tick()
    return found


def on(kafka, topic, kind):
    return [decode(kind, record.value) for record in read_records(kafka, topic)]


def test_while_the_registry_hangs_every_job_is_forecast_on(kafka, send, heard, tmp_path):
    silent = Silent()
    hanging = load(var=tmp_path, mlflow={"tracking_uri": silent.uri})
    for window in range(40):
        send(BEGIN + window)
    send.flush()
    server = serve(kafka, lambda: Champions(lambda: Registry(hanging).champions()))
    try:
        send(BEGIN + 40)
        drive(server, lambda: heard("forecasts", Forecast), "the first forecast")
        drive(server, lambda: silent.accepted, "a look-up that hangs")
        for window in range(41, 46):
            send(BEGIN + window)
            send.flush()
            until = (BEGIN + window + 1) * STEP
            drive(server, lambda until=until: heard("forecasts", Forecast)[-1].time == until, f"window {window}")
        assert server._loader._thread.is_alive() and not server._loader.ready
    finally:
        silent.close()
        server.close()


def test_a_forecast_is_said_once_and_then_vouched_for(kafka, send, heard, monkeypatch):
    monkeypatch.setattr("pipelines.serve.stream.server.SILENT_S", 1e6)  # however slowly it gets on
    monkeypatch.setattr("pipelines.serve.step.job.HEARTBEAT_S", 1e6)
    for window in range(40):
        send(BEGIN + window)
    send.flush()
    server = serve(kafka, Champions)
    try:
        now = time.time()
        send(BEGIN + 40, wall_time=now - 9)
        send.flush()
        drive(server, lambda: heard("forecasts", Forecast), "a forecast")
        for second in range(9):
            send(BEGIN + 41, second, 10, wall_time=now - 8 + second)
        send.raw(b'{"job": "nobody"}')
        drive(server, lambda: heard("rejects", Reject), "the end of the topic")
        server._jobs.job(JOB).last_heartbeat = 0.0
        send(BEGIN + 41, 9, 10, wall_time=now)
        drive(server, lambda: len(heard("forecasts", Forecast)) == 2, "the next forecast")
    finally:
        server.close()
    said = on(kafka, "forecasts", Forecast)
    assert [f.time / STEP - BEGIN for f in said] == [41, 42] and {f.epoch for f in said} == {server.epoch}
    beats = on(kafka, "heartbeats", Heartbeat)
    assert {(beat.by, beat.job) for beat in beats} == {("serving", JOB)}
    # The second goes out with this one, and is vouched for once the broker has it.
    assert [(beat.standing, beat.since) for beat in beats if beat.standing] == [(str(server.epoch), said[0].wall_time)]


def test_a_record_that_no_series_can_take_is_rejected_and_the_job_goes_on(kafka, send, heard):
    for window in range(40):
        send(BEGIN + window)
    send(BEGIN + 40, time=time.time() * 1000)  # before the start: refused when it came
    send.flush()
    server = serve(kafka, Champions)
    try:
        for wrong in ({"time": time.time() * 1000}, {"time": -5.0}, {"span_s": 1e12}):
            send(BEGIN + 40, **wrong)
        send(BEGIN + 40)
        send.flush()
        drive(server, lambda: heard("forecasts", Forecast), "a forecast")
    finally:
        server.close()
    assert len(on(kafka, "rejects", Reject)) == 3


@pytest.mark.parametrize("kafka", ["parted"], indirect=True)
def test_a_partition_with_an_old_refused_record_alone_keeps_no_job_waiting(kafka, send, heard):
    for window in range(40):
        send(BEGIN + window)
    send.flush()
    (other,) = (partition for partition, (_, end) in topic_offsets(kafka, "metrics").items() if not end)
    send.raw(b'{"job": "nobody"}', other, time.time() - 6 * 3600)
    send.flush()
    server = serve(kafka, Champions)
    try:
        send(BEGIN + 40)
        drive(server, lambda: heard("forecasts", Forecast), "a forecast")
    finally:
        server.close()


def test_a_server_begins_where_its_models_do_however_long_the_topic(kafka, send, capsys):
    now, days = time.time(), 10
    for i in range(days * 144):  # ten minutes a record
        at = now - (days * 144 - i) * 600
        send(0, time=at, span_s=600.0, wall_time=at + 600, time_scale=1.0)
    send.flush()
    server = serve(kafka, Champions, step_s=60)
    try:
        drive(server, lambda: not server._behind, "the end of the topic")
        first = server._jobs.job(JOB).first
    finally:
        server.close()
    assert topic_offsets(kafka, "metrics")[0][1] == days * 144
    missed = first - (now / 60 - warmed_steps(60))
    assert -12 <= missed <= 0, "as much as a champion is warmed on, and ten minutes more at most"
    assert f"serving {JOB}: from {now:.0f} on (job time), " in capsys.readouterr().out
