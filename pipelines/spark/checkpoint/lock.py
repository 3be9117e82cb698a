"""Which process may run a checkpoint's query: one at a time, the one that has the lock of the file beside it."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path


class CheckpointLock:
    """One process's place at a checkpoint; whose turn it is has the lock of the file `<checkpoint>.lock`.

    The file holds that one's process id, and nothing once its query has ended in order.

    Attributes:
        handed_over: whether this process has it from one whose query has ended in order.
    """

    def __init__(self, checkpoint: Path) -> None:
        """Take the lock if nobody has it.

        Raises:
            OSError: the file cannot be made, or its file system has no locks.
        """
        checkpoint.parent.mkdir(parents=True, exist_ok=True)
        self._commits = checkpoint / "commits"
        self._file = checkpoint.with_name(f"{checkpoint.name}.lock").open("a+")
        self._held = self._has_waited = self.handed_over = False
        self.take()

    def take(self) -> bool:
        """Take the lock if nobody else has it; return whether this process has it now."""
        if self._held:
            return True
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._has_waited = True
            return False
        self._file.seek(0)
        self.handed_over = self._has_waited and not self._file.read()
        self._file.truncate(0)
        self._file.write(f"{os.getpid()}\n")
        self._file.flush()
        self._held = True
        return True

    def hand_over(self) -> None:
        """Let the next one have it; the query has ended."""
        self._file.truncate(0)
        self._file.close()

    def written_lately(self, within_s: float) -> bool:
        """Return whether a micro-batch has ended within so many seconds, whoever ran it."""
        try:
            return abs(time.time() - self._commits.stat().st_mtime) < within_s
        except FileNotFoundError:
            return False
