"""Whether the lake can be written at all."""

from __future__ import annotations

import os
from pathlib import Path

from pipelines.lake.tables import LakeError


def refuse_read_only(root: Path) -> None:
    """Refuse a lake that cannot be written, before anything is read for it.

    Raises:
        LakeError: its folder, or the nearest one above it that there is, is not writable.
    """
    there = next(folder for folder in (root, *root.absolute().parents) if folder.exists())
    if not os.access(there, os.W_OK):
        raise LakeError(
            f"{there} cannot be written, and the lake is to be in {root}. Mount it for writing, or give this user the"
            " right to write there."
        )
