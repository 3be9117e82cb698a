"""Damage to what a part keeps: bytes are changed in place, and the file's length stays."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

BYTES = 64
LMDB_PAGE, LMDB_META = 4096, 2
SQLITE_PAGE = 4096


def spoil_middle(file: Path) -> None:
    """Change the 64 bytes in a file's middle, or all of a shorter one.

    Raises:
        OSError: it cannot be written.
    """
    size = file.stat().st_size
    begin = max((size - BYTES) // 2, 0)
    _change(file, begin, min(BYTES, size))


def spoil_store(file: Path) -> None:
    """Change all pages of an LMDB store but the two that say where the others are."""
    _change(file, LMDB_PAGE * LMDB_META, None)


def spoil_database(file: Path) -> None:
    """Change all pages of an SQLite database but the first, and forget what was not yet written to it."""
    _change(file, SQLITE_PAGE, None)
    for ending in ("-wal", "-shm", "-journal"):
        file.with_name(file.name + ending).unlink(missing_ok=True)


def spoil_all(folder: Path) -> None:
    """Change all bytes of all files of a folder but links; one that goes meanwhile is let go."""
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                if not (file := Path(path, name)).is_symlink():
                    _change(file, 0, None)


def newest(files: Iterable[Path], by: Callable[[Path], float] = lambda file: file.stat().st_mtime) -> Path:
    """Return the file that was written last, or that is greatest by another measure.

    Raises:
        ValueError: there is none.
    """
    return max(files, key=by)


def _change(file: Path, begin: int, length: int | None) -> None:
    end = file.stat().st_size if length is None else begin + length
    noise = random.Random(0).randbytes(max(end - begin, 0))
    with file.open("r+b") as target:
        target.seek(begin)
        target.write(noise)
        target.flush()
        os.fsync(target.fileno())
