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

from pipelines.store.disk.environment import LmdbEnvironment, translated

log = logging.getLogger(__name__)
LIMIT = 64
"""Commits after a flush that use no page again; a file that is written faster would grow, and its commits slow down."""
SLOTS = "durable_meta"
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
        self._file = os.open(env.folder / SLOTS, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._pin: Any = None
        self._commits = 0
        found = [_txn(meta) for meta in _slots(env.folder)]
        self._next = found.index(min(found))
        for _ in found:  # so that none is left of another file that lay here
            self.keep(*self.newest())

    def newest(self) -> tuple[Any, bytes]:
        """Return (open read transaction, meta page) of the newest commit, to be given to `keep`; nothing is synced yet.

        The caller holds the writer's lock, so that no commit comes between. The count of `committed` begins again at 0.

        Raises:
            StoreError: LMDB gives no read transaction.
            OSError: `data.mdb` cannot be read.
        """
        pin = self._env.read()
        with (self._env.folder / "data.mdb").open("rb") as file:
            meta = os.pread(file.fileno(), _META_BYTES, (pin.id() & 1) * self._env.lmdb.stat()["psize"])
        assert _txn(meta) == pin.id(), "the writer's lock is held"
        self._commits = 0
        return pin, meta

    def keep(self, pin: Any, meta: bytes) -> None:
        """Sync the file and make the commit that `newest` returned the one to restore; blocks until it is on the disk.

        The commit kept before is let go: its pages may be used again.

        Raises:
            StoreError: the disk refuses (`StoreFull` where it is full); `pin` is ended, the commit kept before stays.
        """
        with self._moving:
            try:
                self._env.lmdb.sync(True)
                os.pwrite(self._file, _CRC.pack(crc32(meta)) + meta, self._next * _SLOT_BYTES)
                os.fdatasync(self._file)
            except (lmdb.Error, OSError) as error:
                pin.abort()
                raise translated(error, self._env.name) from error
            if self._pin is not None:
                self._pin.abort()
            self._pin, self._next = pin, 1 - self._next

    def committed(self) -> None:
        """Count one commit; at the `LIMIT`th since `newest` erase the kept commit from disk and let its pages go.

        Until the next `keep` nothing can be restored after a host crash. Where a `keep` is running, or the disk refuses
        (logged), the commit stays kept and the next call tries again. Raises nothing for that.
        """
        self._commits += 1
        if self._commits >= LIMIT and self._pin is not None and self._moving.acquire(blocking=False):
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


def restore(folder: Path) -> bool:
    """After a host crash, write the newest kept meta page over both of LMDB's in `data.mdb`, and sync it.

    Args:
        folder: of an environment that nobody has open.

    Returns:
        True when the file was set back, or was never kept that way (it has no `durable_meta`) and is left alone; False
        when `durable_meta` names no commit, because the file was written faster than it was flushed.

    Raises:
        OSError: a file cannot be read or written.
    """
    meta = max(_slots(folder), key=_txn)
    if not meta:
        return not (folder / SLOTS).exists()  # as an older release leaves it: nothing is known
    (page_bytes,) = _CRC.unpack_from(meta, _PAGE_AT)
    with (folder / "data.mdb").open("r+b") as file:
        for number in range(2):
            os.pwrite(file.fileno(), _NUMBER.pack(number) + meta[_NUMBER.size :], number * page_bytes)
        os.fsync(file.fileno())
    return True


def _slots(folder: Path) -> list[bytes]:
    """Both meta pages kept; empty where there is none, or one that was half written."""
    try:
        raw = (folder / SLOTS).read_bytes()
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
