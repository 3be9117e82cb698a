"""Events and batches: one transaction; the outbox; declared sets; bounded history."""

import pytest

from pipelines.store import BadInput, Conflict, Keep, MissingMember, Pruned, Store
from pipelines.store.disk.retention import SLACK


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path, map_bytes=1 << 24) as store:
        yield store


def test_an_event_is_one_time_and_all_or_nothing(store):
    with store.event() as event:
        assert event.put("/sample/j", b"s", 7) == "applied"
        assert event.put("/state/j", b"h", 7) == "applied"
        event.set_meta("cursor", b"offset 12")
        event.outbox(b"forecast 7")
    assert {record.ts for record in store.snapshot(["/sample/j", "/state/j"]).values()} == {event.ts}
    before = store.frontier()
    with pytest.raises(Conflict), store.event() as event:
        event.put("/state/j", b"i", 8)
        event.set_meta("cursor", b"offset 13")
        event.put("/sample/j", b"other", 7)
    assert store.frontier() == before
    assert (store.get("/state/j").version, store.get_meta("cursor")) == (7, b"offset 12")
    assert store.outbox() == [(0, b"forecast 7")]


def test_an_event_of_duplicates_still_moves_the_cursor(store):
    store.put("/sample/j", b"s", 7)
    with store.event() as event:
        assert event.put("/sample/j", b"s", 7) == "duplicate"
        event.set_meta("cursor", b"offset 13")
    assert store.get_meta("cursor") == b"offset 13"
    assert store.list_versions("/sample/j") == [(7, store.get("/sample/j").ts)]


def test_a_batch_gives_each_event_its_time_and_sees_its_own_events(store):
    with store.batch() as batch:
        with batch.event() as first:
            first.put("/a", b"1", 1)
        with batch.event() as second:
            assert second.put("/a", b"1", 1) == "duplicate"
            assert second.put("/b", b"1", 1) == "applied"
        with pytest.raises(Conflict), batch.event() as third:
            third.put("/c", b"1", 1)
            third.put("/a", b"other", 1)
        with batch.event() as fourth:
            assert fourth.put("/a", b"2", 2) == "applied"
    assert first.ts < second.ts < fourth.ts
    assert [version for version, _ in store.list_versions("/a")] == [1, 2]
    assert store.get("/c") is None


def test_what_two_openings_would_mix_up_is_refused(store):
    with store.event() as event:
        event.put("/a", b"1", 1)
        with pytest.raises(BadInput, match="twice in one event"):
            event.put("/a", b"2", 2)
        with pytest.raises(BadInput, match="an event is open"):
            store.put("/b", b"1", 1)
    assert store.get("/a").version == 1
    with store.batch() as batch, batch.event(), pytest.raises(BadInput, match="is open"), batch.event():
        pass


def test_the_outbox_keeps_what_was_not_sent(tmp_path):
    with Store.open(tmp_path) as store:
        for version in range(4):
            with store.event() as event:
                event.outbox(b"%d" % version)
        store.mark_sent([0, 1])
        assert store.outbox() == [(2, b"2"), (3, b"3")]
        store.put("/a", b"1", 1)
    with Store.open(tmp_path) as store:
        assert store.outbox() == [(2, b"2"), (3, b"3")]
        store.mark_sent([2, 3])
        store.flush()
        with store.event() as event:
            event.outbox(b"4")
        assert [entry for _, entry in store.outbox()] == [b"4"]


def test_a_persistent_event_takes_no_outbox_entry_that_nobody_would_send(store):
    with store.event("persistent") as event:
        assert event.put("/model/j", b"m", 1) == "applied"
        with pytest.raises(BadInput, match="volatile events only"):
            event.outbox(b"forecast 7")
    assert store.get("/model/j").value == b"m"
    assert store.outbox() == []


def test_a_declared_set_is_put_whole_or_not_at_all(tmp_path):
    members = {"/model/j/weights": b"w", "/model/j/scaler": b"s", "/model/j/hyper": b"h"}
    with Store.open(tmp_path) as store:
        store.declare("/model/j", members)
        lacking = {key: value for key, value in members.items() if "scaler" not in key}
        with pytest.raises(MissingMember, match=r"missing \['/model/j/scaler'\]"):
            store.put_set("/model/j", lacking, 1, "persistent")
        with pytest.raises(MissingMember, match=r"not of the set \['/model/j/more'\]"):
            store.put_set("/model/j", {**members, "/model/j/more": b"m"}, 1, "persistent")
        with pytest.raises(MissingMember, match="is a member of set /model/j"):
            store.put("/model/j/weights", b"w", 1, "persistent")
        with pytest.raises(MissingMember, match="not of /other"):
            store.put_set("/other", lacking, 1, "persistent")
        assert store.snapshot("/model/j") == dict.fromkeys(sorted(members))
        assert store.put_set("/model/j", members, 1, "persistent") == "applied"
        assert store.put_set("/model/j", members, 1, "persistent") == "duplicate"
    with Store.open(tmp_path) as store:
        with pytest.raises(MissingMember):
            store.put_set("/model/j", lacking, 2, "persistent")
        assert {key: record.value for key, record in store.snapshot("/model/j").items()} == members
        with pytest.raises(BadInput, match="was declared as"):
            store.declare("/model/j", lacking)
        with pytest.raises(BadInput, match="a key has one set"):
            store.declare("/other", ["/model/j/hyper"])


def test_history_is_bounded_and_says_what_it_lost(tmp_path):
    rules = [Keep("/sample", versions=10), Keep("/sample/more", versions=20)]
    now = [0]
    with Store.open(tmp_path, keep=rules, clock=lambda: now[0]) as store:
        for version in range(200):
            now[0] = 1000 * (version + 1)
            with store.event() as event:
                event.put("/sample/j", b"%d" % version, version)
                event.put("/sample/more/j", b"%d" % version, version)
                event.put("/sampled", b"%d" % version, version)
            kept = [v for v, _ in store.list_versions("/sample/j")]
            assert kept == list(range(kept[0], version + 1))
            assert min(10, version + 1) <= len(kept) < 10 + 10
            assert min(20, version + 1) <= len(store.list_versions("/sample/more/j")) < 20 + SLACK
        assert len(store.list_versions("/sampled")) == 200
        oldest = store.list_versions("/sample/j")[0][1]
        assert store.get_at_time("/sample/j", oldest).ts == oldest
        with pytest.raises(Pruned):
            store.get_at_time("/sample/j", oldest - 1)
        assert store.put("/sample/j", b"5", 5) == "stale"
    with Store.open(tmp_path, keep=rules, clock=lambda: now[0]) as store:
        for version in range(200, 200 + 2 * SLACK):
            now[0] += 1000
            store.put("/sample/j", b"%d" % version, version)
            assert len(store.list_versions("/sample/j")) < 10 + 10
