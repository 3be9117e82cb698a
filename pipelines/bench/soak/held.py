"""What processes hold (memory, file handles, threads), and what folders take on the disk, sample by sample."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

EVERY_S = 10.0
"""Seconds between two samples."""


class Held(NamedTuple):
    """What a part holds at a moment.

    Attributes:
        at_s: seconds since the meter began.
        pid: of its first process.
        megabytes: of memory (10⁶ bytes, what is shared counted once).
        files: open file handles.
        threads: of all processes.
    """

    at_s: float
    pid: int
    megabytes: float
    files: int
    threads: int


class Holdings:
    """Of parts and folders: `held` by part; `taken`, times and 10⁶ bytes, by folder."""

    def __init__(
        self, parts: Sequence[str], processes: Callable[[str], list[psutil.Process]], folders: Mapping[str, Path]
    ) -> None:
        """Nothing is measured yet.

        Args:
            parts: names.
            processes: from a part's name to what runs of it now; raises where that is nothing.
            folders: by what they hold.
        """
        self._parts, self._processes, self._folders = parts, processes, folders
        self.held: dict[str, list[Held]] = {part: [] for part in parts}
        self.taken: dict[str, list[tuple[float, float]]] = {name: [] for name in folders}
        self._begun = time.monotonic()

    def sample(self) -> None:
        """Take a sample of each."""
        at_s = time.monotonic() - self._begun
        for part in self._parts:
            with suppress(Exception):  # it is being started again: no sample
                self.held[part].append(_held(at_s, self._processes(part)))
        for name, folder in self._folders.items():
            self.taken[name].append((at_s, _bytes_of(folder) / 1e6))


def _held(at_s: float, processes: Sequence[psutil.Process]) -> Held:
    """What processes hold together; one that has just ended, as a JVM's short helpers do, holds nothing."""
    pids, bytes_, files, threads = list[tuple[float, int]](), 0, 0, 0
    for one in processes:
        with suppress(psutil.Error):
            known = (one.memory_full_info().pss, one.num_fds(), one.num_threads(), (one.create_time(), one.pid))
            bytes_, files, threads = bytes_ + known[0], files + known[1], threads + known[2]
            pids.append(known[3])
    return Held(at_s, min(pids)[1], bytes_ / 1e6, files, threads)


def _bytes_of(folder: Path) -> int:
    """Bytes that a folder's files take on the disk; of such as are removed meanwhile none."""
    total = 0
    for where, _, files in os.walk(folder):
        for file in files:
            with suppress(OSError):
                total += 512 * os.lstat(os.path.join(where, file)).st_blocks
    return total
