"""Records of the log are taken by the thread that has read them, unless the loop is at work or waits for its turn."""

import threading

import pytest

from models.forecast.baselines.naive import Naive
from pipelines.serve.fast.core import Core, IncomingSample
from pipelines.serve.fast.loop import Loop
from pipelines.serve.fast.swapping import swap_model
from pipelines.serve.models.model_set import pack_model
from pipelines.serve.models.ready import prepare_model
from pipelines.serve.net.client import Client
from pipelines.serve.step.keys import sample_key
from pipelines.store import Store
from tests.fakes.forecasters import STEP, TASK
from tests.fakes.serving import BEGIN, raw

JOB = "orders"
KEY = sample_key(JOB, STEP)


class Log:
    """Records that wait, as `LogFeed` has them."""

    failure = None

    def __init__(self):
        self.waiting, self.at = [], 0

    def come(self, *records):
        for record in records:
            self.at += 1
            self.waiting.append(IncomingSample(record, ("metrics", 0, self.at - 1), b"%d" % self.at))

    def __len__(self):
        return len(self.waiting)

    def peek(self, most):
        return self.waiting[:most]

    def remove(self, count):
        del self.waiting[:count]


class Sent:
    """What was sent, and by which thread."""

    def __init__(self):
        self.versions, self.threads = [], set()

    def send(self, topic, key, value, headers, taken=None):
        self.versions.append(int(dict(headers)["version"]))
        self.threads.add(threading.get_ident())
        taken(True)

    def poll(self):
        pass


@pytest.fixture
def loop(tmp_path):
    with Store.open(tmp_path / "store") as store:
        core = Core(store, STEP, {JOB, "rides"}, epoch=7, follows_log=True)
        made = Loop(core, tmp_path / "socket")
        made.log, made.sender = Log(), Sent()
        yield made
        made.close()


def newest(loop):
    found = loop.core.store.get(KEY)
    return None if found is None else found.version - BEGIN


def test_nothing_is_taken_before_the_first_round(loop):
    loop.log.come(raw(JOB, BEGIN, 5.0))
    loop.process_log()
    assert newest(loop) is None
    loop.run_once(0)
    assert newest(loop) == 0


def test_where_the_loop_sleeps_it_is_taken_and_sent_at_once_by_who_calls(loop):
    loop.run_once(0)
    for i in range(30):
        loop.log.come(raw(JOB, BEGIN + i, 5.0))
        loop.process_log()
        assert newest(loop) == i and not loop.log
    swap_model(loop.core, prepare_model(loop.core.windows, JOB, "m", "1", pack_model(Naive(TASK))))
    loop.log.come(raw(JOB, BEGIN + 30, 5.0))
    loop.process_log()
    assert loop.sender.versions == [BEGIN + 29, BEGIN + 30] and loop.sender.threads == {threading.get_ident()}


def test_what_comes_while_the_loop_is_at_work_is_left_to_it(loop, monkeypatch):
    loop.run_once(0)
    loop.log.come(raw(JOB, BEGIN, 5.0))
    note = loop._store_status

    def in_the_middle():
        loop.log.come(raw(JOB, BEGIN + 1, 5.0))
        loop.process_log()
        assert newest(loop) == 0 and len(loop.log) == 1
        note()

    monkeypatch.setattr(loop, "_store_status", in_the_middle)
    monkeypatch.setattr(loop, "_housekeeping", 0.0)
    loop.run_once(0)
    monkeypatch.setattr(loop, "_store_status", note)
    loop.run_once(60)  # woken: it does not sleep
    assert newest(loop) == 1


def test_a_loop_that_rests_takes_nothing_more(loop):
    loop.run_once(0)
    loop.stop_turns()
    loop.log.come(raw(JOB, BEGIN, 5.0))
    loop.process_log()
    assert newest(loop) is None and len(loop.log) == 1


def test_log_and_socket_at_the_same_time_take_every_window_once(loop):
    windows, stop = 600, threading.Event()

    def rounds():
        while not stop.is_set():
            loop.run_once(0.05)

    def follow():
        for i in range(windows):
            loop.log.come(raw(JOB, BEGIN + i, 5.0))
            loop.process_log()

    loop.run_once(0)
    threads = [threading.Thread(target=rounds), threading.Thread(target=follow)]
    threads[0].start()
    try:
        with Client(loop._socket_server._path, 60.0) as client:
            threads[1].start()
            said = [client.ping(b"%d" % i) for i in range(windows)]
        threads[1].join(60)
        assert not threads[1].is_alive(), "the log was not read in a minute"
    finally:
        stop.set()
        loop.wake()
        threads[0].join(60)
    loop.run_once(0)
    store = loop.core.store
    assert [version for version, _ in store.list_versions(KEY)] == list(range(BEGIN, BEGIN + windows))
    assert said == [b"%d" % i for i in range(windows)] and store.get_meta("cursor") == b"%d" % windows
