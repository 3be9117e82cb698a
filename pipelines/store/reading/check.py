"""The check of one environment, run in a process of its own: the exit status says whether it is whole."""

from __future__ import annotations

import os
from pathlib import Path

from pipelines.store.disk.environment import LmdbEnvironment
from pipelines.store.disk.errors import Corrupt
from pipelines.store.disk.limits import VERSION_MAX
from pipelines.store.disk.seek import as_of, records


def check(folder: Path, deep: bool) -> None:
    """Read one environment through and return if it is whole; run in a process of its own.

    Read are the head, every key and its newest record; with `deep` all records, which are also counted. A file shorter
    than its count of pages may still be whole, because LMDB does not write a page that one transaction took and gave
    back; then all pages in use are read by copying them to nowhere.

    Raises:
        Corrupt: a checksum, a count or the head is wrong, or a key has no record.
        StoreError: it cannot be opened.
        lmdb.Error: LMDB finds a page damaged. One may also kill the process by a signal.
    """
    env = LmdbEnvironment(folder, 1, writer=False)
    pages = env.lmdb.info()["last_pgno"] + 1
    if (folder / "data.mdb").stat().st_size < pages * env.lmdb.stat()["psize"]:
        with Path(os.devnull).open("wb") as nowhere:
            env.lmdb.copyfd(nowhere.fileno(), compact=True)
    with env.read() as txn, txn.cursor(db=env.keys) as keys, txn.cursor(db=env.log) as cursor:
        env.head(txn)
        seen = 0
        for _, prefix in keys:
            if deep:
                seen += sum(1 for _ in records(cursor, prefix, 0, VERSION_MAX))
            elif as_of(cursor, prefix) is None:
                raise Corrupt(f"{folder}: a key without a record")
        counted = txn.stat(env.log)["entries"]
        if deep and seen != counted:
            raise Corrupt(f"{folder}: {seen} records found, {counted} counted")
    env.close()
