"""Files that people change while something follows them: whether one has changed, and when one is gone."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

SETTLED_S = 3.0
"""Seconds after a file's last change within which it is read again and again: clocks of file systems may be coarse."""
GONE_S = 10.0
"""Seconds for which a file has to be away until it is gone: an editor or git may be writing it anew."""


def state_of(file: Path) -> tuple[int, ...]:
    """Return what changes with a file's content: time of its last change (ns), inode, size; () where it is gone."""
    try:
        stat = file.stat()
    except OSError:
        return ()
    return stat.st_mtime_ns, stat.st_ino, stat.st_size


def is_new(files: Mapping[str, tuple[int, ...]]) -> bool:
    """Return whether one has changed so lately that it may have changed again since, at the same time by its clock."""
    newest = max((state[0] for state in files.values() if state), default=0)
    return newest / 1e9 > time.time() - SETTLED_S
