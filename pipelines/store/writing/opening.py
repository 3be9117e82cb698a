"""Opening a store as its writer: lock, check, a new epoch, and the memory of what is stored."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import lmdb

from pipelines.store.disk.environment import LmdbEnvironment, translated
from pipelines.store.disk.errors import Corrupt, OtherSchema
from pipelines.store.disk.layout import HEAD, SCHEMA, SCHEMA_NAME, Head, pack_head
from pipelines.store.disk.limits import VERSION_MAX
from pipelines.store.disk.memory import KeyState, Side, WriterMemory
from pipelines.store.disk.retention import Keep, rule_for
from pipelines.store.disk.seek import as_of, places
from pipelines.store.disk.synced import SyncedSnapshot
from pipelines.store.writing.lock import WriterLock
from pipelines.store.writing.recovery import damage, forget_close, remember_close, stood_aside

ALARM_NS = 10**9
log = logging.getLogger(__name__)


@dataclass
class Opened:
    """A store that this process writes."""

    folder: Path
    lock: WriterLock
    memory: WriterMemory

    def close(self) -> None:
        """Bring all to the disk, note that it was closed well if so, and let the next writer in."""
        synced = False
        try:
            self.memory.synced.keep(*self.memory.synced.newest())
            synced = True
        finally:
            self.memory.synced.close()
            self.memory.hot.env.close()
            self.memory.durable.env.close()
            try:
                if synced:  # else a host crash may still take pages of a file that nobody would look at
                    remember_close(self.folder)
            finally:
                self.lock.release()


def open_writer(folder: Path, map_bytes: int, keep: Sequence[Keep], now: int) -> Opened:
    """Take the lock and open both environments.

    Raises:
        WriterPresent: another process is the writer.
        Corrupt: the durable file is damaged; it cannot be rebuilt from elsewhere, so it is left as it is.
        OtherSchema: another release wrote the durable file; it is left as it is.
    """
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)  # one that was made by hand, or by an older release, too
    lock = WriterLock(folder)
    try:
        return Opened(folder, lock, _remember(*_environments(folder, map_bytes), keep, now))
    except BaseException:
        lock.release()
        raise


def _environments(folder: Path, map_bytes: int) -> tuple[LmdbEnvironment, LmdbEnvironment]:
    if why := damage(folder, "durable"):
        where = folder / "durable"
        raise Corrupt(f"{where} is damaged ({why}) and nothing can rebuild it. Restore it from a copy, or remove it.")
    if why := damage(folder, "hot"):
        aside = stood_aside(folder / "hot", "damaged")
        log.warning("%s is damaged (%s); it lies in %s now and is begun anew", folder / "hot", why, aside)
    forget_close(folder)
    durable = LmdbEnvironment(folder / "durable", map_bytes, synced=True)
    try:
        durable.check_schema()
        return durable, _hot(folder / "hot", map_bytes)
    except BaseException:
        durable.close()
        raise


def _hot(path: Path, map_bytes: int) -> LmdbEnvironment:
    env = LmdbEnvironment(path, map_bytes)
    try:
        env.check_schema()
        return env
    except OtherSchema:
        env.close()
    aside = stood_aside(path, "other")
    log.warning("%s was written by another release; it lies in %s now and is begun anew from the log", path, aside)
    return LmdbEnvironment(path, map_bytes)


def _remember(durable: LmdbEnvironment, hot: LmdbEnvironment, keep: Sequence[Keep], now: int) -> WriterMemory:
    try:
        synced, heads = SyncedSnapshot(hot), []
        for env in (durable, hot):
            env.lmdb.reader_check()
            with env.read() as txn:
                heads.append(env.head(txn))
        epoch, ts = max(head.epoch for head in heads) + 1, max(head.ts for head in heads)
        if ts > now + ALARM_NS:
            ahead = (ts - now) / 1e9
            log.warning("%s: the newest commit lies %.1f s ahead of the clock; times go on from it", hot.folder, ahead)
        lost = [head.epoch == 0 and epoch > 1 for head in heads]
        if any(lost):  # what it held is lost to as-of reads: they are refused below now
            ts = max(now, ts + 1)
        newest, lows = (
            (ts if lost[0] else heads[0].ts),
            [ts if gone else h.low for gone, h in zip(lost, heads, strict=True)],
        )
        durable_head = Head(newest, newest, lows[0], epoch, newest)
        hot_head = Head(ts, heads[1].flushed, lows[1], epoch, newest)
        sides = []
        for env, head in ((durable, durable_head), (hot, hot_head)):
            with env.lmdb.begin(write=True) as txn:
                txn.put(HEAD, pack_head(head), db=env.meta)
                txn.put(SCHEMA_NAME, SCHEMA, db=env.meta)
                sides.append(Side(env, head, txn.stat(env.keys)["entries"], env.next_entry(txn)))
        memory = WriterMemory(
            hot=sides[1], durable=sides[0], synced=synced, epoch=epoch, ts=ts, flushed=hot_head.flushed
        )
        _read_sets(memory)
        for side in sides:
            _read_keys(memory, side, keep)
        return memory
    except BaseException as error:
        durable.close()
        hot.close()
        if isinstance(error, lmdb.Error):
            raise translated(error, str(hot.folder.parent)) from error
        raise


def _read_sets(memory: WriterMemory) -> None:
    env = memory.durable.env
    with env.read() as txn, txn.cursor(db=env.sets) as cursor:
        memory.sets = {name.decode(): frozenset(raw.decode().split("\n")) for name, raw in cursor}


def _read_keys(memory: WriterMemory, side: Side, keep: Sequence[Keep]) -> None:
    env = side.env
    with env.read() as txn, txn.cursor(db=env.keys) as keys, txn.cursor(db=env.log) as cursor:
        for raw, prefix in keys:
            key = raw.decode()
            rule = rule_for(keep, key)
            state = KeyState(key, side is memory.durable, rule, memory.affinity_of(key))
            newest = as_of(cursor, prefix)
            state.prefix, state.version = prefix, -1 if newest is None else newest.version
            if rule is not None:
                state.count = sum(1 for _ in places(cursor, prefix, 0, VERSION_MAX))
                state.puts = state.count  # from 0 on, a key put seldom would outgrow its rule a little at every start
            memory.keys[key] = state
