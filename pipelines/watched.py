"""Files that change while something follows them: whether one has changed, what it holds, and when one is gone."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

SETTLED_S = 3.0
"""Seconds after a file's last change within which it is read again and again: clocks of file systems may be coarse."""
GONE_S = 10.0
"""Seconds for which a file has to be away until it is gone: an editor or git may be writing it anew."""
NO_FOLDER = "is no folder"
"""What is wrong with a folder that is not there."""
T = TypeVar("T")
_held: dict[tuple[Callable[[Path], Any], Path], tuple[tuple[int, ...], Any]] = {}


def state_of(file: Path) -> tuple[int, ...]:
    """Return what changes with a file's content: time of its last change (ns), inode, size; () where it is gone."""
    try:
        return _state(file.stat())
    except OSError:
        return ()


def files_in(folder: Path) -> tuple[dict[str, tuple[int, ...]], str]:
    """Return the states of a folder's YAML files, by their names without `.yaml`, and what is wrong with the folder.

    Nothing wrong is "". Else no file is returned, which says nothing about what there is: `Path.glob` takes a folder
    that may not be listed for an empty one.
    """
    try:
        with os.scandir(folder) as entries:
            names = [one.name for one in entries if one.name.endswith(".yaml")]
    except (FileNotFoundError, NotADirectoryError):
        return {}, NO_FOLDER
    except OSError as error:
        return {}, f"cannot be listed: {error.strerror}"
    return {Path(name).stem: state_of(folder / name) for name in names}, ""


def read_changed(file: Path, read: Callable[[Path], T], none: T) -> T:
    """Return what a file holds, read once for each of its states; `none` where it is gone, or was never readable.

    That it cannot be read now (too many files are open, its mount does not answer) says nothing about what it holds:
    what this process read last stands, and it is read again at the next call.

    Args:
        file: that is replaced as a whole when it changes.
        read: reads and parses it; an OSError that it raises is one of those.
        none: what is returned without a file.
    """
    held = _held.get((read, file))
    try:
        state = _state(file.stat())
        if held is None or held[0] != state:
            held = _held[read, file] = state, read(file)
    except FileNotFoundError:
        held = None
        _held.pop((read, file), None)
    except OSError:
        pass
    return none if held is None else held[1]


def is_new(files: Mapping[str, tuple[int, ...]]) -> bool:
    """Return whether one has changed so lately that it may have changed again since, at the same time by its clock."""
    newest = max((state[0] for state in files.values() if state), default=0)
    return newest / 1e9 > time.time() - SETTLED_S


class VanishedFiles:
    """Which files have vanished, but not for `GONE_S` (10 s): somebody may be writing them anew."""

    def __init__(self) -> None:
        """None has."""
        self._since: dict[str, float] = {}

    def look(self, missing: Iterable[str], now: float, folder: bool = True) -> frozenset[str]:
        """Return which of the files that are missing now are not gone yet, by their names.

        Args:
            missing: those that were there.
            now: seconds, of one clock for all looks.
            folder: whether their folder can be listed; if not, as of a mount that is away, none is gone, however long.
        """
        since = self._since if folder else {}
        self._since = {name: min(since.get(name, now), now) for name in missing}
        return frozenset(name for name, at in self._since.items() if now - at < GONE_S)


def _state(stat: os.stat_result) -> tuple[int, ...]:
    return stat.st_mtime_ns, stat.st_ino, stat.st_size
