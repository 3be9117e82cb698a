"""What a broker refuses goes out again, per key in the order of windows."""

import time
from types import SimpleNamespace

import pytest

from pipelines.serve.fast import outbox
from pipelines.serve.fast.loop import Loop
from pipelines.serve.fast.outbox import StoreOutbox
from pipelines.serve.step.records import OutgoingMessage, encode_value
from pipelines.store import Store
from tidecast.messages import Heartbeat

JOBS = ("rides", "orders")


class Broker:
    """Keeps what is sent until the test says what became of it."""

    def __init__(self):
        self.flying, self.arrived = {}, []

    def send(self, topic, key, value, headers, taken=None):
        self.flying[value] = topic, key, taken

    def settle(self, **fates):
        for value, good in fates.items():
            topic, key, taken = self.flying.pop(value.encode())
            if good:
                self.arrived.append((topic, key, value))
            taken(good)


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "store") as opened:
        yield opened


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(outbox, "RETRY_S", 0.0, raising=False)


def wait(store, box, *values, job="orders", topic="forecasts"):
    for value in values:
        entry = OutgoingMessage(topic, job, f"/forecast/{job}", 1, b"", value.encode())
        with store.event() as event:
            event.outbox(encode_value(entry))
        box.queue([(event, entry)])


def left(store):
    store.flush()
    return len(store.outbox())


def test_what_was_refused_goes_out_again_before_what_came_after_it(store):
    box, broker = StoreOutbox(store), Broker()
    wait(store, box, "a", "b")
    box.send(broker)
    wait(store, box, "c")
    broker.settle(a=False)
    box.send(broker)
    assert set(broker.flying) == {b"b"} and len(box) == 2  # b may still arrive: a and c wait for its fate
    broker.settle(b=False)
    box.send(broker)
    assert list(broker.flying) == [b"a", b"b", b"c"]
    broker.settle(a=True, b=True, c=True)
    assert [value for *_, value in broker.arrived] == ["a", "b", "c"] and left(store) == len(box) == 0


def test_a_forecast_that_a_newer_one_has_overtaken_is_left_out_and_said(store, capsys):
    box, broker = StoreOutbox(store), Broker()
    wait(store, box, "a", "b")
    box.send(broker)
    broker.settle(b=True, a=False)
    box.send(broker)
    assert not broker.flying and left(store) == len(box) == 0
    assert "orders: 1 refused forecasts are left out" in capsys.readouterr().out


def test_a_key_that_is_refused_holds_up_no_other_and_a_reject_is_never_left_out(store):
    box, broker = StoreOutbox(store), Broker()
    wait(store, box, "a")
    wait(store, box, "x", "y", job="metrics", topic="rejects")
    box.send(broker)
    broker.settle(a=False, x=False, y=True)
    wait(store, box, "r", job="rides")
    box.send(broker)
    assert set(broker.flying) == {b"a", b"x", b"r"}
    broker.settle(a=True, x=True, r=True)
    assert left(store) == len(box) == 0


def test_what_is_refused_of_others_keeps_no_heartbeat_of_a_job_from_being_sent(store):
    box, broker, beats = StoreOutbox(store), Broker(), [Heartbeat(job, "serving", 1.0, 1.0, 1.0) for job in JOBS]
    wait(store, box, "a", job="rides")
    wait(store, box, "x", job="metrics", topic="rejects")
    box.send(broker)
    broker.settle(a=False, x=False)
    sent = SimpleNamespace(send=lambda topic, key, *_: broker.arrived.append((topic, key)), poll=lambda: None)
    core = SimpleNamespace(outbox=box, heartbeats=beats)
    box._retry_at = time.monotonic() + 60  # the broker has refused just now
    Loop._send(SimpleNamespace(core=core, sender=sent))
    assert broker.arrived == [("heartbeats", "orders")] and not core.heartbeats
