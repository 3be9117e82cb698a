"""What a backup is: which files of a `var` folder nothing can make again, and how the archive says what it holds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_ISREG
from typing import NamedTuple

from configs.errors import CorrectableError
from pipelines.stack import state
from pipelines.stack.processes import name_process

REMADE = frozenset({
    "ivy", "jars.json", "class-archive", "compiled", "spark", "spark-local", "spark-work", "templates", "log",
    "stack.json", "stack.lock", "settings.yaml", ".restoring",
})  # fmt: skip
"""Names in `var` of what a setup or a start makes again; `settings.yaml` may hold passwords besides."""
ONCE_KEPT = frozenset({"compiled"})
"""Those of them that archives of an earlier code hold all the same."""
FORM, MANIFEST, SUMS = 1, "tidecast-backup.json", "tidecast-sums.json"
"""Number of the archive's form; its first member, which says what it is, and its last one, the SHA-256 of each file."""


class BackupError(CorrectableError, RuntimeError):
    """A backup cannot be written or restored; the message names file or folder and the remedy."""


class Backup(NamedTuple):
    """What a backup holds.

    Attributes:
        files: how many.
        size: of these, bytes.
        release: of Tidecast that wrote it: version, or "source", and commit.
        written: when, ISO 8601, UTC.
        var: the folder that it is of.
        elsewhere: what belongs to the same deployment and is not in it, for people.
    """

    files: int
    size: int
    release: str
    written: str
    var: str
    elsewhere: tuple[str, ...]


@contextmanager
def alone_on(var: Path) -> Iterator[None]:
    """Keep stacks off a `var` folder, created if need be, while the `with` block runs.

    Raises:
        BackupError: one runs there, or another process is at work on the folder.
        OSError: the folder cannot be written.
    """
    held = state.lock(var)
    try:
        if held is None:
            owner = state.holder(var)
            by = "another process" if owner is None else name_process(owner)
            raise BackupError(f"{var}: in use by {by}. Wait until that ends, or end it; then try again.")
        if state.running(var) is not None:
            raise BackupError(f"{var}: a stack runs on it. End it with `make down` first.")
        yield
    finally:
        if held is not None:
            held.close()


def kept_files(var: Path) -> dict[str, tuple[int, int]]:
    """Return size (bytes) and time of the last change (ns) of every file to keep, by its path within `var`.

    Left out are links, what REMADE names, and folders of other stacks, as the main job's `demo`.

    Raises:
        OSError: a folder cannot be read.
    """
    found = {}
    for path in _walk(var):
        with suppress(FileNotFoundError):  # it has gone since
            stat = path.lstat()
            if S_ISREG(stat.st_mode):
                found[path.relative_to(var).as_posix()] = stat.st_size, stat.st_mtime_ns
    return found


def links_out(var: Path) -> list[Path]:
    """Return the links among what is to be kept that lead out of the folder: what they lead to is in no backup."""
    return [path for path in _walk(var) if path.is_symlink() and not path.resolve().is_relative_to(var.resolve())]


def _walk(var: Path) -> Iterator[Path]:
    """All that is no folder, and links to folders."""

    def raise_it(error: OSError) -> None:
        raise error

    for folder, folders, files in os.walk(var, onerror=raise_it):
        here = Path(folder)
        left = REMADE if here == var else frozenset()
        linked = [name for name in folders if (here / name).is_symlink()]
        folders[:] = [
            name for name in sorted(folders) if name not in left and not (here / name / "stack.lock").exists()
        ]
        yield from (here / name for name in sorted([*files, *linked]) if name not in left)
