"""Opening a store as its writer: lock, check, a new epoch, and the memory of what is stored."""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import lmdb

from pipelines.store.disk.environment import LmdbEnvironment, as_store_error
from pipelines.store.disk.errors import Corrupt, OtherSchema, WriterPresent
from pipelines.store.disk.layout import HEAD, SCHEMA, SCHEMA_NAME, Head, pack_head
from pipelines.store.disk.limits import VERSION_MAX
from pipelines.store.disk.retention import Keep
from pipelines.store.disk.seek import find_as_of, iterate_versions
from pipelines.store.disk.synced import SyncedSnapshot
from pipelines.store.writing.memory import Clock, Side, WriterMemory
from pipelines.store.writing.recovery import find_damage, mark_clean, mark_suspect, mark_unclean, move_aside

ALARM_NS = 10**9
"""How far (ns) the newest commit may lie ahead of the clock without a warning."""
log = logging.getLogger(__name__)


@dataclass
class OpenedStore:
    """A store that this process writes: its folder, the descriptor of the locked file, and the writer's memory.

    With `suspect`, a record was found damaged.
    """

    folder: Path
    lock: int
    memory: WriterMemory
    suspect: bool = False

    def close(self) -> None:
        """Sync the hot environment (not synced by commits), close both, note it in `last_run`, and release the lock.

        Blocks until all is on the disk. Call it once, after the last put. Of a suspect one no clean
        close is noted.

        Raises:
            StoreError, OSError: the disk refuses. Files and lock are released all the same, but no clean close is
                noted, so the next writer checks the files first.
        """
        memory = self.memory
        with ExitStack() as ends:
            ends.callback(os.close, self.lock)  # the file stays, so that nobody locks one that was deleted
            with ExitStack() as files:
                files.callback(memory.durable.env.close)
                files.callback(memory.hot.env.close)
                files.callback(memory.synced.close)
                memory.synced.sync_and_keep(*memory.synced.pin_newest())
            # Not where a host crash may still take pages of a file that nobody looks at.
            (mark_suspect if self.suspect else mark_clean)(self.folder)


def open_writer(folder: Path, map_bytes: int, keep: Sequence[Keep], clock: Clock) -> OpenedStore:
    """Become the writer of the store in `folder`: lock it, check files not closed cleanly, and open both environments.

    The folder, with `writer.lock`, `last_run`, `hot/` and `durable/`, is made if absent, for this user only (0700). A
    lock that is held is not waited for. A check reads the file in a process of its own and takes up to 600 s. A hot
    file that is damaged or of another release is renamed (`move_aside`) and begun anew (logged).

    Args:
        folder: of the store, on a local disk.
        map_bytes: address space per environment, not disk or memory used; a fuller store raises `StoreFull`.
        keep: retention rules; a key without one keeps all versions.
        clock: gives ns since the epoch.

    Raises:
        WriterPresent: another process is the writer; `pid` says which, 0 where that is not known.
        Corrupt: the durable file is damaged; it is left as it is, because nothing can rebuild it.
        OtherSchema: another release wrote the durable file; it is left as it is.
        StoreFull, StoreError: LMDB or the disk refuses, or a check took longer than 600 s.
        OSError: the folder cannot be made or locked, a file of it cannot be read, renamed or written, or no process
            begun.
    """
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)  # one that was made by hand, or by an older release, too
    with ExitStack() as ends:
        lock = _lock(folder)
        ends.callback(os.close, lock)
        if why := find_damage(folder, "durable"):
            raise Corrupt(
                f"{folder / 'durable'} is damaged ({why}) and nothing can rebuild it. Restore it from a copy, or "
                "remove it."
            )
        if why := find_damage(folder, "hot"):
            aside = move_aside(folder / "hot", "damaged")
            log.warning("%s is damaged (%s); it lies in %s now and is begun anew", folder / "hot", why, aside)
        mark_unclean(folder)
        durable = LmdbEnvironment(folder / "durable", map_bytes, synced=True)
        ends.callback(durable.close)
        durable.check_schema()
        hot = _hot(folder / "hot", map_bytes)
        ends.callback(hot.close)
        try:
            opened = OpenedStore(folder, lock, _remember(durable, hot, keep, clock))
        except lmdb.Error as error:
            raise as_store_error(error, str(folder)) from error
        ends.pop_all()
        return opened


def _lock(folder: Path) -> int:
    """The descriptor of a locked file that names this process; let go when it is closed, or the process ends.

    A child made by a bare fork would hold the lock, too, as long as it lives; one that executes another program does
    not. Raises WriterPresent: another has it.
    """
    file = os.open(folder / "writer.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(file, 32).decode(errors="replace").strip()
        os.close(file)
        raise WriterPresent(str(folder), int(holder) if holder.isdigit() else 0) from None
    os.ftruncate(file, 0)
    os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
    return file


def _hot(path: Path, map_bytes: int) -> LmdbEnvironment:
    env = LmdbEnvironment(path, map_bytes)
    try:
        env.check_schema()
        return env
    except OtherSchema:
        env.close()
    aside = move_aside(path, "other")
    log.warning("%s was written by another release; it lies in %s now and is begun anew from the log", path, aside)
    return LmdbEnvironment(path, map_bytes)


def _remember(durable: LmdbEnvironment, hot: LmdbEnvironment, keep: Sequence[Keep], clock: Clock) -> WriterMemory:
    """Begin a new epoch in both environments, and read what the writer keeps in memory."""
    synced, heads = SyncedSnapshot(hot), []
    for env in (durable, hot):
        env.lmdb.reader_check()
        with env.begin_read() as txn:
            heads.append(env.read_head(txn))
    now, epoch, ts = clock(), max(head.epoch for head in heads) + 1, max(head.ts for head in heads)
    if ts > now + ALARM_NS:
        ahead = (ts - now) / 1e9
        log.warning("%s: the newest commit lies %.1f s ahead of the clock; times go on from it", hot.folder, ahead)
    lost = [head.epoch == 0 and epoch > 1 for head in heads]
    if any(lost):  # what it held is lost to as-of reads: they are refused below now
        ts = max(now, ts + 1)
    lows = [ts if gone else head.low for gone, head in zip(lost, heads, strict=True)]
    newest = ts if lost[0] else heads[0].ts
    fresh = Head(newest, newest, lows[0], epoch, newest), Head(ts, heads[1].flushed, lows[1], epoch, newest)
    sides = []
    for env, head in zip((durable, hot), fresh, strict=True):
        with env.lmdb.begin(write=True) as txn:
            txn.put(HEAD, pack_head(head), db=env.meta)
            txn.put(SCHEMA_NAME, SCHEMA, db=env.meta)
            sides.append(Side(env, head, txn.stat(env.keys)["entries"], env.next_outbox_number(txn)))
    memory = WriterMemory(sides[1], sides[0], synced, tuple(keep), clock, epoch, ts, heads[1].flushed)
    with durable.begin_read() as txn, txn.cursor(db=durable.sets) as cursor:
        memory.sets = {name.decode(): frozenset(raw.decode().split("\n")) for name, raw in cursor}
    for side in sides:
        _read_keys(memory, side)
    return memory


def _read_keys(memory: WriterMemory, side: Side) -> None:
    env = side.env
    with env.begin_read() as txn, txn.cursor(db=env.keys) as keys, txn.cursor(db=env.log) as cursor:
        for raw, prefix in keys:
            state = memory.new_key_state(raw.decode(), side is memory.durable)
            newest = find_as_of(cursor, prefix)
            state.prefix, state.version = prefix, -1 if newest is None else newest.version
            if state.keep is not None:
                state.count = sum(1 for _ in iterate_versions(cursor, prefix, 0, VERSION_MAX))
                # Those since it was last looked at: from 0 on, it would outgrow its rule a little at every start.
                state.puts = state.count - state.keep.versions if state.count > state.keep.versions else state.count
            memory.keys[state.key] = state
