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
    """Keeps the pages of the newest synced commit from being used again, and its meta page on the disk."""

    def __init__(self, env: LmdbEnvironment) -> None:
        """Sync what is there; before the first write of this process."""
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
        """The newest commit, pinned, and its meta page; the caller holds the writer's lock."""
        pin = self._env.read()
        with (self._env.folder / "data.mdb").open("rb") as file:
            meta = os.pread(file.fileno(), _META_BYTES, (pin.id() & 1) * self._env.lmdb.stat()["psize"])
        assert _txn(meta) == pin.id(), "the writer's lock is held"
        self._commits = 0
        return pin, meta

    def keep(self, pin: Any, meta: bytes) -> None:
        """Bring what `newest` gave to the disk; then the pages of the commit kept before may be used again.

        Raises:
            StoreError: the disk refuses; the commit kept before is still kept.
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
        """After LIMIT commits nothing is kept until the next flush; the disk knows it before a page is used again."""
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
        """Let the pages go; before the environment is closed."""
        if self._pin is not None:
            self._pin.abort()
        os.close(self._file)


def restore(folder: Path) -> bool:
    """After a host crash: make the newest commit that was kept the newest of the file, which is not open.

    Returns:
        False where none was kept, because the file was written faster than it was flushed.
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
