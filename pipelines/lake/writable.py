"""Whether the lake can be written at all."""

from __future__ import annotations

import os

from pipelines.lake.errors import LakeError
from pipelines.lake.folder import Folder
from pipelines.lake.hdfs_path import HdfsPath


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
