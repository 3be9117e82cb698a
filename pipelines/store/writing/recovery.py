"""Whether a database file can be trusted, judged before this process maps it: reading a damaged one can kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from pipelines.store.disk.errors import StoreError
from pipelines.store.disk.synced import restore_synced

BOOT = Path("/proc/sys/kernel/random/boot_id")
LAST_RUN = "last_run"
CHECK_S = 600


def find_damage(folder: Path, name: str) -> str:
    """Return one line on what is wrong with the database file in `folder/name`, or "" if it can be used.

    A file that is absent or unchanged since a clean close is not read. Otherwise a child process checks it, for up to
    600 s: the newest record of each key if the writer was killed; every record after a crash of the host or
    `mark_suspect`, when the file is first set back to its last synced commit (`restore_synced` rewrites `data.mdb`).

    Args:
        folder: of the store, locked by the caller.
        name: "hot" (commits not synced at once) or "durable" (each commit synced).

    Raises:
        StoreError: the check took longer than 600 s.
        OSError: a file cannot be read or set back, or the child process not begun.
    """
    if not (folder / name / "data.mdb").exists():
        return ""
    boot, stamps = _last_run(folder)
    if stamps.get(name) == _stamp(folder / name):
        return ""
    crashed = boot != _boot()
    if crashed and not restore_synced(folder / name):
        return "at the host's crash it was written faster than it was brought to the disk"
    paths = [str(Path(__file__).parents[3]), str(Path(sys.modules["lmdb"].__file__ or "").parents[1])]
    code = (
        f"import sys; sys.path[:0] = {paths!r}; from pipelines.store.reading.check import Path, check_environment; "
        f"check_environment(Path({str(folder / name)!r}), deep={crashed})"
    )
    command = [sys.executable, "-I", "-S", "-c", code]
    try:
        child = subprocess.run(command, capture_output=True, text=True, timeout=CHECK_S, check=False)
    except subprocess.TimeoutExpired:
        raise StoreError(f"{folder / name}: the check took more than {CHECK_S} s. Move it to a faster disk.") from None
    if child.returncode < 0:
        return f"reading it ends a process by {signal.Signals(-child.returncode).name}"
    if child.returncode > 0:
        return (child.stderr.strip() or f"its check ended with status {child.returncode}").splitlines()[-1]
    return ""


def move_aside(path: Path, why: str) -> Path:
    """Rename an environment's folder to the first free of `NAME.WHY-1`, `NAME.WHY-2`, ... and return the new path.

    Args:
        path: the folder NAME.
        why: "damaged" or "other" (of another release).

    Raises:
        OSError: it cannot be renamed.
    """
    number = 1
    while (aside := path.with_name(f"{path.name}.{why}-{number}")).exists():
        number += 1
    path.rename(aside)
    return aside


def mark_unclean(folder: Path) -> None:
    """Replace the folder's `last_run` by the id of this boot alone: a store found so was not closed cleanly.

    Raises:
        OSError: it cannot be written.
    """
    _replace(folder / LAST_RUN, _boot() + "\n")


def mark_clean(folder: Path) -> None:
    """Write `last_run`: id of this boot, and inode, size and time of both closed files, for the next open.

    Raises:
        OSError: it cannot be written.
    """
    lines = [_boot(), *(f"{name} {_stamp(folder / name)}" for name in ("hot", "durable"))]
    _replace(folder / LAST_RUN, "\n".join(lines) + "\n")


def mark_suspect(folder: Path) -> None:
    """Have the next open treat the folder's files as after a crash of the host: every record of them is read.

    Raises:
        OSError: it cannot be written.
    """
    _replace(folder / LAST_RUN, "suspect\n")


def _last_run(folder: Path) -> tuple[str, dict[str, str]]:
    try:
        boot, *lines = (folder / LAST_RUN).read_text().splitlines()
    except (OSError, ValueError):
        return "", {}
    return boot, dict(tuple(line.split(" ", 1)) for line in lines if " " in line)  # type: ignore[misc]


def _stamp(path: Path) -> str:
    found = (path / "data.mdb").stat()
    return f"{found.st_ino} {found.st_size} {found.st_mtime_ns}"


def _boot() -> str:
    try:
        return BOOT.read_text().strip()
    except OSError:
        return "unknown"


def _replace(path: Path, text: str) -> None:
    fresh = path.with_suffix(".new")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
