"""Database files that are not what the store wrote: rebuilt where that can be, else refused and left alone."""

import os
import shutil
import sys

import pytest

from pipelines.store import Corrupt, MustReopen, OtherSchema, Pruned, Reader, Store, StoreError
from pipelines.store.disk import environment
from pipelines.store.disk.environment import LmdbEnvironment, as_store_error
from pipelines.store.disk.layout import SCHEMA_NAME
from pipelines.store.disk.synced import MAX_PINNED_COMMITS
from pipelines.store.writing import recovery
from pipelines.store.writing.recovery import mark_clean


def filled(folder):
    with Store.open(folder, map_bytes=1 << 24) as store:
        for version in range(300):
            store.put("/a/x", b"%d" % version * 50, version)
        for version in range(30):
            store.put("/a/d", b"%d" % version * 500, version, "persistent")
        return store.frontier()[0]


def flip(path, needle):
    """One bit in every copy; pages that are no longer in use may hold older ones."""
    raw = path.read_bytes()
    assert needle in raw
    path.write_bytes(raw.replace(needle, bytes([needle[0] ^ 1]) + needle[1:]))


def changed_later(path):
    """As if the file was changed a second after it was closed, not within the same tick of the file system's clock.

    A file that has the time, size and number of one closed well is taken for it; many kernels tick every 4 ms only.
    """
    found = path.stat()
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns + 10**9))


DAMAGE = {
    "rubbish": lambda path: path.write_bytes(b"rubbish" * 10_000),
    "empty": lambda path: path.write_bytes(b""),
    "cut short": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2 // 4096 * 4096]),
    "zeros": lambda path: path.write_bytes(path.read_bytes()[:8192] + bytes(path.stat().st_size - 8192)),
    "noise": lambda path: path.write_bytes(path.read_bytes()[:8192] + b"\xa5" * (path.stat().st_size - 8192)),
    "one bit": lambda path: flip(path, b"299" * 50 if path.parent.name == "hot" else b"29" * 500),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_hot_file_is_put_aside_and_begun_anew(tmp_path, damage, caplog):
    before = filled(tmp_path)
    DAMAGE[damage](tmp_path / "hot" / "data.mdb")
    changed_later(tmp_path / "hot" / "data.mdb")
    with Store.open(tmp_path, map_bytes=1 << 24) as store:
        assert "begun anew" in caplog.text
        assert (tmp_path / "hot.damaged-1" / "data.mdb").exists()
        assert store.get("/a/x") is None
        for key in ("/a/x", "/a/never"):
            with pytest.raises(Pruned):
                store.get_at_time(key, before)
        assert store.get_at_time("/a/d", before).version == 29
        assert store.put("/a/x", b"again", 300) == "applied"
        assert store.get_at_time("/a/x", store.frontier()[0]).value == b"again"


def test_a_check_that_takes_too_long_is_an_error_of_the_store(tmp_path, monkeypatch):
    filled(tmp_path)
    changed_later(tmp_path / "durable" / "data.mdb")
    monkeypatch.setattr(recovery, "CHECK_S", 0.001)
    with pytest.raises(StoreError, match=r"durable: the check took more than 0\.001 s"):
        Store.open(tmp_path, map_bytes=1 << 24)
    monkeypatch.undo()
    with Store.open(tmp_path, map_bytes=1 << 24) as store:
        assert store.get("/a/d").version == 29


def test_a_check_that_ends_without_a_word_is_damage(tmp_path, monkeypatch):
    filled(tmp_path)
    changed_later(tmp_path / "durable" / "data.mdb")
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\nexit 3\n")
    silent.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(silent))
    with pytest.raises(Corrupt, match=r"its check ended with status 3"):
        Store.open(tmp_path, map_bytes=1 << 24)


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_durable_file_is_an_error_and_is_left_alone(tmp_path, damage):
    filled(tmp_path)
    path = tmp_path / "durable" / "data.mdb"
    whole = path.read_bytes()
    DAMAGE[damage](path)
    changed_later(path)
    found = path.read_bytes()
    with pytest.raises(Corrupt, match="durable"):
        Store.open(tmp_path)
    assert path.read_bytes() == found
    path.write_bytes(whole)
    changed_later(path)
    with Store.open(tmp_path) as store:
        assert store.get("/a/d").version == 29


def of_another_release(folder):
    env = LmdbEnvironment(folder, 1 << 24)
    with env.lmdb.begin(write=True) as txn:
        txn.put(SCHEMA_NAME, b"tidecast-store-1", db=env.meta)
    env.close()


@pytest.mark.parametrize("closed_well", [True, False])
def test_a_hot_file_of_another_release_is_put_aside_and_begun_anew(tmp_path, caplog, closed_well):
    before = filled(tmp_path)
    of_another_release(tmp_path / "hot")
    if closed_well:
        mark_clean(tmp_path)
    with Store.open(tmp_path, map_bytes=1 << 24) as store:
        assert "written by another release" in caplog.text and "damaged" not in caplog.text
        assert (tmp_path / "hot.other-1" / "data.mdb").exists()
        assert store.get("/a/x") is None and store.get("/a/d").version == 29
        with pytest.raises(Pruned):
            store.get_at_time("/a/x", before)


@pytest.mark.parametrize("closed_well", [True, False])
def test_a_durable_file_of_another_release_is_refused_with_words_and_left_alone(tmp_path, closed_well):
    filled(tmp_path)
    for name in ("hot", "durable"):
        of_another_release(tmp_path / name)
    if closed_well:
        mark_clean(tmp_path)
    whole = {name: (tmp_path / name / "data.mdb").read_bytes() for name in ("hot", "durable")}
    for opened in (Store, Reader):
        with pytest.raises(OtherSchema, match=r"(durable|hot) is of schema tidecast-store-1; .*Move "):
            opened.open(tmp_path)
    assert {name: (tmp_path / name / "data.mdb").read_bytes() for name in whole} == whole


def test_a_file_without_its_last_pages_is_whole_if_none_of_them_is_in_use(tmp_path, caplog):
    filled(tmp_path)
    for name in ("hot", "durable"):
        env = LmdbEnvironment(tmp_path / name, 1 << 26)
        with env.lmdb.begin(write=True) as txn:
            for number in range(2000):  # pages at the end, taken and given back
                txn.put(b"%d" % number, bytes(9000), db=env.meta)
            for number in range(2000):
                txn.delete(b"%d" % number, db=env.meta)
        short = (env.lmdb.info()["last_pgno"] + 1) * 4096 - (tmp_path / name / "data.mdb").stat().st_size
        env.close()
        changed_later(tmp_path / name / "data.mdb")
        assert short > 0
    with Store.open(tmp_path) as store:
        assert store.get("/a/x").version == 299
        assert store.get("/a/d").version == 29
    assert not caplog.text


def test_after_a_host_crash_every_record_is_looked_at_and_after_a_kill_the_newest(tmp_path):
    filled(tmp_path)
    flip(tmp_path / "hot" / "data.mdb", b"150" * 50)
    changed_later(tmp_path / "hot" / "data.mdb")
    with Store.open(tmp_path) as store:
        assert store.get("/a/x").version == 299
        with pytest.raises(Corrupt, match="version 150"):
            store.get("/a/x", 150)
    changed_later(tmp_path / "hot" / "data.mdb")  # a file that is as it was closed is taken as it is
    last_run = tmp_path / "last_run"
    last_run.write_text("another-boot\n" + last_run.read_text().split("\n", 1)[1])
    with Store.open(tmp_path) as store:
        assert store.get("/a/x") is None


def test_after_a_host_crash_what_was_flushed_is_there_or_the_file_is_begun_anew(tmp_path, caplog):
    def crashed(name):
        ignored = shutil.ignore_patterns("lock.mdb")
        folder = shutil.copytree(tmp_path / "store", tmp_path / name, ignore=ignored)
        (folder / "last_run").write_text("another boot\n")
        with Store.open(folder) as again:
            return again.get("/a/x")

    with Store.open(tmp_path / "store") as store:
        for version in range(10):
            store.put("/a/x", b"1", version)
        store.flush()
        for version in range(10, MAX_PINNED_COMMITS):
            store.put("/a/x", b"1", version)
        assert crashed("few").version == 9 and not caplog.text
        for version in range(MAX_PINNED_COMMITS, 2 * MAX_PINNED_COMMITS):
            store.put("/a/x", b"1", version)
        assert crashed("many") is None and "faster than it was brought to the disk" in caplog.text
        store.flush()
        assert crashed("flushed").version == 2 * MAX_PINNED_COMMITS - 1


def test_a_durable_environment_that_is_gone_answers_no_older_times(tmp_path):
    before = filled(tmp_path)
    (tmp_path / "durable").rename(tmp_path / "elsewhere")
    with Store.open(tmp_path) as store:
        assert store.get_at_time("/a/x", before).version == 299
        with pytest.raises(Pruned):
            store.get_at_time("/a/d", before)
        assert store.put("/a/d", b"1", 1, "persistent") == "applied"
        assert store.get_at_time("/a/d", store.frontier()[0]).version == 1


def test_an_interrupt_inside_a_commit_is_not_written_over(tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    with Store.open(tmp_path) as store:
        store.put("/a/x", b"1", 1)
        with monkeypatch.context() as patch:
            patch.setattr("pipelines.store.writing.commit.next_ts", interrupted)
            with pytest.raises(KeyboardInterrupt):
                store.put("/a/x", b"2", 2)
        with pytest.raises(MustReopen, match="open it again"):
            store.put("/a/x", b"2", 2)
    with Store.open(tmp_path) as store:
        assert store.put("/a/x", b"2", 2) == "applied"


def test_after_a_write_that_failed_half_way_only_opening_the_store_helps():
    panic = as_store_error(environment.lmdb.PanicError("MDB_PANIC"), "hot")
    assert isinstance(panic, MustReopen) and "open it again" in str(panic)


def test_a_hot_environment_that_is_gone_is_begun_anew(tmp_path):
    before = filled(tmp_path)
    (tmp_path / "hot").rename(tmp_path / "elsewhere")
    with Store.open(tmp_path) as store:
        with pytest.raises(Pruned):
            store.get_at_time("/a/x", before)
        assert store.low() > before


def test_a_store_that_could_not_be_brought_to_the_disk_was_not_closed_well(tmp_path):
    store = Store.open(tmp_path)
    store.put("/pool/a", b"x", 1)
    environment = store.memory.hot.env

    class Deaf:
        begin, stat = environment.lmdb.begin, environment.lmdb.stat

        def sync(self, force):
            raise OSError("no disk")

        def close(self):
            pass

    whole, environment.lmdb = environment.lmdb, Deaf()
    with pytest.raises(StoreError, match="no disk"):
        store.close()
    whole.close()
    assert len((tmp_path / "last_run").read_text().splitlines()) == 1
    with Store.open(tmp_path) as again:
        assert again.get("/pool/a").value == b"x"
