"""One LMDB environment with its trees: the only module that opens LMDB."""

from __future__ import annotations

import errno
import os
import struct
from pathlib import Path
from typing import Any

import lmdb

from pipelines.store.disk.errors import Closed, Corrupt, MustReopen, OtherSchema, StoreError, StoreFull
from pipelines.store.disk.layout import HEAD, ID, SCHEMA, SCHEMA_NAME, TREES, Head, unpack_head
from pipelines.store.disk.limits import check_key

READERS = 512
"""Slots for reading processes and threads; LMDB's own 126 are few for a fleet."""
_FULL = tuple(os.strerror(code) for code in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO))
"""LMDB passes the system's errors on as text; a write that only half fitted comes as an input/output error."""
_CORRUPT = (lmdb.CorruptedError, lmdb.InvalidError, lmdb.PageNotFoundError, lmdb.VersionMismatchError)


class LmdbEnvironment:
    """One LMDB environment in `folder` with its six trees (see `layout`); with `synced` each commit waits for the disk.

    Open at most one per folder and process, do not carry one over a fork, and do not put it on a network file system.
    """

    def __init__(self, folder: Path, map_bytes: int, synced: bool = False, writer: bool = True) -> None:
        """Open the environment; as the writer also create the folder and the trees.

        `map_bytes` is the address space reserved; a reader gives 0 and takes the size of the file.

        Raises:
            Corrupt: the file is no LMDB file.
            StoreFull: the disk has no room for a new file.
            StoreError: it cannot be opened, or, for a reader, it or one of its trees does not exist yet.
        """
        self.folder = folder
        self.name = folder.name
        try:
            self.lmdb = lmdb.open(
                str(folder),
                mode=0o700,  # of the folder; the files get it less the right to execute
                map_size=map_bytes,
                max_dbs=len(TREES),
                max_readers=READERS,
                max_spare_txns=4,
                sync=synced,
                metasync=synced,
                readonly=not writer,
                create=writer,
            )
            if writer:
                with self.lmdb.begin(write=True) as txn:  # one commit for all
                    trees = [self.lmdb.open_db(name.encode(), txn) for name in TREES]
            else:
                trees = [self.lmdb.open_db(name.encode(), create=False) for name in TREES]
        except lmdb.Error as error:
            raise as_store_error(error, str(folder)) from error
        self.log, self.keys, self.floors, self.sets, self.meta, self.outbox = trees

    def begin_read(self) -> Any:
        """Begin and return an LMDB read transaction; use it as a `with` block and end it soon, because it pins pages.

        If the writer has enlarged the map, its new size is adopted; no other transaction of this process may be open on
        the environment then.

        Raises:
            Closed: the environment was closed.
            StoreError: LMDB refuses for another reason, such as no free slot of the 512 for readers.
            lmdb.Error: it refuses again after the new size was adopted.
        """
        try:
            return self.lmdb.begin()
        except lmdb.MapResizedError:
            self.lmdb.set_mapsize(0)  # adopt the writer's size
            return self.lmdb.begin()
        except lmdb.Error as error:
            raise as_store_error(error, self.name) from error

    def read_head(self, txn: Any) -> Head:
        """Return the environment's head record (commit times in ns, writer's number), all zeros before a first writer.

        Args:
            txn: an LMDB transaction on this environment.

        Raises:
            Corrupt: the stored bytes have not the length of a head (40).
            lmdb.Error: the page cannot be read.
        """
        raw = txn.get(HEAD, db=self.meta)
        try:
            return unpack_head(raw) if raw is not None else Head()
        except struct.error as error:
            raise Corrupt(f"{self.folder}: the head has {len(raw)} bytes: {error}") from None

    def check_schema(self) -> None:
        """Check that this release's schema wrote the environment; one without a schema name (a new one) passes.

        Raises:
            OtherSchema: another release wrote it, so its values would be misread.
            Closed, StoreError, lmdb.Error: it was closed, or cannot be read.
        """
        with self.begin_read() as txn:
            name: bytes = txn.get(SCHEMA_NAME, db=self.meta) or SCHEMA
        if name != SCHEMA:
            raise OtherSchema(
                f"{self.folder} is of schema {name.decode('ascii', 'replace')}; this release reads {SCHEMA.decode()}. "
                f"Move {self.folder.parent} away to begin anew, or go back to the release that wrote it."
            )

    def key_id(self, txn: Any, key: str) -> bytes | None:
        """Return the key's id, the eight bytes before each of its records; None for a key never put.

        Raises:
            BadKey: the key is not a path as `check_key` takes it.
        """
        key_id: bytes | None = txn.get(check_key(key), db=self.keys)
        return key_id

    def next_outbox_number(self, txn: Any) -> int:
        """Return the number of the next outbox entry: one above the newest stored, 0 for an empty outbox."""
        with txn.cursor(db=self.outbox) as cursor:
            return ID.unpack(cursor.key())[0] + 1 if cursor.last() else 0

    def close(self) -> None:
        """Close the environment; transactions on it must have ended. Using it then raises `Closed`."""
        self.lmdb.close()


def as_store_error(error: Exception, name: str) -> StoreError:
    """Return (not raise) the store's exception for one of LMDB or of the operating system, told by its class or text.

    Args:
        error: an `lmdb.Error` or `OSError`.
        name: of the environment or store; begins the message.

    Returns:
        `StoreFull` for a full map, disk, quota or largest file, and for input/output errors; `Corrupt` for damaged
        files or another LMDB version; `MustReopen` after a write that failed half-way; `Closed` where the environment
        was closed; `StoreError` for all else.
    """
    text = str(error)
    if isinstance(error, lmdb.MapFullError):
        return StoreFull(f"{name}: the map is full. Open with a larger map_bytes (serving.map_bytes), or prune.")
    if any(words in text for words in _FULL):
        return StoreFull(
            f"{name}: the disk takes no more ({text}). Free space or mend it; nothing acknowledged was lost."
        )
    if isinstance(error, _CORRUPT):
        return Corrupt(f"{name}: {text}")
    if isinstance(error, lmdb.PanicError):
        return MustReopen(f"{name}: a write failed half-way, the file is whole. Close the store and open it again.")
    if "closed" in text.lower():
        return Closed(f"{name} was closed")
    return StoreError(f"{name}: {text}")
