"""One LMDB environment with its trees: the only module that opens LMDB."""

from __future__ import annotations

import errno
import os
import struct
from pathlib import Path
from typing import Any

import lmdb

from pipelines.store.disk.errors import Closed, Corrupt, OtherSchema, StoreError, StoreFull
from pipelines.store.disk.layout import HEAD, ID, SCHEMA, SCHEMA_NAME, TREES, Head, unpack_head
from pipelines.store.disk.limits import check_key

READERS = 512
"""Slots for reading processes and threads; LMDB's own 126 are few for a fleet."""
_FULL = tuple(os.strerror(code) for code in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO))
"""LMDB passes the system's refusals on as words; a write that only half fitted comes as an input/output error."""
_CORRUPT = (lmdb.CorruptedError, lmdb.InvalidError, lmdb.PageNotFoundError, lmdb.VersionMismatchError)


class LmdbEnvironment:
    """The trees of `folder`; `synced` says whether a commit waits for the disk.

    Never open one twice in a process, nor carry one over a fork, nor put it on a network file system.
    """

    def __init__(self, folder: Path, map_bytes: int, synced: bool = False, writer: bool = True) -> None:
        """Open, and as the writer create.

        Raises:
            Corrupt: the file is no LMDB file, or lacks a tree.
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
            raise translated(error, str(folder)) from error
        self.log, self.keys, self.floors, self.sets, self.meta, self.outbox = trees

    def read(self) -> Any:
        """A read transaction: end it at once, because it pins pages.

        The caller sees to it that no other of this process is open when the writer may have grown the file.
        """
        try:
            return self.lmdb.begin()
        except lmdb.MapResizedError:
            self.lmdb.set_mapsize(0)  # adopt the writer's size
            return self.lmdb.begin()
        except lmdb.Error as error:
            raise translated(error, self.name) from error

    def head(self, txn: Any) -> Head:
        """What the environment says of itself, as of the transaction."""
        raw = txn.get(HEAD, db=self.meta)
        try:
            return unpack_head(raw) if raw is not None else Head()
        except struct.error as error:
            raise Corrupt(f"{self.folder}: the head has {len(raw)} bytes: {error}") from None

    def check_schema(self) -> None:
        """Refuse what another release wrote; what nobody has written yet is taken.

        Raises:
            OtherSchema: its values would be misread.
        """
        with self.read() as txn:
            found: bytes = txn.get(SCHEMA_NAME, db=self.meta) or SCHEMA
        if found != SCHEMA:
            raise OtherSchema(
                f"{self.folder} is of schema {found.decode('ascii', 'replace')}; this release reads {SCHEMA.decode()}. "
                f"Move {self.folder.parent} away to begin anew, or go back to the release that wrote it."
            )

    def key_id(self, txn: Any, key: str) -> bytes | None:
        """The eight bytes before each of the key's records, None for a key never put; BadKey for what is no key."""
        found: bytes | None = txn.get(check_key(key), db=self.keys)
        return found

    def next_entry(self, txn: Any) -> int:
        """One above the number of the newest outbox entry."""
        with txn.cursor(db=self.outbox) as cursor:
            return ID.unpack(cursor.key())[0] + 1 if cursor.last() else 0

    def close(self) -> None:
        """Close the environment; transactions on it must have ended."""
        self.lmdb.close()


def translated(error: Exception, name: str) -> StoreError:
    """The store's own error for one of LMDB's, or of the system's."""
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
        return StoreError(f"{name}: a write failed half-way, the file is whole. Close the store and open it again.")
    if "closed" in text.lower():
        return Closed(f"{name} was closed")
    return StoreError(f"{name}: {text}")
