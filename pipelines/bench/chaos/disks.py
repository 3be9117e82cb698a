"""A file system that is small enough to be filled: what a part keeps lies on it, and one day nothing more fits."""

from __future__ import annotations

import errno
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SIZE_MB = 256
_FILLER = "filler"
_BLOCK = bytes(1 << 16)


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Mount a file system in memory of SIZE_MB at a folder, which is made; needs root.

    Raises:
        subprocess.CalledProcessError: it cannot be mounted.
        OSError: the folder cannot be made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE_MB}m", "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:  # whoever still has a file of it open keeps that
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill_disk(folder: Path) -> None:
    """Write until not a byte more fits; where others make room meanwhile, that stays.

    Raises:
        OSError: it is not for want of room that nothing can be written.
    """
    with (folder / _FILLER).open("ab", buffering=0) as file:
        for size in (len(_BLOCK), 1):
            try:
                while file.write(_BLOCK[:size]):
                    pass
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise


def free_disk(folder: Path) -> None:
    """Take away what `fill_disk` has written."""
    (folder / _FILLER).unlink()
