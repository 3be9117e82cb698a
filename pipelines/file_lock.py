"""One at a time, of all processes of a computer."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def alone(file: Path) -> Iterator[None]:
    """Context manager: wait until nobody else is in it by this file, which is made where there is none.

    Whoever holds it and is killed lets the next one in.

    Raises:
        OSError: the file cannot be written, or its folder is not there.
    """
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
