"""The newest commit of a file written without syncs that a host crash leaves whole, and the way back to it.

After a crash the disk holds any mixture of old and new pages, also of the two pages that name LMDB's newest tree. The
tree of a synced commit stays whole only while none of its pages is used again: a read transaction sees to that.
"""

from __future__ import annotations

import logging
import os
import struct
import threading
from pathlib import Path
from typing import Any
from zlib import crc32

import lmdb

from pipelines.store.disk.environment import LmdbEnvironment, as_store_error

log = logging.getLogger(__name__)
MAX_PINNED_COMMITS = 64
"""Commits after a flush that use no page again; a file that is written faster would grow, and its commits slow down."""
SLOTS_FILE = "durable_meta"
"""Beside the data: the page that names the synced tree, in turn in one of two places, each with its checksum."""
_SLOT_BYTES = 4096
_META_BYTES = 152
"""What LMDB uses of a meta page: a header of 16, then at 40 the size of a page, at 144 the transaction's number."""
_NUMBER, _CRC, _PAGE_AT, _TXN_AT = struct.Struct("=Q"), struct.Struct("=I"), 40, 144


class SyncedSnapshot:
    """Keeps a crash-safe commit of an environment that is written without syncs, for `restore` to go back to.

    It pins the pages of the newest synced commit by a read transaction, and stores that commit's LMDB meta page in the
    file `durable_meta` beside the data.
    """

    def __init__(self, env: LmdbEnvironment) -> None:
        """Sync the environment's present state and keep it; call it before this process's first write.

        Raises:
            StoreError, OSError: the disk refuses.
        """
        self._env = env
        self._moving = threading.Lock()
        self._file = os.open(env.folder / SLOTS_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._pin: Any = None
        self._commits = 0
        found = [_txn(meta) for meta in _slots(env.folder)]
        self._next = found.index(min(found))
        for _ in found:  # so that none is left of another file that lay here
            self.sync_and_keep(*self.pin_newest())

    def pin_newest(self) -> tuple[Any, bytes]:
        """Begin a read transaction that pins the newest commit; return it and that commit's LMDB meta page (152 bytes).

        Give both to `sync_and_keep`: nothing is on the disk yet. The count of `count_commit` begins again at 0.

        Raises:
            StoreError: LMDB gives no read transaction (`Closed` where the environment was closed), or `data.mdb` cannot
                be read, e.g. because this process has too many files open.
            AssertionError: a commit came between; hold the writer's lock.
        """
        pin = self._env.begin_read()
        try:
            with (self._env.folder / "data.mdb").open("rb") as file:
                meta = os.pread(file.fileno(), _META_BYTES, (pin.id() & 1) * self._env.lmdb.stat()["psize"])
        except OSError as error:
            pin.abort()
            raise as_store_error(error, self._env.name) from error
        assert _txn(meta) == pin.id(), "the writer's lock is held"
        self._commits = 0
        return pin, meta

    def sync_and_keep(self, pin: Any, meta: bytes) -> None:
        """Sync the file and make this commit the one that `restore_synced` goes back to; blocks until that is on disk.

        The commit kept before is let go: its pages may be used again. A call in another thread waits for this one.

        Args:
            pin: open read transaction on the commit, from `pin_newest`; ended where this raises.
            meta: the commit's LMDB meta page, from `pin_newest`.

        Raises:
            StoreError: the disk refuses (`StoreFull` where it is full or fails); the commit kept before stays.
        """
        with self._moving:
            try:
                self._env.lmdb.sync(True)
                os.pwrite(self._file, _CRC.pack(crc32(meta)) + meta, self._next * _SLOT_BYTES)
                os.fdatasync(self._file)
            except (lmdb.Error, OSError) as error:
                pin.abort()
                raise as_store_error(error, self._env.name) from error
            if self._pin is not None:
                self._pin.abort()
            self._pin, self._next = pin, 1 - self._next

    def count_commit(self) -> None:
        """Count one commit; from the 64th since `pin_newest` on, erase the kept commit, so its pages are used again.

        Then nothing can be restored after a host crash until the next `sync_and_keep`. While one is running, or where
        the disk refuses (logged, not raised), the commit stays kept and the next call tries again.
        """
        self._commits += 1
        if self._commits >= MAX_PINNED_COMMITS and self._pin is not None and self._moving.acquire(blocking=False):
            try:
                os.pwrite(self._file, bytes(2 * _SLOT_BYTES), 0)
                os.fdatasync(self._file)
                self._pin.abort()
                self._pin = None
            except OSError as error:
                log.warning("%s: commits are kept apart until the next flush: %s", self._env.name, error)
            finally:
                self._moving.release()

    def close(self) -> None:
        """End the read transaction and close `durable_meta`; call it before the environment is closed."""
        if self._pin is not None:
            self._pin.abort()
        os.close(self._file)


def restore_synced(folder: Path) -> bool:
    """Set an environment's `data.mdb` back to its newest kept commit, after a host crash; blocks until it is on disk.

    The LMDB meta page kept in `durable_meta` is written over both of those in `data.mdb`; the rest stays as it is.

    Args:
        folder: of an environment that nobody has open.

    Returns:
        True when the file was set back, or has no `durable_meta` (then it is left alone); False when `durable_meta`
        names no commit, because 64 commits or more came since the last flush.

    Raises:
        OSError: a file cannot be read or written.
    """
    meta = max(_slots(folder), key=_txn)
    if not meta:
        return not (folder / SLOTS_FILE).exists()  # as an older release leaves it: nothing is known
    (page_bytes,) = _CRC.unpack_from(meta, _PAGE_AT)
    with (folder / "data.mdb").open("r+b") as file:
        for number in range(2):
            os.pwrite(file.fileno(), _NUMBER.pack(number) + meta[_NUMBER.size :], number * page_bytes)
        os.fsync(file.fileno())
    return True


def _slots(folder: Path) -> list[bytes]:
    """Both meta pages kept; empty where there is none, or one that was half written."""
    try:
        raw = (folder / SLOTS_FILE).read_bytes()
    except FileNotFoundError:
        raw = b""
    found = []
    for at in (0, _SLOT_BYTES):
        meta = raw[at + _CRC.size : at + _CRC.size + _META_BYTES]
        whole = len(meta) == _META_BYTES and _CRC.unpack_from(raw, at)[0] == crc32(meta)
        found.append(meta if whole else b"")
    return found


def _txn(meta: bytes) -> int:
    """The number of the transaction that a meta page names, -1 for none."""
    number: int = _NUMBER.unpack_from(meta, _TXN_AT)[0] if meta else -1
    return number
