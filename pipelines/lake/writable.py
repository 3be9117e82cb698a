"""Whether the lake can be written at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from pipelines.lake.errors import LakeError, LakeFullError
from pipelines.lake.folder import Folder
from pipelines.lake.hdfs_path import HdfsPath

_REFUSALS = {
    os.strerror(errno.ENOSPC): "has no room left; make some, or name another place",
    os.strerror(errno.EROFS): "has become read-only; mount it for writing",
    os.strerror(errno.EACCES): "forbids this user to write there; give it the right (chown -R, hdfs dfs -chown -R)",
    os.strerror(errno.EDQUOT): "has reached its quota; raise it, or make room",
    "QuotaExceededException": "has reached its quota; raise it (hdfs dfsadmin -setSpaceQuota, -setQuota), or make room",
    "SafeModeException": "is in safe mode; wait until its namenode has left that",
}
"""What a file system, or HDFS, may answer in the middle of a write, as Spark repeats it; and the remedy."""


@contextmanager
def naming_refusals(table: Folder) -> Iterator[None]:
    """Say so in one line where the file system of a table refuses what Spark writes there; Spark says it in hundreds.

    Raises:
        LakeFullError: it is full, over its quota, read-only, in safe mode or forbids it; nothing of the commit counts.
    """
    try:
        yield
    except Exception as error:
        said = str(error)
        for answer, words in _REFUSALS.items():
            if answer in said:
                raise LakeFullError(
                    f"the file system of {table} {words} (TIDECAST_LAKE__ADDRESS). Nothing was committed there by this "
                    "run; the next one begins where it did."
                ) from error
        raise


def refuse_read_only(root: Folder) -> None:
    """Refuse a lake that cannot be written, before anything is read for it.

    Raises:
        LakeError: its folder, or the nearest one above it that there is, is not writable.
        LakeAwayError: its file system does not answer, or takes nothing now.
    """
    there = next(folder for folder in (root, *root.parents) if folder.exists())
    if isinstance(there, HdfsPath):
        there.refuse_read_only()
    elif not os.access(there, os.W_OK):
        raise LakeError(
            f"{there} cannot be written, and the lake is to be in {root}. Mount it for writing, or give this user the"
            " right to write there."
        )
