"""Upcalls: after the commit, in order, three attempts, then parked; and what a flush makes durable."""

import threading

import pytest

from pipelines.store import BadInput, Flusher, Store
from pipelines.store.writing.upcalls import ATTEMPTS
from tests.fakes import waiting
from tests.fakes.waiting import PATIENCE_S


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path, map_bytes=1 << 24) as store:
        yield store


def wait_until(holds):
    waiting.wait_until(holds, "what the upcalls or the flusher should have done")


def test_a_watch_sees_commits_under_its_path_in_order_and_nothing_else(store):
    seen = []
    store.watch("/a", lambda key, record: seen.append((key, record.version, store.get(key) == record)))
    store.put("/a/x", b"1", 1)
    store.put("/a/x", b"1", 1)
    store.put("/a/x", b"0", 0)
    store.put("/ab", b"1", 1)
    with store.event() as event:
        event.put("/a", b"1", 4)
        event.put("/a/y", b"1", 2)
        assert len(seen) == 1, "not before the commit"
    with pytest.raises(BadInput), store.event() as event:
        event.put("/a/x", b"2", 2)
        event.put("/a/x", "text", 3)
    assert seen == [("/a/x", 1, True), ("/a", 4, True), ("/a/y", 2, True)]


def test_what_a_callback_puts_is_called_out_after_it(store):
    order = []

    def step(key, record):
        order.append(("began", record.version))
        if record.version < 4:
            store.put("/a/x", b"%d" % (record.version + 1), record.version + 1)
        order.append(("ended", record.version))

    store.watch("/a", step)
    store.put("/a/x", b"1", 1)
    assert order == [(word, version) for version in range(1, 5) for word in ("began", "ended")]


def test_putting_threads_keep_the_order_of_commits(store):
    seen = []
    store.watch("/a", lambda key, record: seen.append((record.ts, key, record.version)))

    def put(key):
        for version in range(200):
            store.put(key, b"1", version)

    threads = [threading.Thread(target=put, args=(f"/a/{name}",), daemon=True) for name in "xyz"]
    [thread.start() for thread in threads]
    [thread.join(PATIENCE_S) for thread in threads]
    wait_until(lambda: len(seen) == 600)
    assert seen == sorted(seen)


def test_a_failing_callback_is_tried_three_times_and_parked(store):
    calls = []

    def fails(key, record):
        calls.append(record.version)
        raise RuntimeError("no room")

    store.watch("/a", fails)
    store.watch("/", lambda key, record: calls.append(key))
    assert store.put("/a/x", b"1", 5) == "applied"
    assert calls == [5] * ATTEMPTS + ["/a/x"]
    parked = store.get("/dead/a/x")
    assert parked.value.decode().split("\n") == ["/a/x", "5", "RuntimeError('no room')"]
    store.put("/a/x", b"2", 6)
    assert len(store.list_versions("/dead/a/x")) == 2


def test_a_trigger_reaches_who_is_there_once_and_stores_nothing(store):
    seen = []

    def fails(key, record):
        seen.append((key, record.version, record.value))
        raise RuntimeError

    before = store.frontier()
    assert store.trigger("/a/x", b"what if") == 0
    store.watch("/a", fails)
    assert store.trigger("/a/x", b"what if") == 1
    assert seen == [("/a/x", -1, b"what if")]
    assert (store.frontier(), store.get("/a/x"), store.get("/dead/a/x")) == (before, None, None)


def test_the_flusher_makes_commits_durable_and_the_frontier_move(store):
    store.put("/a/x", b"1", 1)
    with Flusher(store, every_s=0.01):
        ts = store.get("/a/x").ts
        wait_until(lambda: store.frontier()[1] >= ts)
        wait_until(lambda: store.frontier()[0] > ts)
        assert store.get_at_time("/a/x", store.frontier()[0]).version == 1
