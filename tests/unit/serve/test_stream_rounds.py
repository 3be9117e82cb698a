"""The stream server round by round, on a broker that is played: what is sent again, and when it leaves."""

import threading
import time
from contextlib import ExitStack
from types import SimpleNamespace

import pytest

from configs.settings import load
from models.forecast.baselines.naive import Naive
from pipelines.kafka import librdkafka
from pipelines.kafka.broker import Record
from pipelines.kafka.connection import BrokerError
from pipelines.registry import Champion
from pipelines.serve import partitions
from pipelines.serve.fast import server as fast
from pipelines.serve.stream import server as stream
from pipelines.store import Store
from tests.fakes.forecasters import STEP, TASK
from tests.fakes.serving import BEGIN, raw
from tests.fakes.waiting import wait_until
from tidecast.messages import Forecast, decode

JOB = "word_count"
UNTAKEN = "did not take a forecast, it is sent again"


class Sent:
    """The future of one record: `take` and `fail` make it one that the broker has taken, or has not."""

    def __init__(self, value):
        self.value, self.told, self.taken = value, [], []

    def add_callback(self, tell):
        self.taken.append(tell)

    def add_errback(self, tell):
        self.told.append(tell)

    def take(self):
        for tell in self.taken:
            tell("where it lies")

    def fail(self):
        for tell in self.told:
            tell(TimeoutError("120 s have passed"))


class Broker:
    """Topics and clients of the server: `put` adds to `metrics`, `forecasts` and `beats` hold what was sent."""

    def __init__(self):
        self.coming, self.offset, self.forecasts, self.beats, self.claimed = [], 0, [], [], False
        self.epoch, self.ends, self.rejected = 7, {0: 0}, []

    def put(self, window, part=0, parts=1):
        value = raw(JOB, window, 100.0 + window % 24, part, parts, wall_time=time.time())
        self.coming.append(Record("metrics", 0, self.offset, JOB, value, time.time()))
        self.offset += 1

    def poll(self, wait_s):
        found, self.coming = self.coming, []
        return found

    def seek_to_time(self, wall_time):
        pass

    def positions(self):
        """Where the server was sent: to the end, for nothing there is young enough."""
        return {("metrics", partition): end for partition, end in self.ends.items()}

    def superseded(self):
        return self.claimed

    def send(self, topic, key, message):
        self.beats.append((len(self.forecasts), message))

    def send_bytes(self, topic, key, value):
        assert (topic, key) == ("forecasts", JOB.encode())
        self.forecasts.append(Sent(value))
        return self.forecasts[-1]

    def reject(self, record, by, reason):
        self.rejected.append((record.key, record.offset))

    def close(self):
        pass


class Champions:
    def champions(self):
        return {JOB: Champion("1")}

    def model_name(self, job):
        return f"{job}-forecaster"

    def fetch(self, job, version):
        return Naive(TASK), None


@pytest.fixture
def broker():
    return Broker()


@pytest.fixture
def server(broker, monkeypatch, tmp_path):
    for name in ("Publisher", "Claim", "Follower"):
        monkeypatch.setattr(stream, name, lambda *arguments, **how: broker)
    monkeypatch.setattr(stream, "create_topics", lambda kafka: None)
    monkeypatch.setattr(stream, "topic_offsets", lambda kafka, topic: {p: (0, end) for p, end in broker.ends.items()})
    monkeypatch.setattr(stream, "read_records", lambda *arguments: [])
    settings = load(var=tmp_path, training={"step_s": STEP}, serving={"alias_poll_s": 0.02})
    made = stream.Server(settings, Champions)
    yield made
    made.close()


def test_a_forecast_that_the_broker_did_not_take_is_sent_again_before_it_is_vouched_for(server, broker, capsys):
    for window in range(30):
        broker.put(BEGIN + window)
    wait_until(lambda: server.tick() and broker.forecasts, "a forecast")
    server._jobs.job(JOB).last_heartbeat = 0.0
    broker.put(BEGIN + 30, 0, 9)
    assert server.tick() and len(broker.forecasts) == 1
    broker.forecasts[0].fail()
    server._jobs.job(JOB).last_heartbeat = 0.0
    for part in (1, 2):
        broker.put(BEGIN + 30, part, 9)
        assert server.tick() and len(broker.forecasts) == 2
    first, again = (decode(Forecast, sent.value) for sent in broker.forecasts)
    assert (again.time, again.quantiles) == (first.time, first.quantiles)
    assert [count for count, _ in broker.beats[-2:]] == [1, 2]
    assert capsys.readouterr().out.count(UNTAKEN) == 1


def test_heartbeats_vouch_for_what_the_broker_has_taken_and_for_nothing_once_it_takes_no_more(server, broker):
    """One names the server alone, so that it makes fresh also what a refused forecast was to replace."""
    for window in range(30):
        broker.put(BEGIN + window)
    wait_until(lambda: server.tick() and broker.forecasts, "a forecast")

    def stands(window, part):
        server._jobs.job(JOB).last_heartbeat = 0.0
        broker.put(window, part, 9)
        assert server.tick()
        return broker.beats[-1][1].standing

    first = decode(Forecast, broker.forecasts[0].value)
    assert stands(BEGIN + 30, 0) is None
    broker.forecasts[0].take()
    assert (stands(BEGIN + 30, 1), broker.beats[-1][1].since) == (str(broker.epoch), first.wall_time)
    for part in range(2, 9):
        stands(BEGIN + 30, part)
    assert stands(BEGIN + 31, 0) == str(broker.epoch) and len(broker.forecasts) == 2, "until the next is answered"
    for part in (1, 2, 3):
        broker.forecasts[-1].fail()
        assert stands(BEGIN + 31, part) is None and len(broker.forecasts) == 2 + part
    broker.forecasts[-1].take()
    assert stands(BEGIN + 31, 4) == str(broker.epoch)


def test_heartbeats_vouch_for_nothing_where_windows_come_faster_than_the_broker_refuses_them(server, broker):
    for window in range(30):
        broker.put(BEGIN + window)
    wait_until(lambda: server.tick() and broker.forecasts, "a forecast")
    broker.forecasts[0].take()

    def stands_after(window):
        server._jobs.job(JOB).last_heartbeat = 0.0
        broker.put(window)
        assert server.tick()
        return broker.beats[-1][1].standing

    assert stands_after(BEGIN + 30) == str(broker.epoch)
    assert stands_after(BEGIN + 31) == str(broker.epoch) and len(broker.forecasts) == 3, "both may still be taken"
    for window in (32, 33):  # of each window the broker says no once the next one has been sent
        broker.forecasts[-2].fail()
        assert stands_after(BEGIN + window) is None
    broker.forecasts[-2].take()
    assert stands_after(BEGIN + 34) == str(broker.epoch), "the newest that was answered was taken"
    taken = decode(Forecast, broker.forecasts[-3].value)
    assert broker.beats[-1][1].since == taken.wall_time
    broker.forecasts[2].fail()
    assert stands_after(BEGIN + 35) == str(broker.epoch), "an older one"
    assert len(broker.forecasts) == 7, "none is sent again"


def test_that_no_forecast_is_taken_is_told_once_and_again_when_that_comes_back(server, broker, capsys, monkeypatch):
    for window in range(30):
        broker.put(BEGIN + window)
    wait_until(lambda: server.tick() and broker.forecasts, "a forecast")
    for apart_s, told in ((stream.TROUBLE_S, 1), (stream.TROUBLE_S, 0), (-1.0, 1)):
        monkeypatch.setattr(stream, "TROUBLE_S", apart_s)
        broker.forecasts[-1].fail()
        assert server.tick() and capsys.readouterr().out.count(UNTAKEN) == told


def test_a_forecast_that_a_newer_one_has_overtaken_is_not_sent_again(server, broker):
    for window in range(30):
        broker.put(BEGIN + window)
    wait_until(lambda: server.tick() and broker.forecasts, "a forecast")
    broker.put(BEGIN + 30)
    assert server.tick() and len(broker.forecasts) == 2
    broker.forecasts[0].fail()
    broker.put(BEGIN + 31, 0, 9)
    assert server.tick() and len(broker.forecasts) == 2


def test_of_what_a_sender_has_refused_all_the_time_the_first_of_a_kind_is_told_and_hides_no_other(server, broker):
    values = [b"{", b'{"schema":9}', b"{", b'{"schema":9}', b"{", b"{"]
    for offset, value in enumerate(values):
        key = JOB if offset < 5 else "payments"
        broker.coming.append(Record("metrics", 0, offset, key, value, time.time()))
    assert server.tick() and broker.rejected == [(JOB, 0), (JOB, 1), ("payments", 5)]


def test_it_leaves_where_a_later_server_has_claimed(server, broker, capsys):
    assert server.tick()
    broker.claimed = True
    assert not server.tick() and "later epoch" in capsys.readouterr().out


def test_a_partition_with_old_records_alone_keeps_no_other_waiting(broker, request):
    broker.ends[1] = 5
    server = request.getfixturevalue("server")
    for window in range(30):
        broker.put(BEGIN + window)
    wait_until(lambda: server.tick() and broker.forecasts, "a forecast")


@pytest.fixture
def there(monkeypatch):
    """How many partitions a look finds, one after the other; an error is raised."""
    looks = []

    def topic_offsets(kafka, topic):
        found = looks.pop(0) if len(looks) > 1 else looks[0]
        if isinstance(found, Exception):
            raise found
        return dict.fromkeys(range(found), (0, 0))

    monkeypatch.setattr(partitions, "LOOK_S", 0.01)
    monkeypatch.setattr(partitions, "topic_offsets", topic_offsets)
    return looks


def test_it_leaves_where_metrics_has_got_more_partitions(there, request, capsys, caplog):
    away = BrokerError("no broker")
    there += [1, away, away, 1, away, 3]
    server = request.getfixturevalue("server")
    wait_until(lambda: not server.tick(), "the end")
    assert len(there) == 1 and "metrics has 3 partitions, of which 1 are followed" in capsys.readouterr().out
    assert caplog.text.count("cannot be counted: no broker") == 2  # of an outage once, and of the next one again


def test_the_fast_path_leaves_where_metrics_has_got_more_partitions(there, broker, monkeypatch, tmp_path):
    there += [2, 3]
    feed = SimpleNamespace(cursor=SimpleNamespace(next={0: 5, 1: 0}), close=lambda: None)
    monkeypatch.setattr(librdkafka, "Sender", lambda kafka: broker)
    for name in ("Publisher", "Claim"):
        monkeypatch.setattr(fast, name, lambda *arguments, **how: broker)
    monkeypatch.setattr(fast, "LogFeed", lambda *arguments: feed)
    monkeypatch.setattr(fast, "create_topics", lambda kafka: None)
    monkeypatch.setattr(fast, "recall_sent", lambda *arguments, **named: None)
    broker.epochs = frozenset({7})
    settings, stop = load(var=tmp_path, kafka={"bootstrap": "broker:9092"}), threading.Event()
    with ExitStack() as ends:
        store = ends.enter_context(Store.open(settings.store_dir))
        fast._loop(settings, store, {JOB}, ends, stop)
        wait_until(stop.is_set, "the end")
        assert there == [3]
