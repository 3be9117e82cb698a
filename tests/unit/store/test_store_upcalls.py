"""Upcalls: after the commit, in order, three attempts, then parked; subscribers that are slow, late or broken."""

import threading

import pytest

from pipelines.store import BadInput, Flusher, Keep, Pruned, Store
from pipelines.store.writing.upcalls import ATTEMPTS
from tests.fakes import waiting
from tests.fakes.waiting import PATIENCE_S


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path, map_bytes=1 << 24, keep=[Keep("/short", versions=5)]) as store:
        yield store


def wait_until(holds):
    waiting.wait_until(holds, "what the subscribers should have seen")


def test_a_watch_sees_commits_under_its_path_in_order_and_nothing_else(store):
    seen = []
    watch = store.watch("/a", lambda key, record: seen.append((key, record.version, store.get(key) == record)))
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
    store.unwatch(watch)
    store.put("/a/x", b"2", 2)
    assert len(seen) == 3


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
    subscription = store.subscribe("/a", lambda key, record: seen.append(("thread", record.value)), mode="latest")
    assert store.trigger("/a/x", b"what if") == 2
    wait_until(lambda: len(seen) == 2)
    assert sorted(seen) == [("/a/x", -1, b"what if"), ("thread", b"what if")]
    assert (store.frontier(), store.get("/a/x"), store.get("/dead/a/x")) == (before, None, None)
    subscription.end()
    assert store.trigger("/a/x", b"what if") == 1


def test_a_slow_subscriber_to_all_misses_nothing_and_one_to_latest_goes_to_the_newest(store):
    gate, every, latest = threading.Event(), [], []

    def slow(into):
        def callback(key, record):
            gate.wait(PATIENCE_S)
            into.append((key, record.version))

        return callback

    store.put("/a/x", b"0", 0)
    subscriptions = [store.subscribe("/a", slow(every)), store.subscribe("/a", slow(latest), mode="latest")]
    for version in range(1, 301):
        store.put("/a/x", b"1", version)
        store.put("/a/y", b"1", version)
    assert every == latest == []
    gate.set()
    wait_until(lambda: len(every) == 600 and latest[-2:].count(("/a/x", 300)) + latest[-2:].count(("/a/y", 300)) == 2)
    for key in ("/a/x", "/a/y"):
        assert [version for name, version in every if name == key] == list(range(1, 301))
        coalesced = [version for name, version in latest if name == key]
        assert coalesced == sorted(set(coalesced)) and len(coalesced) < 10
    assert [subscription.failure for subscription in subscriptions] == [None, None]


def test_a_late_subscriber_replays_from_a_version(store):
    for version in range(0, 40, 2):
        store.put("/a/x", b"1", version)
    seen = []
    store.subscribe("/a", lambda key, record: seen.append(record.version), from_version=31)
    store.put("/a/x", b"1", 40)
    wait_until(lambda: seen[-1:] == [40])
    assert seen == [32, 34, 36, 38, 40]


def test_a_replay_below_what_is_kept_is_refused_and_an_overtaken_subscriber_told(store):
    for version in range(100):
        store.put("/short/x", b"1", version)
    with pytest.raises(Pruned):
        store.subscribe("/short", print, from_version=0)
    gate, seen = threading.Event(), []

    def slow(key, record):
        seen.append(record.version)
        gate.wait(PATIENCE_S)

    subscription = store.subscribe("/short", slow)
    store.put("/short/x", b"1", 100)
    wait_until(lambda: seen == [100])
    for version in range(101, 300):
        store.put("/short/x", b"1", version)
    gate.set()
    wait_until(lambda: subscription.failure is not None)
    assert isinstance(subscription.failure, Pruned)
    assert seen == [100]


def test_a_failing_subscriber_is_parked_and_goes_on(store):
    seen = []

    def fails_once(key, record):
        seen.append(record.version)
        if record.version == 1:
            raise RuntimeError("no")

    store.subscribe("/a", fails_once)
    store.put("/a/x", b"1", 1)
    store.put("/a/x", b"1", 2)
    wait_until(lambda: seen[-1:] == [2])
    assert seen == [1] * ATTEMPTS + [2]
    assert store.get("/dead/a/x").value.startswith(b"/a/x\n1\n")


def test_the_flusher_makes_commits_durable_and_the_frontier_move(store):
    store.put("/a/x", b"1", 1)
    with Flusher(store, every_s=0.01):
        ts = store.get("/a/x").ts
        wait_until(lambda: store.frontier()[1] >= ts)
        wait_until(lambda: store.frontier()[0] > ts)
        assert store.get_at_time("/a/x", store.frontier()[0]).version == 1
