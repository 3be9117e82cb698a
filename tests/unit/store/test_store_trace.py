"""One store by hand (seed section 9.2): every verdict, time and error worked out on paper."""

from itertools import accumulate, repeat
from types import SimpleNamespace

import pytest

from pipelines.store import Conflict, Keep, NotStable, Pruned, Store
from pipelines.store.writing import memory


class Hand:
    """A clock that shows what the hand says."""

    def __init__(self):
        self.ns = 0

    def __call__(self):
        return self.ns


@pytest.fixture
def clock():
    return Hand()


@pytest.fixture
def store(tmp_path, clock):
    with Store.open(tmp_path, map_bytes=1 << 22, clock=clock) as store:
        yield store


def put(store, clock, ns, *arguments):
    clock.ns = ns
    return store.put(*arguments)


def test_the_hand_trace(store, clock):
    assert put(store, clock, 100, "/a", b"p", 1) == "applied"
    assert store.frontier()[0] == 100
    assert put(store, clock, 90, "/a", b"q", 3) == "applied"
    assert store.get("/a").ts == 101
    assert store.put("/a", b"q", 3) == "duplicate"
    with pytest.raises(Conflict, match="version 3 is stored with other bytes"):
        store.put("/a", b"z", 3)
    assert store.put("/a", b"r", 2) == "stale"
    assert store.get_at_time("/a", 99) is None
    assert store.get_at_time("/a", 100).version == 1
    assert store.get_at_time("/a", 101).version == 3
    with pytest.raises(NotStable):
        store.get_at_time("/a", 102)

    clock.ns = 200
    assert store.put_set("/set", {"/m": b"1", "/s": b"1"}, 1) == "applied"
    assert store.snapshot(["/m", "/s"], 199) == {"/m": None, "/s": None}
    assert {key: record.ts for key, record in store.snapshot(["/m", "/s"], 200).items()} == {"/m": 200, "/s": 200}
    with pytest.raises(Conflict):
        store.put_set("/set", {"/m": b"1", "/n": b"1"}, 1)
    assert store.get("/n") is None

    store.prune(101)
    assert store.list_versions("/a") == [(3, 101)]
    assert store.get("/a", 1) is None
    with pytest.raises(Pruned):
        store.get_at_time("/a", 100)
    assert store.get_at_time("/a", 150).version == 3
    assert store.put("/a", b"p", 1) == "stale"


def test_a_late_window_is_not_in_the_past_it_came_after(store, clock):
    put(store, clock, 1000, "/sample/j", b"seven", 7)
    decided = store.frontier()[0]
    clock.ns = 5000
    store.put("/sample/k", b"late", 6, event_time=400)
    assert store.get_at_time("/sample/k", decided) is None
    late = store.get("/sample/k")
    assert (late.event_time, late.ts) == (400, 5000)


def test_an_idle_store_moves_its_frontier(store, clock):
    put(store, clock, 100, "/a", b"p", 1)
    store.flush()
    clock.ns = 900
    store.flush()
    assert store.frontier() == (900, 900)
    assert store.get_at_time("/a", 900).version == 1


def test_a_record_says_when_who_and_what(store, clock):
    put(store, clock, 100, "/a", b"p", 4, "persistent", 70)
    record = store.get("/a")
    assert record == (4, 100, 70, 1, b"p")
    store.watch("/a", lambda key, seen: told.append(seen))
    told = []
    put(store, clock, 200, "/a", b"q", 5, "persistent")
    assert told == [store.get("/a")]


def test_a_restart_after_the_clock_went_back_goes_on_from_the_newest_time(tmp_path, clock, caplog):
    clock.ns = 10**12
    with Store.open(tmp_path, clock=clock) as store:
        store.put("/a", b"p", 1)
    clock.ns = 10**9
    with Store.open(tmp_path, clock=clock) as store:
        assert "ahead of the clock" in caplog.text
        store.put("/a", b"q", 2)
        assert store.get("/a").ts == 10**12 + 1
        assert store.epoch == 2


def test_a_process_that_is_suspended_while_it_sets_its_clock_is_not_late_for_good(monkeypatch):
    took = accumulate([1, 10**8, *repeat(1, 20)])  # ns up to each look; the first pair has a pause within

    def now():
        return next(took)

    monkeypatch.setattr(memory, "time", SimpleNamespace(time_ns=lambda: 10**18 + now(), monotonic_ns=now))
    assert memory.steady_clock()() >= 10**18 + 10**8


@pytest.mark.parametrize("gap", [1, 7, 1000])
def test_a_version_is_found_wherever_it_lies(store, clock, gap):
    """Versions at an uneven pace in time: early ones dense, later ones far apart, then the reverse."""
    times = [10 * i for i in range(200)] + [10**6 * (i + 1) for i in range(100)] + [10**8 + i for i in range(100)]
    for number, ns in enumerate(times):
        put(store, clock, ns, "/a", b"%d" % number, number * gap)
    for number in range(len(times)):
        assert store.get("/a", number * gap).value == b"%d" % number
        if gap > 1:
            assert store.get("/a", number * gap + 1) is None
    assert [version for version, _ in store.list_versions("/a", gap * 50, gap * 59)] == [gap * i for i in range(50, 60)]
    assert [record.version for record in store.history("/a", gap * 398)] == [gap * 398, gap * 399]


def test_history_is_bounded_however_often_the_store_is_opened(tmp_path):
    for opening in range(12):
        with Store.open(tmp_path / "store", keep=[Keep("/model", versions=5)]) as store:
            for version in range(opening * 10, opening * 10 + 10):
                store.put("/model/a", b"x", version)
            assert len(store.list_versions("/model/a")) <= 5 + 16
