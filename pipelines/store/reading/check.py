"""The check of one environment, run in a process of its own: the exit status says whether it is whole."""

from __future__ import annotations

import os
from pathlib import Path

from pipelines.store.disk.environment import LmdbEnvironment
from pipelines.store.disk.errors import Corrupt
from pipelines.store.disk.limits import VERSION_MAX
from pipelines.store.disk.seek import find_as_of, iterate_records


def check_environment(folder: Path, deep: bool) -> None:
    """Read an environment through and return nothing if it is whole; run it in a process of its own.

    A page that is damaged may end the process by a signal; after an error the environment stays open.

    Args:
        folder: of the environment, which must exist.
        deep: read and count every record, rather than the newest of each key.

    Raises:
        Corrupt: a checksum, a count or the head is wrong, a key has no record, or the file is none of LMDB's.
        StoreError, lmdb.Error, OSError: it cannot be opened, a page cannot be read, or `data.mdb` cannot be examined.
    """
    env = LmdbEnvironment(folder, 1, writer=False)
    pages = env.lmdb.info()["last_pgno"] + 1
    # LMDB does not write a page that one transaction took and gave back: a file shorter than its count of pages may
    # be whole. Copying it to nowhere reads all pages in use.
    if (folder / "data.mdb").stat().st_size < pages * env.lmdb.stat()["psize"]:
        with Path(os.devnull).open("wb") as nowhere:
            env.lmdb.copyfd(nowhere.fileno(), compact=True)
    with env.begin_read() as txn, txn.cursor(db=env.keys) as keys, txn.cursor(db=env.log) as cursor:
        env.read_head(txn)
        count = 0
        for _, prefix in keys:
            if deep:
                count += sum(1 for _ in iterate_records(cursor, prefix, 0, VERSION_MAX))
            elif find_as_of(cursor, prefix) is None:
                raise Corrupt(f"{folder}: a key without a record")
        entries = txn.stat(env.log)["entries"]
        if deep and count != entries:
            raise Corrupt(f"{folder}: {count} records found, {entries} counted")
    env.close()
