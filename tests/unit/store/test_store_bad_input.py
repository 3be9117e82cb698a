"""What no store takes: a typed error that names it, and a store that is as before."""

import os
import resource

import pytest

from pipelines.store import (
    BadInput,
    Conflict,
    Fenced,
    NotStable,
    Reader,
    Store,
    StoreError,
    StoreFull,
    WriterPresent,
)
from pipelines.store.disk.errors import BadKey, BadTime, BadValue, BadVersion, Closed
from pipelines.store.disk.limits import KEY_BYTES, VALUE_BYTES
from tests.fakes.store_process import Refused, StoreProcess

OPEN = "Store.open(folder, map_bytes=1 << 24)"


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path, map_bytes=1 << 24) as store:
        store.put("/a/x", b"1", 1)
        store.put("/a/d", b"1", 1, "persistent")
        yield store


AHEAD = 1 << 62
"""Nanoseconds to a day in 2116. Not the clock's: every worker names its tests by what it finds here, and all alike."""
ODD_KEYS = ["", "/", "a/x", "/a/", "/a//x", "/a/ x", "/a/\x00", "/a/ü", "/a/x\n", "/../x", "/a/.x", b"/a/x", None]
PUTS = [
    *((BadKey, (key, b"1", 1)) for key in ODD_KEYS),
    (BadKey, ("/" + "a" * KEY_BYTES, b"1", 1)),
    (BadKey, ("/a/x", b"2", 2, "persistent")),
    *((BadValue, ("/a/x", value, 2)) for value in ("text", None, bytearray(b"1"), 1.5, bytes(VALUE_BYTES + 1))),
    *((BadVersion, ("/a/x", b"2", version)) for version in (-1, 1 << 63, 1.0, "1", None, True)),
    *((BadTime, ("/a/x", b"2", 2, "volatile", t)) for t in (-1, 1.5, 1 << 63, AHEAD)),
    (Conflict, ("/a/x", b"2", 1)),
]


def named(given):
    """The beginning of it in Python; megabytes are not written out for that."""
    if isinstance(given, tuple):
        given = tuple(part[:40] if isinstance(part, str | bytes) else part for part in given)
    return repr(given)[:40]


def test_a_map_full_of_what_waited_to_be_sent_has_room_again_once_it_is_sent(tmp_path):
    with Store.open(tmp_path / "store", map_bytes=4 << 20) as store:
        version = 0
        with pytest.raises(StoreFull):
            while True:
                with store.event() as event:
                    event.put("/pool/a", b"x", version)
                    event.outbox(bytes(3000))
                version += 1
        store.mark_sent([number for number, _ in store.outbox()])
        store.flush()
        assert store.outbox() == [] and store.put("/pool/a", b"x", version) == "applied"


@pytest.mark.parametrize(("error", "arguments"), PUTS, ids=named)
def test_a_bad_put_is_refused_and_changes_nothing(store, error, arguments):
    before = store.frontier(), store.list_versions("/a/x"), store.get("/a/x")
    with pytest.raises(error):
        store.put(*arguments)
    with pytest.raises(error), store.event(*arguments[3:4]) as event:
        event.put("/b/good", b"1", 1) if arguments[3:4] != ("persistent",) else None
        event.put(*arguments[:3], *arguments[4:])
    assert (store.frontier(), store.list_versions("/a/x"), store.get("/a/x")) == before
    assert store.get("/b/good") is None
    assert store.put("/a/x", b"2", 2) == "applied"


@pytest.mark.parametrize("t", [-1, 1.5, "now", None, 1 << 64])
def test_a_read_at_no_time_is_refused(store, t):
    with pytest.raises(BadTime):
        store.get_at_time("/a/x", t)
    with pytest.raises(BadTime):
        store.prune(t)
    with pytest.raises(NotStable):
        store.snapshot(["/a/x", "/a/d"], store.frontier()[0] + 1)


def test_names_that_are_none(store):
    for key in ODD_KEYS[:5]:
        with pytest.raises(BadKey):
            store.trigger(key, b"1")
        with pytest.raises(BadKey):
            store.snapshot(["/a/x", key])
    for name in ("", "\x00head", "ü", "n" * 300):
        with pytest.raises(BadKey):
            store.set_meta(name, b"1")
    with pytest.raises(BadKey, match="never declared"):
        store.snapshot("/a/set")
    with pytest.raises(BadInput):
        store.put_set("/a/set", {}, 1)


def test_a_full_map_loses_nothing(tmp_path):
    acknowledged = 0
    with Store.open(tmp_path, map_bytes=1 << 18) as store:
        with pytest.raises(StoreFull, match=r"larger map_bytes \(serving.map_bytes\)"):
            while True:
                with store.event() as event:
                    event.put("/a/x", bytes(5000), acknowledged + 1)
                    event.set_meta("cursor", b"%d" % (acknowledged + 1))
                acknowledged += 1
        with pytest.raises(StoreFull):
            store.put("/a/new", bytes(5000), 1)
        assert store.get("/a/new") is None
        assert store.get("/a/x").version == acknowledged == int(store.get_meta("cursor"))
    with Store.open(tmp_path, map_bytes=1 << 24) as store:
        assert store.get("/a/x").version == acknowledged > 10
        assert store.put("/a/new", bytes(5000), 1) == "applied"
        assert store.put("/a/x", bytes(5000), acknowledged + 1) == "applied"


@pytest.mark.parametrize("kind", ["volatile", "persistent"])
def test_a_full_disk_loses_nothing(tmp_path, kind):
    """The system refuses to let the file grow, as on a full disk."""
    limit = "resource.setrlimit(resource.RLIMIT_FSIZE, (%s, -1))"
    with StoreProcess(OPEN, tmp_path) as writer:
        writer.do(limit % (1 << 18))
        acknowledged = 0
        with pytest.raises(Refused, match=r"StoreFull.*the disk takes no more"):
            while writer.do(f"store.put('/a/x', bytes(5000), {acknowledged + 1}, {kind!r})") == "applied":
                acknowledged += 1
        assert writer.do("store.get('/a/x').version") == acknowledged > 10
        writer.do(limit % -1)
        assert writer.do(f"store.put('/a/x', bytes(5000), {acknowledged + 1}, {kind!r})") == "applied"
    with Store.open(tmp_path, map_bytes=1 << 24) as store:
        assert [version for version, _ in store.list_versions("/a/x")] == list(range(1, acknowledged + 2))


def test_a_flush_without_a_descriptor_to_be_had_is_an_error_of_the_store_after_which_the_next_one_flushes(store):
    """As where very many clients are connected; any other error ends the thread that flushes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.open(os.devnull, os.O_RDONLY)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    try:
        with pytest.raises(StoreError, match="Too many open files"):
            store.flush()
        assert store.put("/a/x", b"2", 2) == "applied"
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    store.flush()
    assert store.frontier()[1] >= store.get("/a/x").ts


def test_a_second_writer_is_refused_by_name(tmp_path):
    with StoreProcess(OPEN, tmp_path) as first:
        pid = first.process.pid
        with pytest.raises(WriterPresent, match=f"process {pid} is the writer") as refused:
            Store.open(tmp_path)
        assert refused.value.pid == pid
        first.kill()
    with Store.open(tmp_path) as store:
        assert store.epoch == 2
        with pytest.raises(WriterPresent):
            Store.open(tmp_path)


def test_a_writer_that_was_overtaken_writes_no_more(tmp_path):
    with StoreProcess(OPEN, tmp_path) as first:
        assert first.do("store.put('/a/x', b'1', 1)") == "applied"
        (tmp_path / "writer.lock").unlink()  # as when the first is paused and taken for dead
        with Store.open(tmp_path) as store:
            for call in (
                "store.put('/a/x', b'2', 2)",
                "store.put('/a/d', b'2', 2, 'persistent')",
                "[store.flush(), store.flush()]",
            ):
                with pytest.raises(Refused, match="Fenced"):
                    first.do(call)
            assert store.get("/a/x").version == 1
            assert store.put("/a/x", b"3", 2) == "applied"
    assert issubclass(Fenced, StoreError)


def test_what_was_closed_or_never_made_says_so(tmp_path):
    with pytest.raises(StoreError):
        Reader.open(tmp_path / "none")
    store = Store.open(tmp_path)
    store.close()
    store.close()
    for call in (lambda: store.put("/a/x", b"1", 1), lambda: store.get("/a/x"), store.flush, store.low):
        with pytest.raises(Closed):
            call()


def test_only_this_user_may_read_or_write_a_store_also_one_that_was_made_open(tmp_path):
    folder = tmp_path / "store"
    folder.mkdir(mode=0o777)
    before = os.umask(0)
    try:
        with Store.open(folder) as store:
            store.put("/a", b"1", 1)
            store.put("/a/d", b"1", 1, "persistent")
            modes = {path.relative_to(folder).as_posix(): path.stat().st_mode & 0o777 for path in folder.rglob("*")}
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o777 == 0o700 and "hot/data.mdb" in modes and "writer.lock" in modes
    assert set(modes.values()) == {0o600, 0o700} and {modes["hot"], modes["durable"]} == {0o700}
    assert all(mode == 0o600 for name, mode in modes.items() if name not in ("hot", "durable"))
