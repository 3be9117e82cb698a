"""What processes take: seconds of a core, and memory, of a process and all that it has started."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import NamedTuple

import psutil

EVERY_S = 5.0


class Usage(NamedTuple):
    """Cores busy in the mean, and the most memory at one time (10⁶ bytes, what is shared counted once)."""

    cores: float
    megabytes: float


class UsageMeter:
    """Measures processes by name while the `with` block runs; `usage` is what they took.

    Processes that they start and end in between count as well.
    """

    def __init__(self, pids: dict[str, int]) -> None:
        self._pids, self._over = pids, threading.Event()
        self._most = dict.fromkeys(pids, 0.0)
        self.usage: dict[str, Usage] = {}

    def __enter__(self) -> UsageMeter:
        self._begun, self._before = time.monotonic(), {name: _seconds(pid) for name, pid in self._pids.items()}
        self._thread = threading.Thread(target=self._watch, name="usage", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        took = time.monotonic() - self._begun
        self.usage = {
            name: Usage(round((_seconds(pid) - self._before[name]) / took, 3), round(self._most[name] / 1e6, 1))
            for name, pid in self._pids.items()
        }

    def _watch(self) -> None:
        while not self._over.wait(EVERY_S):
            for name, pid in self._pids.items():
                self._most[name] = max(self._most[name], _bytes(pid))


def _family(pid: int) -> list[psutil.Process]:
    with suppress(psutil.Error):
        first = psutil.Process(pid)
        return [first, *first.children(recursive=True)]
    return []


def _seconds(pid: int) -> float:
    total = 0.0
    for process in _family(pid):
        with suppress(psutil.Error):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def _bytes(pid: int) -> float:
    total = 0.0
    for process in _family(pid):
        with suppress(psutil.Error):
            total += process.memory_full_info().pss
    return total
