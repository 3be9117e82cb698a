"""One writer at a time: an exclusive lock on a file that names the holder."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from pipelines.store.disk.errors import WriterPresent


class WriterLock:
    """Held from construction to `release`, or until the process ends, however it ends.

    A child made by a bare fork would hold it, too, for as long as it lives; one that executes another program does not.
    """

    def __init__(self, folder: Path) -> None:
        """Take the lock.

        Raises:
            WriterPresent: another holder has it.
        """
        self._file = os.open(folder / "writer.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._file, 32).decode(errors="replace").strip()
            os.close(self._file)
            raise WriterPresent(str(folder), int(holder) if holder.isdigit() else 0) from None
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Let the next writer in; the file stays, so that nobody locks one that was deleted."""
        os.close(self._file)
