"""The log of a process that may run for months: its newest lines, and as much before them in a file beside it."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import IO

LOG_BYTES = 64 << 20
"""At which size a log is set aside."""


def open_log(log: Path, append: bool) -> IO[bytes]:
    """Open a process's log so that it can be emptied while the process writes to it; its folder is created.

    Args:
        log: the file.
        append: keep what it holds already; much of that is set aside.

    Raises:
        OSError: it cannot be written.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    if append:
        bound_log(log)
    sink = log.open("ab")
    if not append:
        sink.truncate(0)
    return sink


def bound_log(log: Path) -> None:
    """Set a log aside as `NAME.old.log`, in place of an older one, and empty it, if it has LOG_BYTES (64 MiB).

    Lines that come in that moment are lost, and all where a full disk has no room for both.

    Args:
        log: that may be missing; whoever writes to it has it from `open_log`.
    """
    with suppress(OSError):  # no query ends for its log
        if log.stat().st_size >= LOG_BYTES:
            with suppress(OSError):
                shutil.copyfile(log, log.with_suffix(".old.log"))
            os.truncate(log, 0)
